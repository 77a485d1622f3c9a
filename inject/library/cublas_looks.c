/* SPDX-License-Identifier: Apache-2.0 */
#include "library/cublas_looks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/objects.h"
#include "cuda/cuda_abi.h"

#define LIBRARIES_MAX 8    /* copies of libcublasLt per process */
#define GROUPS_MAX    4096 /* larger groups are not added up */

/* The labels of each row's arguments. */
#define I(kind, label, expression)          uint64_t label;
#define O(kind, label, pointer, expression) uint64_t label;
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...)                           \
    struct words_##symbol {                                                                        \
        __VA_ARGS__                                                                                \
    };
#include "api/api.def"
#undef I
#undef O

/* ---- structures of cublasLt, of which only it knows the form --------------------------------- */

typedef int getter(const void *structure, int attribute, void *value, size_t bytes,
                   size_t *bytes_written);

/* Constants of cublasLt.h. */
enum { LAYOUT_TYPE = 0, LAYOUT_ROWS = 2, LAYOUT_COLUMNS = 3, LAYOUT_BATCH = 5 };
enum { MULTIPLY_COMPUTE = 0, MULTIPLY_TRANS_A = 3, MULTIPLY_TRANS_B = 4, MULTIPLY_EPILOGUE = 7 };

struct getters {
    getter *of_layout;
    getter *of_multiply;
};

/* The getters of each copy of the library; entries are written once. */
static struct {
    _Atomic(const void *) real;
    struct getters getters;
    _Atomic bool is_filled;
} known[LIBRARIES_MAX];

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] && strcmp(value, "0") != 0;
}

/*
 * Does the library log its calls or mark them with NVTX? Then it would do so for our queries, too.
 */
static bool reports_of_calls(void)
{
    return is_set("CUBLASLT_LOG_LEVEL") || is_set("CUBLASLT_LOG_MASK") ||
           is_set("CUBLASLT_NVTX_LEVEL");
}

static struct getters find_getters(const void *real)
{
    struct object o;
    if (reports_of_calls() || !object_at((uintptr_t)real, &o))
        return (struct getters){0};
    return (struct getters){(getter *)object_symbol(&o, "cublasLtMatrixLayoutGetAttribute"),
                            (getter *)object_symbol(&o, "cublasLtMatmulDescGetAttribute")};
}

static struct getters getters_of(const void *real)
{
    for (unsigned i = 0; i < LIBRARIES_MAX; i++) {
        const void *of = atomic_load_explicit(&known[i].real, memory_order_relaxed);
        if (!of && atomic_compare_exchange_strong(&known[i].real, &of, real)) {
            known[i].getters = find_getters(real);
            atomic_store_explicit(&known[i].is_filled, true, memory_order_release);
            return known[i].getters;
        }
        if (of == real && atomic_load_explicit(&known[i].is_filled, memory_order_acquire))
            return known[i].getters;
    }
    return find_getters(real);
}

/* Reads an attribute of `bytes`; 0 if an older library's structure does not have it. */
static uint64_t cublas_looks_get(getter *ask, uint64_t structure, int attribute, size_t bytes)
{
    uint64_t value = 0;
    size_t written;
    return ask((const void *)(uintptr_t)structure, attribute, &value, bytes, &written) ? 0 : value;
}

static bool look_at_matmul(struct words_cublasLtMatmul *w, const void *real)
{
    const struct getters ask = getters_of(real);
    const uint64_t multiply = w->compute, a = w->a_type, b = w->b_type, c = w->c_type,
                   d = w->d_type;
    if (!ask.of_layout || !ask.of_multiply || !multiply || !a || !b || !d)
        return false;
    w->trans_a = cublas_looks_get(ask.of_multiply, multiply, MULTIPLY_TRANS_A, 4);
    w->trans_b = cublas_looks_get(ask.of_multiply, multiply, MULTIPLY_TRANS_B, 4);
    w->compute = cublas_looks_get(ask.of_multiply, multiply, MULTIPLY_COMPUTE, 4);
    w->epilogue = cublas_looks_get(ask.of_multiply, multiply, MULTIPLY_EPILOGUE, 4);
    w->m = cublas_looks_get(ask.of_layout, d, LAYOUT_ROWS, 8);
    w->n = cublas_looks_get(ask.of_layout, d, LAYOUT_COLUMNS, 8);
    w->k = cublas_looks_get(ask.of_layout, a, w->trans_a ? LAYOUT_ROWS : LAYOUT_COLUMNS, 8);
    w->batch = cublas_looks_get(ask.of_layout, d, LAYOUT_BATCH, 4);
    w->a_type = cublas_looks_get(ask.of_layout, a, LAYOUT_TYPE, 4);
    w->b_type = cublas_looks_get(ask.of_layout, b, LAYOUT_TYPE, 4);
    w->d_type = cublas_looks_get(ask.of_layout, d, LAYOUT_TYPE, 4);
    w->c_type = c == d || !c ? w->d_type : cublas_looks_get(ask.of_layout, c, LAYOUT_TYPE, 4);
    return true;
}

/* ---- arrays of sizes ------------------------------------------------------------------------- */

static uint64_t size_in(uint64_t array, uint64_t bytes, uint64_t i)
{
    const void *at = (const void *)(uintptr_t)(array + i * bytes);
    return bytes == 4 ? (uint64_t)(int64_t) * (const int32_t *)at
                      : (uint64_t) * (const int64_t *)at;
}

struct sizes {
    uint64_t m, n, k;
};

/* All such rows begin with these words in this order, as cublasLtMatmul begins with its handle. */
struct grouped {
    uint64_t handle, groups, batch, m, n, k, mnk;
};
#define GROUPED_HAS(symbol)                                                                        \
    _Static_assert(offsetof(struct words_##symbol, mnk) == offsetof(struct grouped, mnk) &&        \
                       offsetof(struct words_##symbol, batch) == offsetof(struct grouped, batch),  \
                   #symbol)
GROUPED_HAS(cublasSgemmGroupedBatched);
GROUPED_HAS(cublasGemmGroupedBatchedEx_64);
_Static_assert(offsetof(struct words_cublasLtMatmul, handle) == 0, "words[0]");

static bool look_at_groups(struct grouped *w)
{
    const uint64_t bytes = w->mnk, count = w->batch, m = w->m, n = w->n, k = w->k;
    w->mnk = w->batch = w->m = w->n = w->k = 0;
    if (!m || !n || !k || !count || w->groups > GROUPS_MAX)
        return false;
    for (uint64_t i = 0; i < w->groups; i++) {
        const struct sizes s = {size_in(m, bytes, i), size_in(n, bytes, i), size_in(k, bytes, i)};
        uint64_t many = size_in(count, bytes, i), mnk;
        if (__builtin_mul_overflow(s.m, s.n, &mnk) || __builtin_mul_overflow(mnk, s.k, &mnk) ||
            __builtin_mul_overflow(mnk, many, &mnk) || __builtin_add_overflow(w->mnk, mnk, &w->mnk))
            return false; /* some are negative, which the library will report */
        w->batch += many;
        w->m = i == 0 || w->m == s.m ? s.m : 0;
        w->n = i == 0 || w->n == s.n ? s.n : 0;
        w->k = i == 0 || w->k == s.k ? s.k : 0;
    }
    return true;
}

bool cublas_look(unsigned code, uint64_t *words, const void *real)
{
    int saved = errno;
    if (!words[0]) /* without a handle the library fails before it reads any of them */
        return false;
    bool found = code == API_CODE_cublasLtMatmul
                     ? look_at_matmul((struct words_cublasLtMatmul *)words, real)
                     : look_at_groups((struct grouped *)words);
    errno = saved;
    return found;
}
