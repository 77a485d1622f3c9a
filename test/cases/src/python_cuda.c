/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Python module that calls the simulated CUDA: what PyTorch is to a training script. Of the
 * stable ABI: one build serves every version of Python.
 */
#ifndef FREE_THREADED /* which has no stable ABI */
#define Py_LIMITED_API 0x03080000
#endif
#include <Python.h>

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <unistd.h>

/* One call that is recorded; without inlining, so that it is a frame. */
static __attribute__((noinline)) void call_cuda(void)
{
    void *memory = NULL;
    cudaMalloc(&memory, 64);
    __asm__ volatile("");
}

/* Without the GIL, as PyTorch does it. */
static PyObject *work(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    call_cuda();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *work_held(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    call_cuda();
    Py_RETURN_NONE;
}

/* Back into Python. */
static __attribute__((noinline)) PyObject *call_python(PyObject *self, PyObject *function)
{
    (void)self;
    PyObject *result = PyObject_CallObject(function, NULL);
    __asm__ volatile("");
    return result;
}

static void *native_main(void *data)
{
    (void)data;
    call_cuda();
    call_cuda();
    return NULL;
}

/* On a thread that Python knows nothing of, for which the caller waits without the GIL. */
static PyObject *run_backward(PyObject *self, PyObject *unused)
{
    pthread_t thread;
    (void)self, (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    pthread_create(&thread, NULL, native_main, NULL);
    pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* So many calls one after another, as long as the interpreter may live or longer. */
static PyObject *work_on(PyObject *self, PyObject *count)
{
    long left = PyLong_AsLong(count);
    (void)self;
    Py_BEGIN_ALLOW_THREADS;
    for (; left > 0; left--) {
        call_cuda();
        usleep(50);
    }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* A frame whose line the test looks up: the call is no jump. */
static __attribute__((noinline)) void synchronize(cudaStream_t stream)
{
    cudaStreamSynchronize(stream); // waits here
    __asm__ volatile("");
}

static PyObject *wait_for(PyObject *self, PyObject *stream)
{
    cudaStream_t waited_for = PyLong_AsVoidPtr(stream);
    (void)self;
    Py_BEGIN_ALLOW_THREADS;
    synchronize(waited_for);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* As careless extensions do it: no thread of Python's can run meanwhile. */
static PyObject *wait_held(PyObject *self, PyObject *stream)
{
    (void)self;
    synchronize(PyLong_AsVoidPtr(stream));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"work", work, METH_NOARGS, NULL},
    {"work_held", work_held, METH_NOARGS, NULL},
    {"work_on", work_on, METH_O, NULL},
    {"call_python", call_python, METH_O, NULL},
    {"wait_for", wait_for, METH_O, NULL},
    {"wait_held", wait_held, METH_O, NULL},
    {"run_backward", run_backward, METH_NOARGS, NULL},
    {0},
};

/* In two phases: sub-interpreters of free-threaded builds take no others. */
static PyModuleDef_Slot slots[] = {
#ifdef FREE_THREADED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0}};
static struct PyModuleDef module = {.m_base = PyModuleDef_HEAD_INIT,
                                    .m_name = "python_cuda",
                                    .m_methods = methods,
                                    .m_slots = slots};

PyMODINIT_FUNC PyInit_python_cuda(void)
{
    return PyModuleDef_Init(&module);
}
