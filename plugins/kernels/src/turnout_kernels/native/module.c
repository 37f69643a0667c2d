/* The extension module: one function, `run`, which calls a kernel by its number with buffers and numbers.

   The loops are in `kernels.h`, which is compiled once for each instruction set; which one runs is decided when the module is
   loaded. Callers have checked shapes, dtypes and layouts: see turnout_kernels/native.py. Only the stable ABI is used. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "job.h"
#include "pool.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

/* Every kernel. turnout_kernels/native.py takes their numbers from `KERNELS`. */
#define EVERY_KERNEL(X)                                                                                                           \
    X(map) X(softmax) X(softmax_backward) X(layer_norm) X(layer_norm_backward) X(group_norm) X(reduce_rows)                       \
    X(reduce_columns) X(locate) X(cumulate) X(cumulative_extreme) X(max_pool) X(mean_pool)                                        \
    X(gather) X(scatter) X(select_rows) X(add_rows) X(flip) X(triangle) X(masked_count) X(masked_take) X(uniform) X(normal)       \
    X(dropout) X(depthwise) X(depthwise_backward) X(bilinear) X(nearest) X(pool_backward) X(batch_norm)         \
    X(batch_norm_backward) X(coordinates) X(group_norm_backward) X(softmax_columns) X(softmax_columns_backward)                  \
    X(mean_windows) X(integers)

#define ISA base
#include "kernels.h"
#undef ISA

#if (defined(__x86_64__) || defined(_M_X64)) && defined(__GNUC__)
#include <immintrin.h>
#define HAVE_X86_VARIANTS 1
#define FAST_HALVES 1
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,f16c")
#endif
#define ISA avx2
#include "kernels.h"
#undef ISA
#ifdef __clang__
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,bmi,bmi2,f16c"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,bmi,bmi2,f16c,prefer-vector-width=512")
#endif
#define ISA avx512
#include "kernels.h"
#undef ISA
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

#define ADDRESS_base(name) JOIN(name, base),
#define ADDRESS_avx2(name) JOIN(name, avx2),
#define ADDRESS_avx512(name) JOIN(name, avx512),
#define TEXT(name) #name,

static kernel *const BASE[] = {EVERY_KERNEL(ADDRESS_base)};
#ifdef HAVE_X86_VARIANTS
static kernel *const WITH_AVX2[] = {EVERY_KERNEL(ADDRESS_avx2)};
static kernel *const WITH_AVX512[] = {EVERY_KERNEL(ADDRESS_avx512)};
#endif
static const char *const NAMES[] = {EVERY_KERNEL(TEXT)};
#define POINTWISE_TEXT(name, result) #name,
static const char *const POINTWISE_NAMES[] = {EVERY_POINTWISE(POINTWISE_TEXT)};
#define KERNEL_COUNT ((long)(sizeof NAMES / sizeof *NAMES))

static kernel *const *chosen = BASE;
static const char *chosen_name = "generic";

static int choose(const char *name)
{
    int best = 0;
#ifdef HAVE_X86_VARIANTS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        best = 1;
    if (best && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        best = 2;
#endif
    int wanted = !*name ? best : !strcmp(name, "generic") ? 0 : !strcmp(name, "avx2") ? 1 : !strcmp(name, "avx512") ? 2 : 3;
    if (wanted > best)
        return -1;
    chosen = BASE;
    chosen_name = "generic";
#ifdef HAVE_X86_VARIANTS
    if (wanted == 1)
        chosen = WITH_AVX2, chosen_name = "avx2";
    if (wanted == 2)
        chosen = WITH_AVX512, chosen_name = "avx512";
#endif
    return 0;
}

static int take_array(PyObject *object, Py_buffer *view, array *to, int flags)
{
    if (PyObject_GetBuffer(object, view, flags) < 0)
        return -1;
    if (view->ndim > MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "an array has %d dims, at most %d are supported", view->ndim, MAX_DIMS);
        PyBuffer_Release(view);
        return -1;
    }
    to->p = view->buf;
    to->ndim = view->ndim;
    to->size = 1;
    for (int d = 0; d < view->ndim; d++) {
        to->shape[d] = view->shape[d];
        to->stride[d] = view->strides[d];
        to->size *= view->shape[d];
    }
    return 0;
}

/* run(number of the kernel, outputs, inputs, integers, floats, parts, threads) */
static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    if (nargs != 7)
        return PyErr_Format(PyExc_TypeError, "run takes 7 arguments, got %zd", nargs);
    long number = PyLong_AsLong(args[0]);
    job work;
    Py_buffer views[MAX_ARRAYS];
    long threads = PyLong_AsLong(args[6]);
    work.parts = PyLong_AsLong(args[5]);
    work.count = 0;
    if (PyErr_Occurred())
        return NULL;
    if (number < 0 || number >= KERNEL_COUNT || work.parts < 1)
        return PyErr_Format(PyExc_ValueError, "there is no kernel %ld, or nothing to do", number);
    Py_ssize_t outs = PyTuple_Size(args[1]), ins = PyTuple_Size(args[2]);
    Py_ssize_t ints = PyTuple_Size(args[3]), floats = PyTuple_Size(args[4]);
    if (outs < 0 || ins < 0 || ints < 0 || floats < 0)
        return NULL;
    if (outs + ins > MAX_ARRAYS || ints > MAX_NUMBERS || floats > MAX_NUMBERS)
        return PyErr_Format(PyExc_ValueError, "too many arrays or numbers");
    for (Py_ssize_t k = 0; k < ints; k++)
        work.i[k] = PyLong_AsLongLong(PyTuple_GetItem(args[3], k));
    for (Py_ssize_t k = 0; k < floats; k++)
        work.f[k] = PyFloat_AsDouble(PyTuple_GetItem(args[4], k));
    int failed = PyErr_Occurred() != NULL;
    for (Py_ssize_t k = 0; k < outs + ins && !failed; k++) {
        PyObject *object = k < outs ? PyTuple_GetItem(args[1], k) : PyTuple_GetItem(args[2], k - outs);
        int flags = k < outs ? PyBUF_STRIDES | PyBUF_WRITABLE : PyBUF_STRIDES;
        if (take_array(object, &views[k], &work.a[k], flags) < 0)
            failed = 1;
        else
            work.count++;
    }
    if (!failed) {
        PyThreadState *state = PyEval_SaveThread();
        run_parts(chosen[number], &work, threads);
        PyEval_RestoreThread(state);
    }
    for (int k = 0; k < work.count; k++)
        PyBuffer_Release(&views[k]);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *instructions(PyObject *self, PyObject *name)
{
    (void)self;
    PyObject *text = PyUnicode_AsUTF8String(name);
    if (text == NULL)
        return NULL;
    int failed = choose(PyBytes_AsString(text)) < 0;
    Py_DECREF(text);
    if (failed)
        return PyErr_Format(PyExc_ValueError, "this processor or this build has no instructions %R", name);
    return PyUnicode_FromString(chosen_name);
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, "Call a kernel; see the head of the module."},
    {"instructions", instructions, METH_O, "Choose instructions: '' (the best), 'generic', 'avx2' or 'avx512'. Returns the name."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "turnout_kernels._native", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = PyModule_Create(&definition), *names = PyTuple_New(KERNEL_COUNT);
    if (module == NULL || names == NULL)
        return NULL;
    for (long k = 0; k < KERNEL_COUNT; k++)
        PyTuple_SetItem(names, k, PyUnicode_FromString(NAMES[k]));
    choose("");
    if (PyModule_AddObjectRef(module, "KERNELS", names) < 0)
        return NULL;
    Py_DECREF(names);
    names = PyTuple_New(POINTWISE_COUNT);
    for (long k = 0; names != NULL && k < POINTWISE_COUNT; k++)
        PyTuple_SetItem(names, k, PyUnicode_FromString(POINTWISE_NAMES[k]));
    if (names == NULL || PyModule_AddObjectRef(module, "POINTWISE", names) < 0)
        return NULL;
    Py_DECREF(names);
    return module;
}
