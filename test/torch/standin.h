/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_H
#define STANDIN_H

/*
 * What the stand-ins for NVIDIA's math libraries share. Each is one source, standin_<library>.c,
 * for the functions that a training loop calls; all others that PyTorch's wheel imports are
 * generated (make_standins.py) and answer that library's NOT_SUPPORTED.
 */

#define STANDIN __attribute__((visibility("default")))

/* The names of kernels tell which library, and so which way to the driver, they came by. */
#define STANDIN_CUBLAS_PREFIX   "standin_cublas_"
#define STANDIN_CUBLASLT_PREFIX "standin_cublaslt_"

/* A stand-in need not look at all it is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#endif
