/* SPDX-License-Identifier: Apache-2.0 */
/* Text and JSON of the arguments of calls and records. */
#ifndef GPUPROF_COLLECTOR_ARGUMENT_TEXT_H
#define GPUPROF_COLLECTOR_ARGUMENT_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* Types and modes of matrix libraries: "bf16", "f32-fast-tf32". NULL: an unknown value. */
const char *cuda_type_text(uint64_t type);       /* cudaDataType */
const char *compute_type_text(uint64_t compute); /* cublasComputeType_t */

/* Prints the value of an argument; `kind` is its enum arg_kind. */
void argument_print(unsigned kind, uint64_t value, FILE *out);

/* The same as JSON: words and hexadecimal bits as strings, a dim3 as a list, anything else as a
 * number, or as a string if JavaScript would round it. Writes at most ARGUMENT_JSON_BYTES to `out`;
 * returns the end. */
#define ARGUMENT_JSON_BYTES 128
char *argument_json(unsigned kind, uint64_t value, char *out);

/* The same for the payload of a range of an nvtxPayloadType_t. Signed and floating-point values of
 * 64 bits are strings, as JSON has no infinity. */
char *payload_json(uint64_t type, uint64_t value, char *out);

#endif
