/* What all compiled callables have in common: a Python function, whose attributes they show. */
typedef enum { FAILED = -1, DECLINED = 0, DONE = 1 } Outcome;

/* An error that the Python function will meet again: forget it. KeyboardInterrupt and the like go on. */
static inline Outcome decline_after_error(void)
{
    if (PyErr_Occurred() != NULL && !PyErr_ExceptionMatches(PyExc_Exception))
        return FAILED;
    PyErr_Clear();
    return DECLINED;
}

typedef struct Face {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *weakrefs;
    Outcome (*run)(struct Face *, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result); /* of a kernel, or NULL */
} Face;

/* A type of them, and how many objects one holds: they lie behind its face, one after the other. */
typedef struct {
    PyTypeObject type;
    int held;
} Kind;

#define HOLDS(STRUCT, LAST) ((int)((offsetof(STRUCT, LAST) + sizeof(PyObject *) - sizeof(Face)) / sizeof(PyObject *)))
#define HELD(self) ((PyObject **)((char *)(self) + sizeof(Face)))

static int face_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Face *)self)->function);
    for (int i = 0; i < ((Kind *)Py_TYPE(self))->held; i++)
        Py_VISIT(HELD(self)[i]);
    return 0;
}

static int face_clear(PyObject *self)
{
    Py_CLEAR(((Face *)self)->function);
    for (int i = 0; i < ((Kind *)Py_TYPE(self))->held; i++)
        Py_CLEAR(HELD(self)[i]);
    return 0;
}

static void face_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((Face *)self)->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    Py_TYPE(self)->tp_clear(self);
    PyObject_GC_Del(self);
}

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

/* The base of all kinds, by which they are known. */
static PyTypeObject FaceType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "turnout_speed.Compiled", .tp_basicsize = sizeof(Face),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Face, vectorcall), .tp_call = PyVectorcall_Call, .tp_dealloc = face_dealloc,
    .tp_traverse = face_traverse, .tp_clear = face_clear, .tp_getattro = face_getattro, .tp_setattro = face_setattro,
    .tp_repr = face_repr, .tp_descr_get = face_get, .tp_methods = face_methods, .tp_getset = face_properties,
    .tp_weaklistoffset = offsetof(Face, weakrefs),
};

/* A kind with ways of its own for the collector. CPython would give it a `__doc__` of its own, too, and wants no vectorcall without
 * a call. */
#define FACE(KIND, NAME, STRUCT, HELD_OBJECTS, TRAVERSE, CLEAR)                                                      \
    static Kind KIND = {                                                                                            \
        {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "turnout_speed." NAME, .tp_basicsize = sizeof(STRUCT), .tp_base = &FaceType, \
         .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, \
         .tp_vectorcall_offset = offsetof(Face, vectorcall), .tp_call = PyVectorcall_Call, .tp_descr_get = face_get,  \
         .tp_getset = face_properties,                                                                               \
         .tp_traverse = TRAVERSE, .tp_clear = CLEAR},                                                                \
        HELD_OBJECTS,                                                                                               \
    }

/* Whether a value is one of these, and a kernel. */
static inline int is_face(PyObject *value) { return Py_TYPE(value)->tp_base == &FaceType; }
static inline int is_kernel(PyObject *value) { return is_face(value) && ((Face *)value)->run != NULL; }

typedef Outcome (*Run)(Face *, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result);

/* A new object of a kind, with nothing but its face; the collector does not know it yet. */
static Face *new_face(Kind *kind, PyObject *function, vectorcallfunc vectorcall, Run run)
{
    Face *made = PyObject_GC_New(Face, &kind->type);
    if (made == NULL)
        return NULL;
    memset((char *)made + sizeof(Face), 0, kind->type.tp_basicsize - sizeof(Face));
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
