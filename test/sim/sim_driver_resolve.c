/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim_driver.h"

/*
 * cuGetProcAddress: of the variants of a name, the newest that is not newer than the version asked
 * for, preferring the per-thread-default-stream ones if that flag is given.
 */

typedef void (*entry)(void);

#define PROC(symbol, name, version, flags) extern void sim_proc_##symbol(void) __asm__(#symbol);
#include "sim_procs.def"
#undef PROC

/* A jump of its own: the same function at an address that dlsym does not give. */
#if defined(__x86_64__)
#define ALIAS_CODE(symbol) "jmp " #symbol "\n"
#elif defined(__aarch64__)
#define ALIAS_CODE(symbol) "b " #symbol "\n"
#else
#error "this machine needs a jump instruction here"
#endif
#define PROC(symbol, name, version, flags)                                                         \
    extern void sim_alias_##symbol(void) __attribute__((visibility("hidden")));                    \
    __asm__(".text\n.balign 16\n.hidden sim_alias_" #symbol "\n.globl sim_alias_" #symbol          \
            "\n.type sim_alias_" #symbol ",%function\nsim_alias_" #symbol                          \
            ":\n" ALIAS_CODE(symbol) ".size sim_alias_" #symbol ",.-sim_alias_" #symbol "\n");
#include "sim_procs.def"
#undef PROC

static const struct proc {
    const char *name;
    entry function, alias;
    int version, flags;
} procs[] = {
#define PROC(symbol, name, version, flags)                                                         \
    {name, sim_proc_##symbol, sim_alias_##symbol, version, flags},
#include "sim_procs.def"
#undef PROC
};

enum { PROC_COUNT = sizeof procs / sizeof procs[0] };

static const struct proc *proc_find(const char *name, int version, bool per_thread, bool *known)
{
    const struct proc *best = NULL;
    for (size_t i = 0; i < PROC_COUNT; i++) {
        const struct proc *at = &procs[i];
        if (strcmp(at->name, name) != 0)
            continue;
        *known = true;
        if (at->version > version || at->version > sim_config.version ||
            (at->flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && !per_thread))
            continue;
        /* Any per-thread variant goes before the others, whatever its version. */
        if (!best || at->flags > best->flags ||
            (at->flags == best->flags && at->version > best->version))
            best = at;
    }
    return best;
}

static CUresult proc_address(const char *name, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status, bool old)
{
    bool known = false;
    if (!name || !pfn || flags > 2 || version < 0)
        return CUDA_ERROR_INVALID_VALUE;
    *pfn = NULL;
    if (version > sim_config.version)
        return CUDA_ERROR_INVALID_VALUE;
    const struct proc *proc =
        proc_find(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
    *pfn = proc ? (void *)(uintptr_t)(sim_config.alias ? proc->alias : proc->function) : NULL;
    if (status)
        *status = proc    ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    /* The first form reported what it did not find as an error. */
    return proc || !old ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

DRV_RAW(cuGetProcAddress, (const char *name, void **pfn, int version, cuuint64_t flags),
        proc_address(name, pfn, version, flags, NULL, true), A_KS("name", name ? name : ""),
        A_U(version), A_U(flags), A_OUT("pfn", pfn))
DRV_RAW(cuGetProcAddress_v2,
        (const char *name, void **pfn, int version, cuuint64_t flags,
         CUdriverProcAddressQueryResult *status),
        proc_address(name, pfn, version, flags, status, false), A_KS("name", name ? name : ""),
        A_U(version), A_U(flags), A_OUT("pfn", pfn))

/* The real tables are private; nobody but NVIDIA's own libraries asks for them. */
DRV_RAW(cuGetExportTable, (const void **table, const CUuuid *id), CUDA_ERROR_NOT_FOUND)

DRV_RAW(cuProfilerStart, (void), CUDA_SUCCESS)
DRV_RAW(cuProfilerStop, (void), CUDA_SUCCESS)
DRV_RAW(cuProfilerInitialize, (const char *config, const char *output, int mode),
        CUDA_ERROR_PROFILER_DISABLED)

/* The runtime reads this from our symbol table: its look-ups stay those of the real runtime. */
SIM_EXPORT extern const struct sim_log_ops *const simcuda_log_ops;
const struct sim_log_ops *const simcuda_log_ops = &sim_log_local;
