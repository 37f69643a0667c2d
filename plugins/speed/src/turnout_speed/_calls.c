/* Calls without a Python frame.
 *
 * The one idea: a call is taken here only if it can be finished here. Everything that is not plain - a subclass, a mode, a wrong
 * argument, an error of the array library - is declined before anything was changed, and the Python function that stands beside
 * it starts from the beginning. So errors, tracebacks, warnings and rare cases are those of the Python function.
 *
 * Call          a stub, a public function or a method: arguments, key set, look-up in the operator's cache
 * ArrayKernel   the wrapper of an array kernel: arrays out of tensors, the kernel, a tensor around its result
 * PlanKernel    the wrapper of an array kernel that gets its output: what the shape function answered, new arrays, the kernel
 * RecordKernel  a kernel at Autograd: the call below, and a node that says how it was made
 * ViewKernel    a view operator at ADInplaceOrView: a remembered geometry, an array over the same memory, and the record of the view
 * WriteKernel   an operator that writes its first argument, at ADInplaceOrView: the call below, and the count of the write
 * CompositeKernel  a composite kernel that ends in one call of another operator
 * CopyKernel    a kernel that copies a row-major tensor, in another dtype if it is asked to
 * SelectKernel  a factory at BackendSelect: the device, and the call below
 * FactoryKernel a factory: new memory, zeroed or filled with one number
 * FillKernel    a kernel that fills its first argument with one number
 * IntoKernel    the out and in-place variants: what the functional one computes, copied into a tensor that was given
 * GuardKernel   a kernel that calls operators, without the functionalities that the call has passed
 * ElementKernel a kernel that copies into its first argument, gives the number in it, or counts
 * DrawKernel    random numbers of the device's generator
 * CustomKernel  a kernel of the user on arrays
 * Shape, Dtype  the properties of tensors with these names
 * run_ahead     the sweep of a backward pass over nodes whose formulas are data
 * Getter        x[index] and x[index] = value, for ints, slices, None, `...` and index tensors
 * handles       operators, packets and handles of `custom_op`, called without a frame of their own
 *
 * Only NumPy's arrays are read, through its C interface, and only within the bounds that they state.
 */
#include "native/shared.h"
#include <math.h>
#include <float.h>
#include <fenv.h>

#include <numpy/ufuncobject.h>

/* ---- what is known of Turnout: set once by `configure` */

static PyTypeObject *Storage, *View, *SIZE;
static Py_ssize_t AT_OFFSET, AT_ROOT, AT_OF, AT_STORAGE_VER, AT_VIEWS, AT_BASE, AT_CHAIN, AT_SEEN, AT_MULTI, AT_NO_GRAD, AT_MAKER,
    AT_BACKEND, AT_EPOCH;
static PyObject *FRESH, *GRAD, *DTYPE, *DEVICE;
static PyObject *CLOCK, *MISSING;
static PyObject *FULL_OPTIONS; /* ("dtype", "device") */
static PyObject *FAKE_MODE, *EMPTY, *DEFAULT_DTYPES, *DEFAULT_DEVICES, *OVERRIDES, *DEFAULT_GENERATOR, *TRACKED;
static PyObject *NO_TEXT;
static Py_ssize_t TAKEN; /* calls that were finished here, for those who want to know */
static int REPEATABLE;   /* not 0: what runs now may run again, so kernels of the user are declined */

/* ---- the kinds of kernels */

static Kind CallType, ArrayKernelType, RecordKernelType, ViewKernelType, WriteKernelType, PlanKernelType, CompositeKernelType,
    CopyKernelType, SelectKernelType, FactoryKernelType, FillKernelType, GetterType, ElementKernelType, IntoKernelType,
    GuardKernelType, CustomKernelType, DrawKernelType;

#include "native/call.h"
#include "native/programs.h"
#include "native/conversions.h"
#include "native/wrapping.h"
#include "native/moves.h"
#include "native/compiled.h"
#include "native/plans.h"
#include "native/arrays.h"
#include "native/outputs.h"
#include "native/records.h"
#include "native/views.h"
#include "native/factories.h"
#include "native/elements.h"
#include "native/composites.h"
#include "native/indexing.h"
#include "native/guards.h"
#include "native/custom.h"
#include "native/facts.h"
#include "native/sweeps.h"
#include "native/handles.h"

/* ---- types and module */

static int plan_traverse(PyObject *self, visitproc visit, void *arg)
{
    int stopped = face_traverse(self, visit, arg);
    return stopped ? stopped : visit_memo(&((PlanKernel *)self)->memo, visit, arg);
}

static int plan_clear(PyObject *self)
{
    clear_memo(&((PlanKernel *)self)->memo);
    return face_clear(self);
}

static int view_traverse(PyObject *self, visitproc visit, void *arg)
{
    int stopped = face_traverse(self, visit, arg);
    return stopped ? stopped : visit_memo(&((ViewKernel *)self)->memo, visit, arg);
}

static int view_clear(PyObject *self)
{
    clear_memo(&((ViewKernel *)self)->memo);
    return face_clear(self);
}

FACE(CallType, "Call", Call, 0, call_traverse, call_clear);
FACE(ArrayKernelType, "ArrayKernel", ArrayKernel, HOLDS(ArrayKernel, rest), face_traverse, face_clear);
FACE(RecordKernelType, "RecordKernel", RecordKernel, HOLDS(RecordKernel, node), face_traverse, face_clear);
FACE(ViewKernelType, "ViewKernel", ViewKernel, HOLDS(ViewKernel, remembered), view_traverse, view_clear);
FACE(PlanKernelType, "PlanKernel", PlanKernel, HOLDS(PlanKernel, standard[MOST - 1]), plan_traverse, plan_clear);
FACE(CompositeKernelType, "CompositeKernel", CompositeKernel, 0, composite_traverse, composite_clear);
FACE(CopyKernelType, "CopyKernel", CopyKernel, 0, face_traverse, face_clear);
FACE(SelectKernelType, "SelectKernel", SelectKernel, HOLDS(SelectKernel, default_device), face_traverse, face_clear);
FACE(FactoryKernelType, "FactoryKernel", FactoryKernel, HOLDS(FactoryKernel, number), face_traverse, face_clear);
FACE(FillKernelType, "FillKernel", FillKernel, HOLDS(FillKernel, number), face_traverse, face_clear);
FACE(IntoKernelType, "IntoKernel", IntoKernel, HOLDS(IntoKernel, finish), face_traverse, face_clear);
FACE(GuardKernelType, "GuardKernel", GuardKernel, HOLDS(GuardKernel, mask), face_traverse, face_clear);
FACE(ElementKernelType, "ElementKernel", Face, 0, face_traverse, face_clear);
FACE(DrawKernelType, "DrawKernel", DrawKernel, HOLDS(DrawKernel, functions), face_traverse, face_clear);
FACE(CustomKernelType, "CustomKernel", CustomKernel, HOLDS(CustomKernel, finish), face_traverse, face_clear);
FACE(GetterType, "Getter", Getter, HOLDS(Getter, full), face_traverse, face_clear);
FACE(WriteKernelType, "WriteKernel", WriteKernel, HOLDS(WriteKernel, below), face_traverse, face_clear);

static int take(PyObject *from, const char *name, PyObject **to)
{
    PyObject *value = PyDict_GetItemString(from, name);
    if (value == NULL) {
        PyErr_Format(PyExc_KeyError, "%s", name);
        return -1;
    }
    Py_XSETREF(*to, Py_NewRef(value));
    return 0;
}

/* The loops of one of NumPy's functions for float and double, which compiled functions are lent. */
static int lend_loops(PyObject *from, const char *name, size_t at)
{
    PyObject *ufunc = PyDict_GetItemString(from, name);
    if (ufunc == NULL || !PyObject_TypeCheck(ufunc, &PyUFunc_Type)) {
        PyErr_Format(PyExc_KeyError, "%s", name);
        return -1;
    }
    for (int is_double = 0; is_double < 2; is_double++) {
        Loop loop = loop_of((PyUFuncObject *)ufunc, is_double ? NPY_DOUBLE : NPY_FLOAT);
        turnout_loop *lent = (turnout_loop *)((char *)&LENT[is_double] + at);
        lent->run = (void (*)(char **, const intptr_t *, const intptr_t *, void *))loop.run;
        lent->given = loop.data;
    }
    return 0;
}

/* Said once, before anything is made: the classes and variables of Turnout that calls read. */
static PyObject *configure(PyObject *module, PyObject *names)
{
    static const struct {
        PyTypeObject **type;
        const char *name;
        Py_ssize_t *at;
    } slots[] = {
        {&Tensor, "offset", &AT_OFFSET}, {&Storage, "array", &AT_ROOT}, {&Storage, "of", &AT_OF},
        {&Storage, "ver", &AT_STORAGE_VER},
        {&Storage, "views", &AT_VIEWS}, {&View, "base", &AT_BASE}, {&View, "chain", &AT_CHAIN}, {&View, "seen", &AT_SEEN},
        {&View, "multi", &AT_MULTI}, {&View, "no_grad", &AT_NO_GRAD}, {&View, "maker", &AT_MAKER},
    };
    const struct {
        const char *name;
        PyObject **to;
    } values[] = {
        {"Tensor", (PyObject **)&Tensor}, {"Storage", (PyObject **)&Storage}, {"View", (PyObject **)&View}, {"Size", (PyObject **)&SIZE},
        {"DType", &DTYPE}, {"Device", &DEVICE}, {"STUB_BUILTINS", &STUB_BUILTINS}, {"DISPATCH", &DISPATCH}, {"FRESH", &FRESH},
        {"GRAD", &GRAD}, {"CLOCK", &CLOCK}, {"MISSING", &MISSING}, {"TRACKED", &TRACKED}, {"FAKE_MODE", &FAKE_MODE}, {"EMPTY", &EMPTY},
        {"DEFAULT_DTYPES", &DEFAULT_DTYPES}, {"DEFAULT_DEVICES", &DEFAULT_DEVICES}, {"OVERRIDES", &OVERRIDES},
        {"DEFAULT_GENERATOR", &DEFAULT_GENERATOR}, {"restore", &RESTORE},
    };
    if (!PyDict_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "a dict of names");
        return NULL;
    }
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (take(names, values[i].name, values[i].to) < 0)
            return NULL;
    if (lend_loops(names, "ADD", offsetof(turnout_loops, add)) < 0 || lend_loops(names, "LOG", offsetof(turnout_loops, log)) < 0
        || lend_loops(names, "SQRT", offsetof(turnout_loops, sqrt)) < 0 || lend_loops(names, "COS", offsetof(turnout_loops, cos)) < 0
        || find_tensor_slots() < 0)
        return NULL;
    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
        if ((*slots[i].at = slot_of(*slots[i].type, slots[i].name)) < 0)
            return NULL;
    if ((AT_BACKEND = slot_of((PyTypeObject *)DEVICE, "backend")) < 0 || (AT_EPOCH = slot_of(Py_TYPE(CLOCK), "epoch")) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *is_compiled(PyObject *module, PyObject *value)
{
    return PyBool_FromLong(is_face(value));
}

static PyObject *taken(PyObject *module, PyObject *unused) { return PyLong_FromSsize_t(TAKEN); }

static PyObject *swept(PyObject *module, PyObject *unused) { return PyLong_FromSsize_t(SWEPT); }

static PyMethodDef functions[] = {
    {"taken", taken, METH_NOARGS, "taken()\n--\n\nHow many calls of stubs, functions and methods were finished here."},
    {"configure", configure, METH_O, "configure(names)\n--\n\nName the classes and variables of Turnout that calls read."},
    {"call", make_call, METH_VARARGS, "call(function, targets, tail, named, overloads)\n--\n\nA stub, function or method."},
    {"array_kernel", (PyCFunction)(void (*)(void))make_array_kernel, METH_VARARGS | METH_KEYWORDS, "The wrapper of an array kernel."},
    {"record_kernel", (PyCFunction)(void (*)(void))make_record_kernel, METH_VARARGS | METH_KEYWORDS, "A kernel at Autograd."},
    {"view_kernel", (PyCFunction)(void (*)(void))make_view_kernel, METH_VARARGS | METH_KEYWORDS, "A kernel at ADInplaceOrView that records a view."},
    {"plan_kernel", (PyCFunction)(void (*)(void))make_plan_kernel, METH_VARARGS | METH_KEYWORDS, "The wrapper of an array kernel whose shape function's answers are kept."},
    {"composite_kernel", make_composite_kernel, METH_VARARGS, "A composite kernel that ends in one call of an operator."},
    {"copy_kernel", make_copy_kernel, METH_VARARGS, "A composite kernel that copies its first argument."},
    {"select_kernel", make_select_kernel, METH_VARARGS, "A factory at BackendSelect."},
    {"factory_kernel", (PyCFunction)(void (*)(void))make_factory_kernel, METH_VARARGS | METH_KEYWORDS, "A factory that fills with one number, or with none."},
    {"getter", (PyCFunction)(void (*)(void))make_getter, METH_VARARGS | METH_KEYWORDS, "x[index], or x[index] = value."},
    {"write_kernel", make_write_kernel, METH_VARARGS, "A kernel at ADInplaceOrView that counts a write."},
    {"fill_kernel", make_fill_kernel, METH_VARARGS, "A kernel that fills its first argument with a number."},
    {"into_kernel", make_into_kernel, METH_VARARGS, "A kernel that writes what the functional variant computes."},
    {"guard_kernel", make_guard_kernel, METH_VARARGS, "A kernel in a context without the functionalities that the call has passed."},
    {"element_kernel", make_element_kernel, METH_VARARGS, "A kernel that copies, reads, counts or draws few elements."},
    {"draw_kernel", make_draw_kernel, METH_VARARGS, "Random numbers, by a function of a table."},
    {"custom_kernel", (PyCFunction)(void (*)(void))make_custom_kernel, METH_VARARGS | METH_KEYWORDS, "The wrapper of a kernel of the user on arrays."},
    {"fact", make_fact, METH_VARARGS, "The property `shape` or `dtype` of tensors."},
    {"sweep", make_sweep, METH_VARARGS, "What takes the nodes of a backward pass that need no Python."},
    {"plain_root", (PyCFunction)(void (*)(void))plain_root, METH_FASTCALL, "plain_root(tensor, levels)\n--\n\n(edge, 1), or None."},
    {"keeper", make_keeper, METH_O, "keeper(lock)\n--\n\nWhat makes a gradient the first one of its leaf."},
    {"add_formula", add_formula, METH_VARARGS, "Say what the nodes of a class compute."},
    {"call_operators", call_operators, METH_VARARGS, "Call operators and packets without a frame of their own, where a call is finished here."},
    {"call_handles", call_handles, METH_O, "call_handles(handle)\n--\n\nCall what an operator calls where a handle is called."},
    {"swept", swept, METH_NOARGS, "swept()\n--\n\nHow many nodes of backward passes were finished here."},
    {"is_compiled", is_compiled, METH_O, "is_compiled(value)\n--\n\nWhether a callable was made here."},
    {NULL},
};

/* The versions that setup.py finds in pyproject.toml, as text */
#define QUOTED_(version) #version
#define QUOTED(version) QUOTED_(version)

static int fill(PyObject *module)
{
    if (!is_of_this_interpreter())
        return -1;
    import_array1(-1);
    import_umath1(-1);
    static PyTypeObject *const types[] = {
        &FaceType, &CallType.type, &ArrayKernelType.type, &RecordKernelType.type, &ViewKernelType.type, &WriteKernelType.type,
        &PlanKernelType.type, &CompositeKernelType.type, &CopyKernelType.type, &SelectKernelType.type, &FactoryKernelType.type,
        &FillKernelType.type, &IntoKernelType.type, &ElementKernelType.type, &GuardKernelType.type, &GetterType.type,
        &CustomKernelType.type, &DrawKernelType.type, &ShapeType, &DtypeType, NULL,
    };
    if (ready_types(types) < 0 || intern_names() < 0)
        return -1;
    FULL_OPTIONS = PyTuple_Pack(2, S_DTYPE, S_DEVICE);
    if (FORMULAS == NULL) /* not filled by an earlier import */
        FORMULAS = PyDict_New();
    ONE = PyLong_FromLong(1);
    ZERO = PyLong_FromLong(0);
    NO_TEXT = PyUnicode_FromString("");
    if (FORMULAS == NULL || ONE == NULL || ZERO == NULL || FULL_OPTIONS == NULL || NO_TEXT == NULL)
        return -1;
    PyObject *built_for = Py_BuildValue("{ssss}", "turnout-aten", QUOTED(FOR_ATEN), "turnout-core", QUOTED(FOR_CORE));
    PyObject *words = function_words();
    int failed = built_for == NULL || PyModule_AddObjectRef(module, "BUILT_FOR", built_for) < 0
                 || PyModule_AddObjectRef(module, "FORMULA_WORDS", words) < 0
                 || PyModule_AddIntConstant(module, "FORMULA_REGISTERS", REGISTERS) < 0
                 || PyModule_AddIntConstant(module, "FORMULA_OPERANDS", OPERANDS) < 0;
    Py_XDECREF(built_for);
    Py_XDECREF(words);
    return failed ? -1 : 0;
}

MODULE_SLOTS(fill);

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_calls", .m_methods = functions, .m_slots = slots};

PyMODINIT_FUNC PyInit__calls(void) { return PyModuleDef_Init(&definition); }
