/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_python SCRIPT SECONDS: Python in a program that is built together with inject/, for the
 * sanitizers. Its module stress has launch(), which lets go of the GIL around the call. Prints how
 * many calls were made.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>

#include "stress_calls.h"

static PyObject *launch(PyObject *self, PyObject *none)
{
    const uint64_t words[] = {0x1000, 1, 1, 0, 0x100};
    (void)self;
    (void)none;
    Py_BEGIN_ALLOW_THREADS stress_call(&stress_launch, words);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"launch", launch, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "stress", .m_methods = functions};

static PyObject *make_module(void)
{
    return PyModule_Create(&module);
}

int main(int argc, char **argv)
{
    FILE *script = argc > 2 ? fopen(argv[1], "r") : NULL;
    if (!script)
        return 2;
    PyImport_AppendInittab("stress", make_module);
    Py_Initialize();
    PyObject *seconds = PyFloat_FromDouble(atof(argv[2]));
    PyObject_SetAttrString(PyImport_AddModule("__main__"), "seconds", seconds);
    Py_DECREF(seconds);
    if (PyRun_SimpleFile(script, argv[1]) < 0)
        return 1;
    Py_Finalize();
    fclose(script);
    printf("%lu\n", stress_count());
    return 3;
}
