/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of calls and records, as people and as JSON's readers want them. */
#ifndef GPUPROF_COLLECTOR_ARGUMENT_TEXT_H
#define GPUPROF_COLLECTOR_ARGUMENT_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* Types and modes of matrix libraries as people write them: "bf16", "f32-fast-tf32". NULL: a value
 * that is not known. */
const char *cuda_type_text(uint64_t type);       /* cudaDataType */
const char *compute_type_text(uint64_t compute); /* cublasComputeType_t */

/* Prints the value of an argument; `kind` is its enum arg_kind. */
void argument_print(unsigned kind, uint64_t value, FILE *out);

/* The same as JSON: a word or, in hexadecimal, bits as a string, a dim3 as a list, all else as a
 * number, or as a string where JavaScript would round that. Writes at most so many bytes at `out`;
 * the end. */
#define ARGUMENT_JSON_BYTES 128
char *argument_json(unsigned kind, uint64_t value, char *out);

/* Likewise the payload of a range, of an nvtxPayloadType_t: those of 64 bits with a sign or a
 * fraction, which JSON may not have (infinity), as text. */
char *payload_json(uint64_t type, uint64_t value, char *out);

#endif
