/* What the modules of turnout-speed share: the slots of tensors, and the questions that each asks first. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stddef.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include "names.h"
#include "one_interpreter.h"

#define DIMS NPY_MAXDIMS /* so whatever an array has fits */
#define MOST 12 /* arguments of an operator; one with more keeps its Python function */

/* Set once by each module's `configure`. */
static PyTypeObject *Tensor;
static Py_ssize_t AT_ARRAY, AT_KEYS, AT_DEVICE, AT_GMASK, AT_NODE, AT_VER, AT_STORAGE, AT_VIEW_OF, AT_EXTRA;
static PyObject *STUB_BUILTINS, *DISPATCH, *RESTORE, *ZERO;

#define SLOT(object, at) (*(PyObject **)((char *)(object) + (at)))

/* What a module needs. The GIL: a slot that is read is borrowed until the next call that may run something else. */
#ifdef Py_mod_gil
#define WITH_GIL {Py_mod_gil, Py_MOD_GIL_USED},
#else
#define WITH_GIL
#endif
#define MODULE_SLOTS(fill) static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)fill}, ONE_INTERPRETER WITH_GIL {0, NULL}}

static inline PyObject *wrong_count(void)
{
    PyErr_SetString(PyExc_ValueError, "a wrong number of arguments");
    return NULL;
}

/* A debugger or a profiler sees the generated Python text: nothing is taken here. */
static inline int is_traced(void)
{
    PyThreadState *state = PyThreadState_Get();
    return state->c_tracefunc != NULL || state->c_profilefunc != NULL;
}

/* Set a variable of the context to what it was before a call; an error that is set stays. -1 with an error of its own. */
static int put_back(PyObject *variable, PyObject *value)
{
    PyObject *type, *error, *traceback, *done;
    PyErr_Fetch(&type, &error, &traceback);
    if ((done = PyContextVar_Set(variable, value)) == NULL && PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
        done = PyObject_CallFunctionObjArgs(RESTORE, variable, value, NULL); /* it has memory for this */
    }
    if (done != NULL)
        PyErr_Restore(type, error, traceback);
    else {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    }
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Where a slot of a class lies in its instances; -1 with an error if the name is not a slot that holds any object. */
static Py_ssize_t slot_of(PyTypeObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t at = -1;
    if (found != NULL && Py_IS_TYPE(found, &PyMemberDescr_Type) && ((PyMemberDescrObject *)found)->d_member->type == T_OBJECT_EX)
        at = ((PyMemberDescrObject *)found)->d_member->offset;
    else if (found != NULL)
        PyErr_Format(PyExc_TypeError, "%s.%s is not a slot", type->tp_name, name);
    Py_XDECREF(found);
    return at;
}

/* Find the slots of tensors, and what each module has from the beginning. 0, or -1 with an error. */
static int find_tensor_slots(void)
{
    static const struct {
        const char *name;
        Py_ssize_t *at;
    } slots[] = {
        {"array", &AT_ARRAY}, {"keys", &AT_KEYS}, {"device", &AT_DEVICE}, {"gmask", &AT_GMASK}, {"node", &AT_NODE},
        {"ver", &AT_VER}, {"storage", &AT_STORAGE}, {"view_of", &AT_VIEW_OF}, {"extra", &AT_EXTRA},
    };
    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
        if ((*slots[i].at = slot_of(Tensor, slots[i].name)) < 0)
            return -1;
    return 0;
}

#include "state.h"
#include "face.h"
