/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_work SCENE: calls of libraries that use CUDA, by the way that it was built for. With
 * -DBY_DLSYM=NAME it is linked with none, and asks that file, opened for itself alone.
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int gemm_ex(void *, int, int, int, int, int, const void *, const void *, int, int,
                    const void *, int, int, const void *, void *, int, int, int, int);
#define H(number) ((void *)(uintptr_t)(number))

#ifdef BY_DLSYM
static gemm_ex *gemm;
static jmp_buf *leave;

static void find(void)
{
    void *library = dlopen(BY_DLSYM, RTLD_NOW | RTLD_LOCAL);
    gemm = library ? (gemm_ex *)dlsym(library, "cublasGemmEx") : NULL;
    leave = library ? (jmp_buf *)dlsym(library, "cublas_double_exit") : NULL;
    if (!gemm || !leave) {
        fprintf(stderr, "library_work: %s\n", dlerror());
        exit(1);
    }
}
#else
gemm_ex cublasGemmEx;
extern jmp_buf cublas_double_exit;
static gemm_ex *const gemm = cublasGemmEx;
static jmp_buf *const leave = &cublas_double_exit;

static void find(void)
{
}
#endif

static int multiply(int size, int algo)
{
    return gemm(H(0x11), 1, 0, size, size + 1, size + 2, H(0x21), H(0x31), 14, size, H(0x41), 2,
                size + 3, H(0x51), H(0x61), 0, size + 4, 77, algo);
}

/* The stack between here and the call stays as it was, and so does what an earlier call left there.
 */
static __attribute__((noinline)) void multiply_deeper(int size)
{
    volatile char untouched[6000];
    untouched[0] = 0;
    multiply(size + untouched[0], 0);
}

static void *thread(void *number)
{
    for (int i = 0; i < 50; i++)
        multiply(1000 * (int)(intptr_t)number + i, i % 2 ? 99 : 0);
    return NULL;
}

static void call_at_the_end(void *size)
{
    multiply((int)(intptr_t)size, 0);
}

/* It ends inside of the library; what its keys' destructors call comes after that. */
static void *ending_thread(void *key)
{
    pthread_setspecific(*(pthread_key_t *)key, (void *)30);
    multiply(10, 0);
    multiply(20, 95);
    return NULL;
}

#ifdef BY_DLSYM
/* Elsewhere each time: what lay there before is taken. */
static int reopen(void)
{
    for (int i = 1; i <= 12; i++) {
        void *library = dlopen(BY_DLSYM, RTLD_NOW | RTLD_LOCAL);
        Dl_info where;
        if (!library || !(gemm = (gemm_ex *)dlsym(library, "cublasGemmEx")) || multiply(i, 0) != 0)
            return 1;
        void *inside = dlsym(library, "cublas_double_exit");
        if (!inside || !dladdr(inside, &where) || dlclose(library) != 0)
            return 1;
        if (dlopen(BY_DLSYM, RTLD_NOW | RTLD_NOLOAD))
            return 1; /* it is still there */
        if (i % 2)
            mmap(where.dli_fbase, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return 3;
}
#endif

int main(int count, char **arguments)
{
    const char *scene = count == 2 ? arguments[1] : "";
#ifdef BY_DLSYM
    if (strcmp(scene, "reopen") == 0)
        return reopen();
#endif
    find();
    if (strcmp(scene, "ends") == 0) {
        pthread_t thread;
        pthread_key_t key;
        pthread_key_create(&key, call_at_the_end);
        for (int i = 0; i < 3; i++) {
            pthread_create(&thread, NULL, ending_thread, &key);
            pthread_join(thread, NULL);
        }
        return multiply(40, 0) == 0 ? 3 : 1;
    }
    if (strcmp(scene, "calls") == 0) {
        for (int i = 1; i <= 20; i++)
            if (multiply(i, 0) != 0)
                return 1;
        return multiply(21, 97) == 13 ? 3 : 1;
    }
    if (strcmp(scene, "nested") == 0) {
        for (int i = 1; i <= 5; i++)
            multiply(i, 99);
        return 3;
    }
    if (strcmp(scene, "lt") == 0) {
        for (int i = 1; i <= 5; i++)
            if (multiply(i, 96) != 0)
                return 1;
        return 3;
    }
    if (strcmp(scene, "left") == 0) {
        for (volatile int i = 1; i <= 6; i++)
            if (setjmp(*leave) == 0)
                multiply(i, i % 2 ? 98 : 0);
        return 3;
    }
    if (strcmp(scene, "deeper") == 0) {
        for (volatile int i = 1; i <= 6; i++)
            if (i % 2 == 0)
                multiply_deeper(i);
            else if (setjmp(*leave) == 0)
                multiply(i, 98);
        return 3;
    }
    if (strcmp(scene, "many") == 0) { /* until stdin ends, in each round many */
        for (struct pollfd in = {.fd = 0, .events = POLLIN}; poll(&in, 1, 0) == 0;)
            for (int i = 1; i <= 1000; i++)
                if (multiply(i, 0) != 0)
                    return 1;
        void (*mark)(const char *) = (void (*)(const char *))dlsym(RTLD_DEFAULT, "gpuprof_mark");
        mark("given up");
        for (int i = 1; i <= 1000; i++)
            multiply(i, 0);
        return 3;
    }
    if (strcmp(scene, "threads") == 0) {
        pthread_t threads[4];
        for (intptr_t i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, thread, (void *)(i + 1));
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        return 3;
    }
    if (strcmp(scene, "fork") == 0) {
        int status = 0;
        multiply(1, 0);
        if (fork() == 0) {
            multiply(2, 0);
            _exit(0);
        }
        return wait(&status) > 0 && status == 0 && multiply(3, 0) == 0 ? 3 : 1;
    }
    fprintf(stderr, "library_work: calls|nested|lt|left|deeper|threads|fork\n");
    return 2;
}
