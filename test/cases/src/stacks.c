/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls whose stacks are known: stacks WAY [ARGUMENT]...; the innermost functions are leaf_call and
 * middle, and above them is what the way is named after.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define HERE __asm__ volatile("" ::: "memory") /* what comes before it is no tail call */

__attribute__((noinline)) static void leaf_call(size_t bytes)
{
    void *memory;
    if (cudaMalloc(&memory, bytes) != cudaSuccess)
        abort();
    HERE;
}

__attribute__((noinline)) static void middle(size_t bytes)
{
    leaf_call(bytes);
    HERE;
}

/* Its frame is found through a pointer that the compiler made, because it is aligned. */
__attribute__((noinline)) static void aligned(size_t bytes)
{
    volatile char room[64] __attribute__((aligned(64)));
    room[bytes % 64] = 1;
    middle(bytes);
    room[0] = room[bytes % 64];
    HERE;
}

__attribute__((noinline)) static void sized(size_t bytes)
{
    volatile char *room = __builtin_alloca(bytes);
    room[0] = 1;
    middle(bytes);
    room[bytes - 1] = room[0];
    HERE;
}

/*
 * By hand: the frame of one is found through a register that compilers do not use for that; the
 * other keeps its caller's frame pointer in such a one.
 */
void strange(void (*function)(size_t), size_t data);
void untold(void (*function)(size_t), size_t data);
#define BEGIN(name) ".text\n.globl " name "\n" name ":\n.cfi_startproc\n"
#define END(name)   "ret\n.cfi_endproc\n.size " name ", .-" name "\n.type " name ", "
#if defined(__x86_64__)
#define ENTER "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\n"
#define CALL  "mov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\n"
#define LEAVE "pop %rbx\n.cfi_def_cfa_offset 8\n"
__asm__(BEGIN("strange") ENTER
        "mov %rsp, %rbx\n.cfi_def_cfa_register %rbx\n"
        "sub $64, %rsp\nand $-64, %rsp\n" CALL
        "mov %rbx, %rsp\n.cfi_def_cfa_register %rsp\n" LEAVE END("strange") "@function\n");
__asm__(BEGIN("untold") ENTER
        "mov %rbp, %rbx\n.cfi_register %rbp, %rbx\nxor %ebp, %ebp\n" CALL
        "mov %rbx, %rbp\n.cfi_restore %rbp\n" LEAVE END("untold") "@function\n");
#else
#define ENTER                                                                                      \
    "stp x19, x30, [sp, -16]!\n.cfi_def_cfa_offset 16\n.cfi_offset 19, -16\n.cfi_offset 30, -8\n"
#define CALL  "mov x2, x0\nmov x0, x1\nblr x2\n"
#define LEAVE "ldp x19, x30, [sp], 16\n.cfi_def_cfa_offset 0\n.cfi_restore 19\n.cfi_restore 30\n"
__asm__(BEGIN("strange") ENTER
        "mov x19, sp\n.cfi_def_cfa_register 19\nsub sp, sp, 64\n" CALL
        "mov sp, x19\n.cfi_def_cfa_register 31\n" LEAVE END("strange") "%function\n");
__asm__(BEGIN("untold") ENTER "mov x19, x29\n.cfi_register 29, 19\nmov x29, 0\n" CALL
                              "mov x29, x19\n.cfi_restore 29\n" LEAVE END("untold") "%function\n");
#endif

/* It is found by the frame pointer. */
__attribute__((noinline)) static void by_pointer(size_t bytes)
{
    volatile char *room = __builtin_alloca(bytes);
    room[0] = 1;
    untold(middle, bytes);
    room[bytes - 1] = room[0];
    HERE;
}

__attribute__((noinline)) static void recursive(unsigned depth)
{
    if (depth)
        recursive(depth - 1);
    else
        middle(1);
    HERE;
}

static void *thread_main(void *data)
{
    middle((size_t)(uintptr_t)data);
    HERE;
    return NULL;
}

static void destroy(void *data)
{
    middle((size_t)(uintptr_t)data);
    HERE;
}

static pthread_key_t key;

static void *with_destructor(void *data)
{
    pthread_setspecific(key, data);
    return NULL;
}

/* On a stack of so many bytes, 0: the usual one. */
static void in_thread(void *(*function)(void *), size_t bytes)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (bytes && pthread_attr_setstacksize(&attributes, bytes) != 0)
        abort();
    pthread_key_create(&key, destroy);
    if (pthread_create(&thread, &attributes, function, (void *)64) != 0)
        abort();
    pthread_join(thread, NULL);
}

static void on_signal(int number)
{
    middle((size_t)number);
    HERE;
}

/* On a stack of its own, of which the program's other frames are not a part. */
static void on_other_stack(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_sp = malloc(256 << 10), .ss_size = 256 << 10};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static ucontext_t ours, other;

static void coroutine(void)
{
    middle(128);
    HERE;
}

static void switched(void)
{
    char *stack = malloc(256 << 10);
    getcontext(&other);
    other.uc_stack.ss_sp = stack;
    other.uc_stack.ss_size = 256 << 10;
    other.uc_link = &ours;
    makecontext(&other, coroutine, 0);
    swapcontext(&ours, &other);
    free(stack);
}

__attribute__((noinline)) static void forked(void)
{
    middle(32);
    pid_t child = fork();
    if (child == 0) {
        aligned(48);
        exit(0);
    }
    waitpid(child, NULL, 0);
    HERE;
}

static _Atomic int is_over;

__attribute__((noinline)) static void deep_free(unsigned depth)
{
    if (depth)
        deep_free(depth - 1);
    else
        cudaFree(NULL);
    HERE;
}

static void *take_stacks(void *data)
{
    while (!is_over)
        deep_free((unsigned)(uintptr_t)data);
    return NULL;
}

/* Children of a process in which a thread is always having its stack taken. */
__attribute__((noinline)) static void forks(int count)
{
    pthread_t thread;
    middle(32); /* CUDA itself is set up before anybody forks */
    pthread_create(&thread, NULL, take_stacks, (void *)30);
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        int status;
        if (child == 0) {
            alarm(20);
            deep_free(3); /* it fails: CUDA does not work in the child */
            exit(0);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            abort();
    }
    is_over = 1;
    pthread_join(thread, NULL);
}

/* A libunwind of the program's own, before or after the first stack. */
__attribute__((noinline)) static void with_unwinder(const char *path, bool is_late)
{
    if (is_late)
        middle(8);
    if (!dlopen(path, RTLD_LAZY | RTLD_GLOBAL))
        abort();
    for (volatile int i = 0; i < 3; i++)
        aligned(8);
    in_thread(thread_main, 0);
}

/* Each by its own path, one after another: the second may lie where the first one did. */
__attribute__((noinline)) static void plugins(char **paths)
{
    for (; *paths; paths++) {
        void *handle = dlopen(*paths, RTLD_NOW);
        void (*function)(size_t) = handle ? (void (*)(size_t))dlsym(handle, "plugin_call") : NULL;
        if (!function)
            abort();
        for (volatile int i = 0; i < 2; i++)
            function(16);
        dlclose(handle);
    }
    HERE;
}

/* The same file again and again; every other time something else has taken its place meanwhile. */
__attribute__((noinline)) static void reloaded(const char *path, int times)
{
    for (int i = 0; i < times; i++) {
        void *handle = dlopen(path, RTLD_NOW);
        void (*function)(size_t) = handle ? (void (*)(size_t))dlsym(handle, "plugin_call") : NULL;
        if (!function)
            abort();
        middle(8);
        function(16);
        dlclose(handle);
        if (i % 2)
            mmap((void *)((uintptr_t)function & -4096ul), 4096, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    HERE;
}

static void hold(void *may_end)
{
    while (!*(volatile bool *)may_end)
        usleep(1000);
}

/* Of three calls in turn one fails, one is not ready, which is no failure, and one succeeds. */
__attribute__((noinline)) static void failing(int count)
{
    cudaStream_t stream;
    volatile bool may_end = false;
    cudaStreamCreate(&stream);
    cudaLaunchHostFunc(stream, hold, (void *)&may_end);
    for (int i = 0; i < count; i++) {
        void *memory;
        if (cudaMalloc(&memory, SIZE_MAX / 2) == cudaSuccess)
            abort();
        cudaMemsetAsync(NULL, 0, 0, stream);
        if (cudaStreamQuery(stream) != cudaErrorNotReady)
            abort();
    }
    may_end = true;
    cudaStreamSynchronize(stream);
    HERE;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (strcmp(way, "aligned") == 0)
        aligned(7);
    else if (strcmp(way, "sized") == 0)
        sized(70);
    else if (strcmp(way, "strange") == 0)
        strange(middle, 8);
    else if (strcmp(way, "untold") == 0)
        by_pointer(70);
    else if (strcmp(way, "recursive") == 0)
        recursive((unsigned)atoi(argv[2]));
    else if (strcmp(way, "thread") == 0)
        in_thread(thread_main, 0);
    else if (strcmp(way, "destructor") == 0)
        in_thread(with_destructor, 0);
    else if (strcmp(way, "small") == 0) {
        middle(8); /* CUDA itself is set up where there is room */
        in_thread(thread_main, (size_t)PTHREAD_STACK_MIN);
    } else if (strcmp(way, "coroutine") == 0)
        switched();
    else if (strcmp(way, "fork") == 0)
        forked();
    else if (strcmp(way, "plugins") == 0)
        plugins(argv + 2);
    else if (strcmp(way, "reload") == 0)
        reloaded(argv[2], atoi(argv[3]));
    else if (strcmp(way, "forks") == 0)
        forks(atoi(argv[2]));
    else if (strcmp(way, "unwinder") == 0)
        with_unwinder(argv[2], argc > 3);
    else if (strcmp(way, "altstack") == 0) {
        on_other_stack();
        middle(8);
    } else if (strcmp(way, "failing") == 0) {
        failing(atoi(argv[2]));
    } else if (strcmp(way, "signal") == 0) {
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
        middle(8);
    } else {
        for (int i = 0; i < 5; i++)
            middle(8);
    }
    return 0;
}
