/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_python SCRIPT SECONDS: Python in a program that is built together with inject/, for the
 * sanitizers. Its module stress has, all of them without the GIL: launch(), a call;
 * linger(seconds), a call of another class that lasts so long, which is true if our own thread took
 * its stack meanwhile; and look(), which has our own thread look around now, as it does once a
 * second. Prints how many calls were made.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <time.h>

#include "live.h"
#include "record/pool.h"
#include "record/wake.h"
#include "stress_calls.h"

static const uint64_t words[] = {0x1000, 1, 1, 0, 0x100};

static PyObject *launch(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    Py_BEGIN_ALLOW_THREADS stress_call(&stress_launch, words);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static const uint8_t wait_kinds[] = {ARG_STREAM};
static const uint8_t none_late[API_ARGS_MAX];
static const struct call_site wait_site = {API_CODE_cudaStreamSynchronize,
                                           1,
                                           wait_kinds,
                                           none_late,
                                           API_SYNC,
                                           API_PENDING_OF_RUNTIME,
                                           API_CAPTURE_NONE,
                                           COST_QUERY};

struct pause {
    struct timespec time;
    bool was_seen;
};

/* The open record lies behind the whole ones, and its second word says when it began. */
static void pause_here(void *context)
{
    struct pause *pause = context;
    const struct thread *t = &this_thread;
    nanosleep(&pause->time, NULL);
    uint64_t begin = ((const uint64_t *)(const void *)(t->records + t->used))[1];
    uint64_t seen = chunk_u64(t->records - LIVE_CHUNK_HEAD_BYTES, LIVE_CHUNK_OPEN_STACK);
    pause->was_seen =
        seen >> 32 == live_open_stack(begin, 0) >> 32 && seen != live_open_stack(begin, 0);
}

static PyObject *linger(PyObject *self, PyObject *seconds)
{
    double s = PyFloat_AsDouble(seconds);
    struct pause pause = {.time = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)}};
    (void)self;
    Py_BEGIN_ALLOW_THREADS stress_call_during(&wait_site, words, pause_here, &pause);
    Py_END_ALLOW_THREADS return PyBool_FromLong(pause.was_seen);
}

static PyObject *look(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    Py_BEGIN_ALLOW_THREADS writer_flush(0, 1000000000);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"launch", launch, METH_NOARGS, NULL},
                                  {"linger", linger, METH_O, NULL},
                                  {"look", look, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

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
