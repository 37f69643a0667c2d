/* For a module that keeps names or classes in static variables: one interpreter of a process has it, which may import it again. */
#ifndef TURNOUT_ONE_INTERPRETER_H
#define TURNOUT_ONE_INTERPRETER_H

/* Whether the module may be filled here; 0 with an ImportError. */
static int is_of_this_interpreter(void)
{
    static int64_t owner = -1;
    int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (owner >= 0 && owner != here) {
        PyErr_SetString(PyExc_ImportError, "another interpreter of this process has loaded it");
        return 0;
    }
    owner = here;
    return here >= 0;
}

/* A slot of the module. The stable ABI of 3.11 has none for it. */
#ifdef Py_mod_multiple_interpreters
#define ONE_INTERPRETER {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#else
#define ONE_INTERPRETER
#endif

#endif
