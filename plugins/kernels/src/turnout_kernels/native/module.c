/* The extension module: `run` calls a kernel by its number with buffers and numbers, and `row` makes functions that look at
   the arguments of a row themselves.

   The loops are in `kernels.h`, which is compiled once for each instruction set; which one runs is decided when the module is
   loaded. Callers have checked shapes, dtypes and layouts: see turnout_kernels/native.py. Only the stable ABI is used, for which
   setup.py asks; a build of Python without the GIL has none.

   No function needs the GIL. Kernels run without it on every Python, on memory whose buffers the call holds; `pool.h` has a lock of
   its own; rows keep tuples, which do not change; `chosen` is one address, and each table that it may name is complete. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getcpu */
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "one_interpreter.h"
#include "job.h"
#include "pool.h"

typedef uint64_t word64;
#define WORDS static inline
#include "words.h"
#include "few.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#define MAP 0 /* the first kernel */

/* Every kernel. turnout_kernels/native.py takes their numbers from `KERNELS`. Those of floats are compiled for both types. */
#define EVERY_KERNEL_OF_FLOATS(X)                                                                                                 \
    X(map) X(softmax) X(softmax_backward) X(layer_norm) X(layer_norm_backward) X(group_norm) X(reduce_runs) X(reduce_columns)     \
    X(locate) X(cumulate) X(cumulative_extreme) X(max_pool) X(mean_pool) X(add_at) X(add_rows_at) X(depthwise)                    \
    X(depthwise_backward) X(bilinear) X(batch_norm) X(batch_norm_backward) X(group_norm_backward) X(softmax_columns)              \
    X(softmax_columns_backward) X(mean_windows) X(convolve) X(convolve_weights) X(topk) X(recurrent) X(matrix_products)           \
    X(batches)
#define EVERY_KERNEL(X)                                                                                                           \
    EVERY_KERNEL_OF_FLOATS(X) X(join) X(gather) X(select_rows) X(flip) X(triangle) X(masked_count) X(masked_take) X(uniform)      \
    X(normal) X(dropout) X(nearest) X(coordinates) X(integers) X(by_stretches) X(copy)

#define ISA base
#define VECTOR_BYTES 16
#ifdef __aarch64__
#define VECTOR_REGISTERS 32
#else
#define VECTOR_REGISTERS 16
#endif
#include "kernels.h"
#undef ISA
#undef VECTOR_BYTES
#undef VECTOR_REGISTERS

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
#define VECTOR_BYTES 32
#define VECTOR_REGISTERS 16
#include "kernels.h"
#undef ISA
#undef VECTOR_BYTES
#undef VECTOR_REGISTERS
#ifdef __clang__
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,bmi,bmi2,f16c"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,bmi,bmi2,f16c,prefer-vector-width=512")
#endif
#define ISA avx512
#define VECTOR_BYTES 64
#define VECTOR_REGISTERS 32
#include "kernels.h"
#undef ISA
#undef VECTOR_BYTES
#undef VECTOR_REGISTERS
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
static const char *const QUESTION_NAMES[] = {EVERY_QUESTION(POINTWISE_TEXT)};
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

/* An input of `map` as one over the dims of the output: what has length 1 or is not there is repeated. */
static int spread(array *input, const array *output)
{
    int64_t behind = output->ndim - input->ndim, repeated[MAX_DIMS];
    for (int64_t d = 0; d < output->ndim && behind >= 0; d++) {
        int64_t length = d < behind ? 1 : input->shape[d - behind];
        repeated[d] = length == 1 ? 0 : input->stride[d - behind];
        if (length != 1 && length != output->shape[d])
            behind = -1;
    }
    if (behind < 0) {
        PyErr_SetString(PyExc_ValueError, "an input does not broadcast to the output");
        return -1;
    }
    for (int64_t d = 0; d < output->ndim; d++)
        input->stride[d] = repeated[d];
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
    for (Py_ssize_t k = 1; k < outs + ins && number == MAP && !failed; k++)
        failed = spread(&work.a[k], &work.a[0]) < 0;
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

/* ---- rows that look at their arguments here: for few elements, looking in Python takes five times as long as the kernel */

#define FEW_TO_COPY 1024 /* elements */
#define MOST_PARTS 256   /* as in turnout_kernels/native.py */

static PyObject *copy_name, *size_name;

static void release(job *work, Py_buffer *views)
{
    for (int k = 0; k < work->count; k++)
        PyBuffer_Release(&views[k]);
    work->count = 0;
}

/* Contiguous arrays of one dtype, float32 or float64, the first `outs` of which are written. The number of their dtype; -1
   without an error if one is another, and nothing is held. */
static int take_floats(PyObject *const *objects, int outs, int count, job *work, Py_buffer *views)
{
    int kind = -1;
    work->count = 0;
    for (int k = 0; k < count; k++) {
        Py_buffer *view = &views[k];
        int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (k < outs ? PyBUF_WRITABLE : 0), own = -1;
        if (take_array(objects[k], view, &work->a[k], flags) == 0) {
            work->count++;
            if (view->format != NULL && !view->format[1])
                own = view->format[0] == 'f' ? 0 : view->format[0] == 'd' ? 1 : -1;
            if ((size_t)view->buf % (own == 1 ? sizeof(double) : sizeof(float)))
                own = -1;
        }
        if (own < 0 || (kind >= 0 && kind != own)) {
            PyErr_Clear();
            release(work, views);
            return -1;
        }
        kind = own;
    }
    return kind;
}

static void run_few(const char *name, job *work, Py_buffer *views)
{
    long number = 0;
    while (strcmp(NAMES[number], name))
        number++;
    work->parts = 1;
    run_parts(chosen[number], work, 1);
    release(work, views);
}

/* What such a function keeps: (whether the logarithm or which operator, the most elements, the function for any other call, inputs,
   numbers, whether only float32, what makes an array like another one, how many threads there are). */
static long long kept_number(PyObject *kept, int at) { return PyLong_AsLongLong(PyTuple_GetItem(kept, at)); }

static PyObject *call_other(PyObject *kept, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *passed = PyTuple_New(nargs), *made = NULL;
    for (Py_ssize_t k = 0; passed != NULL && k < nargs; k++)
        PyTuple_SetItem(passed, k, Py_NewRef(args[k]));
    if (passed != NULL)
        made = PyObject_Call(PyTuple_GetItem(kept, 2), passed, NULL);
    Py_XDECREF(passed);
    return made;
}

/* The result of such a call: `out`, or a copy of its first input, whose elements are each read before they are written; where the
   input is read, an array like it does, which takes less time for more elements. NULL, perhaps without an error, for a large input: it
   goes to the other function. */
static PyObject *few_or_out(PyObject *kept, PyObject *input, PyObject *out, int is_read)
{
    if (out != Py_None)
        return Py_NewRef(out);
    PyObject *elements = PyObject_GetAttr(input, size_name), *made = NULL;
    long long count = elements == NULL ? 0 : PyLong_AsLongLong(elements);
    if (elements != NULL && count <= (is_read ? FEW_TO_COPY : kept_number(kept, 1)))
        made = PyObject_CallMethodObjArgs(input, copy_name, NULL);
    else if (elements != NULL && count <= kept_number(kept, 1))
        made = PyObject_CallFunctionObjArgs(PyTuple_GetItem(kept, 6), input, NULL);
    Py_XDECREF(elements);
    return made;
}

/* Parts of as many elements as such a function takes in one, by all threads. -1 with an error. */
static int run_many(PyObject *kept, long number, job *work, Py_buffer *views)
{
    int64_t parts = (work->a[0].size - 1) / kept_number(kept, 1) + 1;
    PyObject *found = PyObject_CallFunctionObjArgs(PyTuple_GetItem(kept, 7), NULL);
    long threads = found == NULL ? -1 : PyLong_AsLong(found);
    Py_XDECREF(found);
    if (!PyErr_Occurred()) {
        work->parts = parts < MOST_PARTS ? parts : MOST_PARTS;
        PyThreadState *state = PyEval_SaveThread();
        run_parts(chosen[number], work, threads);
        PyEval_RestoreThread(state);
    }
    release(work, views);
    return PyErr_Occurred() ? -1 : 0;
}

/* (self, dim, half_to_float, out or None) */
static PyObject *softmax(PyObject *kept, PyObject *const *args, Py_ssize_t nargs)
{
    if ((nargs != 3 && nargs != 4) || args[2] != Py_False || !PyLong_Check(args[1]))
        return call_other(kept, args, nargs);
    int given = nargs == 4 && args[3] != Py_None;
    PyObject *made = few_or_out(kept, args[0], given ? args[3] : Py_None, 0);
    job work;
    Py_buffer views[2];
    PyObject *const objects[2] = {made, args[0]};
    long dim = PyLong_AsLong(args[1]);
    int kind = made == NULL || PyErr_Occurred() ? -1 : take_floats(objects, 1, 1 + given, &work, views);
    if (kind >= 0) {
        const array *own = &work.a[given];
        if (own->ndim > 0 && own->size > 0 && own->size <= kept_number(kept, 1) && own->size == work.a[0].size
            && (dim == -1 || dim == own->ndim - 1)) {
            work.a[1] = *own;
            work.i[0] = kind;
            work.i[1] = own->shape[own->ndim - 1];
            work.i[2] = kept_number(kept, 0);
            run_few("softmax", &work, views);
            return made;
        }
        release(&work, views);
    }
    PyErr_Clear();
    Py_XDECREF(made);
    return call_other(kept, args, nargs);
}

/* (input, normalized_shape, weight or None, bias or None, eps, out, mean, rstd) */
static PyObject *layer_norm(PyObject *kept, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 8 || !PyTuple_Check(args[1]) || !PyFloat_Check(args[4]) || (args[2] == Py_None && args[3] != Py_None))
        return call_other(kept, args, nargs);
    job work;
    Py_buffer views[6];
    PyObject *const objects[6] = {
        args[5], args[6], args[7], args[0], args[2] == Py_None ? args[0] : args[2], args[3] == Py_None ? args[0] : args[3],
    };
    int kind = take_floats(objects, 3, 6, &work, views);
    if (kind >= 0) {
        long long length = 1;
        for (Py_ssize_t d = 0; d < PyTuple_Size(args[1]); d++)
            length *= PyLong_AsLongLong(PyTuple_GetItem(args[1], d));
        long long size = work.a[0].size;
        if (!PyErr_Occurred() && size > 0 && size <= kept_number(kept, 1) && work.a[3].size == size && length > 0
            && work.a[1].size * length == size && work.a[2].size * length == size && (args[2] == Py_None || work.a[4].size == length)
            && (args[3] == Py_None || work.a[5].size == length)) {
            work.i[0] = kind;
            work.i[1] = length;
            work.i[2] = args[2] != Py_None;
            work.i[3] = args[3] != Py_None;
            work.i[4] = 0;
            work.f[0] = PyFloat_AsDouble(args[4]);
            run_few("layer_norm", &work, views);
            Py_RETURN_NONE;
        }
        release(&work, views);
    }
    PyErr_Clear();
    return call_other(kept, args, nargs);
}

/* (input, ..., number, ..., [out or None]) of an element-wise operator: inputs of one shape */
static PyObject *pointwise(PyObject *kept, PyObject *const *args, Py_ssize_t nargs)
{
    int inputs = (int)kept_number(kept, 3), numbers = (int)kept_number(kept, 4), given = nargs == inputs + numbers + 1;
    if (!given && nargs != inputs + numbers)
        return call_other(kept, args, nargs);
    job work;
    Py_buffer views[4];
    for (int k = 0; k < 3; k++) {
        PyObject *number = k < numbers ? args[inputs + k] : NULL;
        work.f[k] = number == NULL ? 0 : PyFloat_CheckExact(number) ? PyFloat_AsDouble(number) : NAN;
        if (number != NULL && PyLong_CheckExact(number))
            work.f[k] = PyLong_AsDouble(number);
        if (work.f[k] != work.f[k] || PyErr_Occurred()) {
            PyErr_Clear();
            return call_other(kept, args, nargs);
        }
    }
    PyObject *made = few_or_out(kept, args[0], given ? args[nargs - 1] : Py_None, 1);
    PyObject *objects[4] = {made};
    for (int k = 0; k < inputs; k++)
        objects[k + 1] = args[k];
    int kind = made == NULL || PyErr_Occurred() ? -1 : take_floats(objects, 1, inputs + 1, &work, views);
    if (kind >= 0) {
        int alike = work.a[0].size > 0 && !(kind && kept_number(kept, 5));
        for (int k = 1; k <= inputs && alike; k++) {
            alike = work.a[k].ndim == work.a[0].ndim;
            for (int64_t d = 0; d < work.a[0].ndim && alike; d++)
                alike = work.a[k].shape[d] == work.a[0].shape[d];
        }
        if (alike) {
            work.i[0] = kind;
            work.i[1] = kept_number(kept, 0);
            for (int k = 0; k <= inputs; k++)
                work.i[2 + k] = kind;
            if (work.a[0].size <= kept_number(kept, 1))
                run_few("map", &work, views);
            else if (run_many(kept, MAP, &work, views) < 0)
                Py_CLEAR(made);
            return made;
        }
        release(&work, views);
    }
    PyErr_Clear();
    Py_XDECREF(made);
    return call_other(kept, args, nargs);
}

static PyMethodDef pointwise_method = {"pointwise", (PyCFunction)(void (*)(void))pointwise, METH_FASTCALL, NULL};
static PyMethodDef softmax_method = {"softmax", (PyCFunction)(void (*)(void))softmax, METH_FASTCALL, NULL};
static PyMethodDef layer_norm_method = {"native_layer_norm", (PyCFunction)(void (*)(void))layer_norm, METH_FASTCALL, NULL};

/* (which row, whether the logarithm or which operator, the most elements in one part, inputs, numbers, whether only float32, what makes
   an array like another one, how many threads there are, the function for any other call) */
static PyObject *row(PyObject *self, PyObject *args)
{
    (void)self;
    const char *name;
    int number, inputs, numbers, single;
    long long most;
    PyObject *other, *empty_like, *threads;
    if (!PyArg_ParseTuple(args, "siLiipOOO", &name, &number, &most, &inputs, &numbers, &single, &empty_like, &threads, &other))
        return NULL;
    PyMethodDef *method = !strcmp(name, "softmax")      ? &softmax_method
                          : !strcmp(name, "layer_norm") ? &layer_norm_method
                          : !strcmp(name, "pointwise")  ? &pointwise_method
                                                        : NULL;
    if (method == NULL || inputs < 1 || inputs > 3 || numbers < 0 || numbers > 3)
        return PyErr_Format(PyExc_ValueError, "there is no row %s", name);
    PyObject *kept = Py_BuildValue("(iLOiiiOO)", number, most, other, inputs, numbers, single, empty_like, threads);
    PyObject *from = PyUnicode_FromString("turnout_kernels._native");
    PyObject *made = kept == NULL || from == NULL ? NULL : PyCFunction_NewEx(method, kept, from);
    Py_XDECREF(kept);
    Py_XDECREF(from);
    return made;
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
    {"row", row, METH_VARARGS, "A row that looks at few contiguous floats itself, and leaves any other call to a function."},
    {"instructions", instructions, METH_O,
     "instructions(name)\n--\n\nChoose instructions: '' (the best), 'generic', 'avx2' or 'avx512'. Returns the name."},
    {NULL, NULL, 0, NULL},
};

static int add_names(PyObject *module, const char *as, const char *const *texts, long count)
{
    PyObject *names = PyTuple_New(count);
    for (long k = 0; names != NULL && k < count; k++) {
        PyObject *name = PyUnicode_FromString(texts[k]);
        if (name == NULL)
            Py_CLEAR(names);
        else
            PyTuple_SetItem(names, k, name);
    }
    int failed = names == NULL || PyModule_AddObjectRef(module, as, names) < 0;
    Py_XDECREF(names);
    return failed ? -1 : 0;
}

static int fill(PyObject *module)
{
    if (!is_of_this_interpreter())
        return -1;
    choose("");
    copy_name = PyUnicode_InternFromString("copy");
    size_name = PyUnicode_InternFromString("size");
    if (copy_name == NULL || size_name == NULL || add_names(module, "KERNELS", NAMES, KERNEL_COUNT) < 0
        || add_names(module, "POINTWISE", POINTWISE_NAMES, POINTWISE_COUNT) < 0
        || add_names(module, "QUESTIONS", QUESTION_NAMES, QUESTION_COUNT) < 0)
        return -1;
    PyObject *functions = PyCapsule_New((void *)&FUNCTIONS, TURNOUT_FUNCTIONS, NULL);
    int failed = functions == NULL || PyModule_AddObjectRef(module, "functions", functions) < 0;
    Py_XDECREF(functions);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)fill},
    ONE_INTERPRETER
#ifdef Py_mod_gil /* not in the stable ABI of 3.11 */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "turnout_kernels._native", .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
