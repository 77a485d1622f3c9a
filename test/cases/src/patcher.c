/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody who counts allocations of the driver by a jump where its functions begin, as UCX's
 * memory hooks do: patcher MODULE WAY. Three pieces, as there: a library that changes code
 * (-DHELPER), a module that looks up functions and is linked with that library (-DMODULE), and the
 * program. WAY is where the module looks: "own" (in itself and what it is linked with), "default"
 * or "next". With -DCALLER the module changes nothing, and calls what it has found.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*function)(uint64_t, uint64_t);

#if defined(HELPER)
#include <sys/mman.h>
#include <unistd.h>

/* Writes over the beginning of `at`, and keeps what was there in `bytes`. */
void change_code(void *at, uint8_t *bytes, const void *to)
{
#if defined(__x86_64__)
    uint8_t jump[16] = {0x49, 0xbb, [10] = 0x41, 0xff, 0xe3}; /* movabs to, %r11; jmp *%r11 */
    memcpy(jump + 2, &to, sizeof to);
#elif defined(__aarch64__)
    uint8_t jump[16] = {0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6}; /* ldr x16, to; br x16 */
    memcpy(jump + 8, &to, sizeof to);
#endif
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *its_page = (void *)((uintptr_t)at & ~(page - 1));
    mprotect(its_page, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(bytes, to ? at : bytes, 16);
    memcpy(at, to ? jump : bytes, 16);
    mprotect(its_page, 2 * page, PROT_READ | PROT_EXEC);
    __builtin___clear_cache((char *)at, (char *)at + 16);
}

#elif defined(MODULE)
void change_code(void *at, uint8_t *bytes, const void *to);

#define COUNTED 2
static const char *const names[COUNTED] = {"cuMemAlloc_v2", "cuMemFree_v2"};
static struct {
    function original;
    uint8_t bytes[16];
} counted[COUNTED];
static unsigned events;

#ifndef CALLER
static int count(unsigned i, function replacement, uint64_t a, uint64_t b)
{
    events++;
    change_code((void *)counted[i].original, counted[i].bytes, NULL);
    int result = counted[i].original(a, b);
    change_code((void *)counted[i].original, counted[i].bytes, (void *)replacement);
    return result;
}
static int count_alloc(uint64_t a, uint64_t b)
{
    return count(0, count_alloc, a, b);
}
static int count_free(uint64_t a, uint64_t b)
{
    return count(1, count_free, a, b);
}
#endif

unsigned event_count(void);
unsigned event_count(void)
{
    return events;
}

void start(const char *way);
void start(const char *way)
{
    Dl_info info;
    void *handle = strcmp(way, "next") == 0 ? RTLD_NEXT : RTLD_DEFAULT;
    if (strcmp(way, "own") == 0 && dladdr(names, &info))
        handle = dlopen(info.dli_fname, RTLD_LAZY);
    for (unsigned i = 0; i < COUNTED; i++) {
        *(void **)&counted[i].original = dlsym(handle, names[i]);
        if (!counted[i].original || !dladdr((void *)counted[i].original, &info))
            continue;
        printf("%s is in %s\n", names[i], strrchr(info.dli_fname, '/') + 1);
#ifndef CALLER
        change_code((void *)counted[i].original, counted[i].bytes,
                    i == 0 ? (void *)count_alloc : (void *)count_free);
#endif
    }
#ifdef CALLER
    uint64_t memory = 0;
    counted[0].original((uintptr_t)&memory, 64);
    counted[1].original(memory, 0);
#endif
}

#else
#include <cuda.h>
#include <cuda_runtime_api.h>

#define CALLS 50

int main(int argc, char **argv)
{
    void *module = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!module)
        return 1;
    CUdeviceptr memory;
    void *pointer;
    cudaFree(NULL);
    ((void (*)(const char *))dlsym(module, "start"))(argv[2]);
    for (int i = 0; i < CALLS; i++) {
        cuMemAlloc(&memory, 4096);
        cuMemFree(memory);
        cudaMalloc(&pointer, 4096);
        cudaFree(pointer);
    }
    printf("%u events\n", ((unsigned (*)(void))dlsym(module, "event_count"))());
    return 0;
}
#endif
