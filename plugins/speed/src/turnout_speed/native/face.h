/* What all kinds of kernels have in common: a Python function, whose attributes they show. */
typedef struct Face {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *weakrefs;
    Outcome (*run)(struct Face *, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result);
} Face;

static PyTypeObject CallType, ArrayKernelType, RecordKernelType, ViewKernelType, WriteKernelType, PlanKernelType,
    CompositeKernelType, CopyKernelType, SelectKernelType, FactoryKernelType, FillKernelType,
    GetterType, ElementKernelType, IntoKernelType, GuardKernelType, CustomKernelType, DrawKernelType;

static PyObject *face_getattro(PyObject *self, PyObject *name)
{
    /* `__class__` too: to `inspect`, `pickle` and type checks it is the function. */
    if (PyUnicode_CompareWithASCIIString(name, "__reduce_ex__") == 0 || PyUnicode_CompareWithASCIIString(name, "__get__") == 0
        || PyUnicode_CompareWithASCIIString(name, "__call__") == 0)
        return PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(((Face *)self)->function, name);
}

static int face_setattro(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((Face *)self)->function, name, value);
}

static PyObject *face_repr(PyObject *self) { return PyObject_Repr(((Face *)self)->function); }

static PyObject *face_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    if (instance == NULL || instance == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

/* pickle finds it by its name, as it does a function. */
static PyObject *face_reduce(PyObject *self, PyObject *protocol)
{
    return PyObject_GetAttrString(((Face *)self)->function, "__qualname__");
}

/* `help` reads it past the attributes. */
static PyObject *face_doc(PyObject *self, void *closure) { return PyObject_GetAttrString(((Face *)self)->function, "__doc__"); }

static PyGetSetDef face_properties[] = {{"__doc__", face_doc, NULL, NULL, NULL}, {NULL}};
static PyMethodDef face_methods[] = {{"__reduce_ex__", face_reduce, METH_O, NULL}, {NULL}};

typedef Outcome (*Run)(Face *, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result);

/* A new object of one of the types, with nothing but its face; the collector does not know it yet. */
static Face *new_face(PyTypeObject *type, PyObject *function, vectorcallfunc vectorcall, Run run)
{
    Face *made = PyObject_GC_New(Face, type);
    if (made == NULL)
        return NULL;
    memset((char *)made + sizeof(Face), 0, type->tp_basicsize - sizeof(Face));
    made->vectorcall = vectorcall;
    made->function = Py_NewRef(function);
    made->weakrefs = NULL;
    made->run = run;
    return made;
}

/* An object that may be left out, for a field: a new reference, or NULL for None. */
static PyObject *or_null(PyObject *value) { return value == Py_None ? NULL : Py_NewRef(value); }

/* The end of a maker that cannot read what it was given: it lets go of what it has made, and says so if nothing else did. */
static PyObject *refuse(void *made)
{
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "no such argument");
    Py_XDECREF((PyObject *)made);
    return NULL;
}

/* The end of one that could. */
static PyObject *finished(void *made)
{
    if (made != NULL)
        PyObject_GC_Track(made);
    return made;
}

/* A kernel that has declined when a part of its text had run, and that text from there on: (ks, *args). The kernel is held, and the
 * text by it: another one at the same address would not be that kernel. */
static struct {
    Face *kernel;
    PyObject *from;
} REST;

/* The text that serves a call which a kernel has just declined. */
static PyObject *text_of(Face *face)
{
    PyObject *text = REST.kernel == face ? REST.from : face->function;
    Py_CLEAR(REST.kernel); /* the caller holds it */
    return text;
}

/* A kernel as others call it: (ks, *args). */
static PyObject *kernel_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Face *face = (Face *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (kwnames == NULL && n > 0 && !is_traced()) {
        PyObject *result = NULL;
        Outcome outcome = face->run(face, args[0], args + 1, n - 1, &result);
        if (outcome != DECLINED)
            return outcome == DONE ? result : NULL;
        return PyObject_Vectorcall(text_of(face), args, nargsf, NULL);
    }
    return PyObject_Vectorcall(face->function, args, nargsf, kwnames);
}

static void face_dealloc(PyObject *self);

/* Whether a value is one of these, and a kernel. */
static inline int is_kernel(PyObject *value)
{
    return Py_TYPE(value)->tp_dealloc == face_dealloc && ((Face *)value)->run != NULL;
}

/* Look up what serves a key set and run it, if it is a kernel of this module. */
static Outcome run_cached(PyObject *cache, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *kernel = PyDict_GetItemWithError(cache, ks);
    if (kernel == NULL)
        return decline_after_error();
    if (!is_kernel(kernel))
        return DECLINED;
    Py_INCREF(kernel); /* the cache may be cleared while it runs */
    Outcome outcome = ((Face *)kernel)->run((Face *)kernel, ks, args, n, result);
    Py_DECREF(kernel);
    return outcome;
}
