/* The names that the modules look up: interned once, S_VER for "ver". */
#define NAMES(X)                                                                                                        \
    X(ACQUIRE, "acquire") X(ADD, "__add__") X(BACKEND, "backend") X(CALL, "call") X(CURRENT_DEVICE, "current_device")   \
    X(DENSE, "dense") X(DEVICE, "device") X(DISPATCH, "DISPATCH") X(DTYPE, "dtype") X(GRAD, "grad") \
    X(INDEXED, "indexed") X(IS_DEFERRED, "is_deferred") X(KEEPS, "keeps") X(KEYS, "keys") X(MM, "mm")                   \
    X(NATIVE, "native") X(NEG, "__neg__") X(NEW_ARRAY, "new_array") X(PLACE, "place")     \
    X(RELEASE, "release") X(REMEMBERED, "remembered") X(RESOLVE_DEVICE, "resolve_device") X(SHAPE, "shape")             \
    X(SHARED_STORAGE, "shared_storage") X(SPREAD, "spread") X(TANGENTS, "tangents") X(TENSOR, "tensor") X(VERSION, "version")   \
    X(VIEW_ARRAY, "view_array")

#define DECLARE(NAME, TEXT) static PyObject *S_##NAME;
NAMES(DECLARE)
#undef DECLARE

/* 0, or -1 with an error. */
static int intern_names(void)
{
#define INTERN(NAME, TEXT) \
    if ((S_##NAME = PyUnicode_InternFromString(TEXT)) == NULL) \
        return -1;
    NAMES(INTERN)
#undef INTERN
    return 0;
}

/* Make types ready: a list of them that ends with NULL. 0, or -1 with an error. */
static int ready_types(PyTypeObject *const *types)
{
    for (; *types != NULL; types++)
        if (PyType_Ready(*types) < 0)
            return -1;
    return 0;
}
