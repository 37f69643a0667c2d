// Windows of pooling and of convolutions over images of three dims; those of fewer have a depth and a height of 1.

// Along one dim, `length` elements are read, at `count` positions.
struct WindowDim {
    int length, count, kernel, stride, padding, dilation;
};

struct WindowDims {
    WindowDim depth, height, width;
};

// The dims as arguments of a kernel, and made of those.
#define WINDOW_ARGUMENTS                                                                                       \
    whole length_d, whole count_d, whole kernel_d, whole stride_d, whole padding_d, whole dilation_d,          \
    whole length_h, whole count_h, whole kernel_h, whole stride_h, whole padding_h, whole dilation_h,          \
    whole length_w, whole count_w, whole kernel_w, whole stride_w, whole padding_w, whole dilation_w
#define WINDOW_DIMS                                                                                            \
    {{int(length_d), int(count_d), int(kernel_d), int(stride_d), int(padding_d), int(dilation_d)},             \
     {int(length_h), int(count_h), int(kernel_h), int(stride_h), int(padding_h), int(dilation_h)},             \
     {int(length_w), int(count_w), int(kernel_w), int(stride_w), int(padding_w), int(dilation_w)}}
