/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that loads the library argv[1] as its own business (RTLD_LOCAL), and Python is in it;
 * runs the script argv[2], in which work() calls CUDA; calls CUDA before, after, and once more when
 * the library is gone.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

/* As much of Python's stable ABI as is needed. */
typedef struct object object;
struct method {
    const char *name;
    object *(*function)(object *, object *);
    int flags;
    const char *text;
};
#define NO_ARGUMENTS 4

static object *none;
static void (*keep)(object *);

static void call_cuda(void)
{
    void *memory = NULL;
    cudaMalloc(&memory, 64);
    __asm__ volatile("");
}

static object *work(object *self, object *unused)
{
    (void)self, (void)unused;
    call_cuda();
    keep(none);
    return none;
}

static struct method method = {"work", work, NO_ARGUMENTS, NULL};

int main(int argc, char **argv)
{
    void *python = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    FILE *file = python ? fopen(argv[2], "r") : NULL;
    static char script[10000];
    if (!file || !fread(script, 1, sizeof script - 1, file)) {
        fprintf(stderr, "%s\n", python ? "no script" : dlerror());
        return 2;
    }
    fclose(file);
    void (*initialize)(int) = dlsym(python, "Py_InitializeEx");
    int (*run)(const char *, void *) = dlsym(python, "PyRun_SimpleStringFlags");
    object *(*module)(const char *) = dlsym(python, "PyImport_AddModule");
    object *(*function)(struct method *, object *, object *) = dlsym(python, "PyCFunction_NewEx");
    int (*set)(object *, const char *, object *) = dlsym(python, "PyObject_SetAttrString");
    int (*finalize)(void) = dlsym(python, "Py_FinalizeEx");
    keep = dlsym(python, "Py_IncRef");
    none = dlsym(python, "_Py_NoneStruct");
    call_cuda();
    for (int i = 0; i < 2; i++) {
        initialize(0);
        set(module("__main__"), "work", function(&method, NULL, NULL));
        if (run(script, NULL) != 0)
            return 1;
        call_cuda();
        finalize();
        call_cuda();
    }
    dlclose(python);
    call_cuda();
    return 0;
}
