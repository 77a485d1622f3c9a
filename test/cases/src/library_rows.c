/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of functions of cuBLAS of each form, with arguments that the double (cublas_double.c)
 * checks; by the way that it was built for, as library_work is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long long wide;
typedef void *p;
typedef int i;

i cublasSgemm_v2(p, i, i, i, i, i, p, p, i, p, i, p, p, i);
i cublasZgemm_v2_64(p, i, i, wide, wide, wide, p, p, wide, p, wide, p, p, wide);
i cublasGemmStridedBatchedEx(p, i, i, i, i, i, p, p, i, i, wide, p, i, i, wide, p, p, i, i, wide, i,
                             i, i);
i cublasCgemmBatched(p, i, i, i, i, i, p, p, i, p, i, p, p, i, i);
i cublasSgemmGroupedBatched(p, p, p, p, p, p, p, p, p, p, p, p, p, p, i, p);
i cublasGemmGroupedBatchedEx_64(p, p, p, p, p, p, p, p, i, p, p, i, p, p, p, i, p, wide, p, i);
i cublasDgemv_v2(p, i, i, i, p, p, i, p, i, p, p, i);
i cublasHSSgemvStridedBatched_64(p, i, wide, wide, p, p, wide, wide, p, wide, wide, p, p, wide,
                                 wide, wide);
i cublasZdotc_v2(p, i, p, i, p, i, p);
i cublasSsymm_v2(p, i, i, i, i, p, p, i, p, i, p, p, i);
i cublasCtrsmBatched(p, i, i, i, i, i, i, p, p, i, p, i, i);
i cublasSgetrsBatched(p, i, i, i, p, i, p, p, i, p, i);
i cublasLtMatmul(p, p, p, p, p, p, p, p, p, p, p, p, p, p, size_t, p);
i cublasLtMatmulDescCreate(p, i, i);
i cublasLtMatmulDescSetAttribute(p, i, p, size_t);
i cublasLtMatrixLayoutCreate(p, i, uint64_t, uint64_t, int64_t);

#ifdef BY_DLSYM
static void *library, *lt_library;

static void *get(const char *name)
{
    void *found = dlsym(name[6] == 'L' && name[7] == 't' ? lt_library : library, name);
    if (!found) {
        fprintf(stderr, "library_rows: %s\n", dlerror());
        exit(1);
    }
    return found;
}
#define GET(name) ((__typeof__(name) *)get(#name))
#else
#define GET(name) name
#endif

static int failed;

static void check(const char *what, int result)
{
    if (result != 0 || errno != 4711) {
        fprintf(stderr, "%s: %d, errno %d\n", what, result, errno);
        failed = 1;
    }
}
#define CALL(name, ...) (errno = 4711, check(#name, GET(name)(__VA_ARGS__)))
#define H(number)       ((void *)(uintptr_t)(number))

static void *layout(int type, uint64_t rows, uint64_t columns, int64_t batch)
{
    void *made;
    CALL(cublasLtMatrixLayoutCreate, &made, type, rows, columns, batch);
    return made;
}

static void multiply(void)
{
    void *d, *a = layout(14, 512, 640, 1), *b = layout(28, 512, 768, 1),
             *c = layout(0, 640, 768, 9);
    const int yes = 1, relu = 2;
    CALL(cublasLtMatmulDescCreate, &d, 77, 0);
    for (int pass = 0; pass < 3; pass++) {
        CALL(cublasLtMatmul, H(0x11), d, H(0x21), H(0x31), a, H(0x41), b, H(0x21), H(0x51),
             pass ? c : b, H(0x61), c, NULL, NULL, 12345, H(pass));
        CALL(cublasLtMatmulDescSetAttribute, d, pass ? 3 : 4, (void *)&yes, sizeof yes);
        CALL(cublasLtMatmulDescSetAttribute, d, 7, (void *)&relu, sizeof relu);
    }
}

/* What a library that was not begun is called with may point anywhere: it does not look. */
static int without_handles(void)
{
    p bad = H(0x18);
    i results[] = {GET(cublasSgemmGroupedBatched)(NULL, bad, bad, bad, bad, bad, bad, bad, bad, bad,
                                                  bad, bad, bad, bad, 2, bad),
                   GET(cublasGemmGroupedBatchedEx_64)(NULL, bad, bad, bad, bad, bad, bad, bad, 0,
                                                      bad, bad, 0, bad, bad, bad, 0, bad, 2, bad,
                                                      0),
                   GET(cublasLtMatmul)(NULL, bad, bad, bad, bad, bad, bad, bad, bad, bad, bad, bad,
                                       bad, bad, 1, bad)};
    for (unsigned n = 0; n < sizeof results / sizeof results[0]; n++)
        if (results[n] != 1) /* not initialized */
            return 1;
    return 3;
}

int main(int count, char **words)
{
    const wide big = 1ll << 40;
    float f2 = 2, f3 = 3;
    double d2 = 2, d3 = 3;
    int trans[] = {0, 1}, ms[] = {16, 32}, ns[] = {8, 8}, ks[] = {4, 5}, counts[] = {3, 7};
    wide wms[] = {16, 16}, wns[] = {big, 8}, wks[] = {4, 4}, wcounts[] = {1, 2};
    void *x = H(0x31), *y = H(0x41), *z = H(0x51);
#ifdef BY_DLSYM
    library = dlopen(BY_DLSYM, RTLD_NOW | RTLD_LOCAL);
    lt_library = dlopen(LT_BY_DLSYM, RTLD_NOW | RTLD_LOCAL);
#endif
    if (count == 2 && strcmp(words[1], "without_handles") == 0)
        return without_handles();
    CALL(cublasSgemm_v2, H(0x11), 1, 0, 100, 200, 300, &f2, x, 77, y, 77, &f3, z, 77);
    CALL(cublasZgemm_v2_64, H(0x12), 0, 2, big, 2, 3, &d2, x, big, y, big, &d3, z, big);
    CALL(cublasGemmStridedBatchedEx, H(0x13), 0, 1, 5, 6, 7, x, x, 14, 77, big, y, 2, 77, 2 * big,
         y, z, 0, 77, 3 * big, 12, 68, -1);
    CALL(cublasCgemmBatched, H(0x14), 1, 1, 5, 6, 7, &f2, x, 77, y, 77, &f3, z, 77, 9);
    CALL(cublasSgemmGroupedBatched, H(0x15), trans, trans, ms, ns, ks, &f2, x, ms, y, ms, &f3, z,
         ms, 2, counts);
    CALL(cublasGemmGroupedBatchedEx_64, H(0x16), trans, trans, wms, wns, wks, &f2, x, 14, wms, y,
         14, wms, &f3, z, 0, wms, 2, wcounts, 68);
    CALL(cublasDgemv_v2, H(0x17), 1, 10, 20, &d2, x, 77, y, 1, &d3, z, 1);
    CALL(cublasDgemv_v2, H(0x17), 0, 10, 20, &d2, x, 77, y, 1, &d3, z, 1);
    CALL(cublasHSSgemvStridedBatched_64, H(0x18), 2, 10, 20, &f2, x, 77, big, y, 1, 2 * big, &f3, z,
         1, 3 * big, 5);
    CALL(cublasZdotc_v2, H(0x19), 1000, x, 1, y, 1, z);
    CALL(cublasSsymm_v2, H(0x1a), 0, 1, 30, 40, &f2, x, 77, y, 77, &f3, z, 77);
    CALL(cublasSsymm_v2, H(0x1a), 1, 1, 30, 40, &f2, x, 77, y, 77, &f3, z, 77);
    CALL(cublasCtrsmBatched, H(0x1b), 1, 1, 2, 0, 64, 32, &f2, x, 77, y, 77, 6);
    CALL(cublasSgetrsBatched, H(0x1c), 1, 64, 3, x, 77, y, z, 77, x, 11);
    multiply();
    return failed ? 1 : 3;
}
