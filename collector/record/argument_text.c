/* SPDX-License-Identifier: Apache-2.0 */
#include "record/argument_text.h"

#include <stddef.h>
#include <string.h>

#include "argument_kind.h"
#include "base/json_text.h"
#include "record/gpu_record.h"

#define ENTRIES(table) (sizeof(table) / sizeof(table)[0])

/* By the numbers of library_types.h and cublas_api.h; a complex type has a "c" before its parts'.
 */
static const char *const cuda_types[] = {
    "f32", "f64",  "f16",  "i8",    "cf32", "cf64", "cf16",  "ci8",  "u8",   "cu8",  "i32", "ci32",
    "u32", "cu32", "bf16", "cbf16", "i4",   "ci4",  "u4",    "cu4",  "i16",  "ci16", "u16", "cu16",
    "i64", "ci64", "u64",  "cu64",  "e4m3", "e5m2", "ue8m0", "e2m3", "e3m2", "e2m1"};
static const char *const compute_types[] = {
    [64] = "f16",           [65] = "f16-pedantic",  [68] = "f32",
    [69] = "f32-pedantic",  [70] = "f64",           [71] = "f64-pedantic",
    [72] = "i32",           [73] = "i32-pedantic",  [74] = "f32-fast-f16",
    [75] = "f32-fast-bf16", [77] = "f32-fast-tf32", [78] = "f32-emulated-bf16x9"};
static const char *const operations[] = {"n", "t", "c", "conjugate"};

static const char *const nccl_types[] = {"i8",  "u8",  "i32", "u32",  "i64",  "u64",
                                         "f16", "f32", "f64", "bf16", "e4m3", "e5m2"};
static const char *const nccl_ops[] = {"sum", "prod", "max", "min", "avg"};

static const char *nccl_type_text(uint64_t type)
{
    return type < ENTRIES(nccl_types) ? nccl_types[type] : NULL;
}

static const char *nccl_op_text(uint64_t op)
{
    return op < ENTRIES(nccl_ops) ? nccl_ops[op] : NULL;
}

const char *cuda_type_text(uint64_t type)
{
    return type < ENTRIES(cuda_types) ? cuda_types[type] : NULL;
}

const char *compute_type_text(uint64_t compute)
{
    return compute < ENTRIES(compute_types) ? compute_types[compute] : NULL;
}

static const char *transpose_text(uint64_t operation)
{
    return operation < ENTRIES(operations) ? operations[operation] : NULL;
}

static void print_number(uint64_t value, FILE *out)
{
    fprintf(out, "%llu", (unsigned long long)value);
}

/* No size is so large: it is what the program computed wrongly. */
static void print_count(uint64_t value, FILE *out)
{
    fprintf(out, value > INT64_MAX ? "%lld" : "%llu", (unsigned long long)value);
}

static void print_hex(uint64_t value, FILE *out)
{
    fprintf(out, "0x%llx", (unsigned long long)value);
}

static void print_signed(uint64_t value, FILE *out)
{
    fprintf(out, "%d", (int)(int32_t)(uint32_t)value);
}

static void print_dim3(uint64_t value, FILE *out)
{
    fprintf(out, "%u,%u,%u", (unsigned)(uint32_t)value, (unsigned)(value >> 32 & 0xffff),
            (unsigned)(value >> 48));
}

/* enum cudaMemcpyKind */
static const char *direction_text(uint64_t value)
{
    static const char *const names[] = {"HtoH", "HtoD", "DtoH", "DtoD", "default"};
    return value < sizeof names / sizeof names[0] ? names[value] : NULL;
}

static const char *stream_text(uint64_t value)
{
    return value == GPU_STREAM_NONE ? "none" : NULL;
}

static void print_known(uint64_t value, FILE *out)
{
    if (value)
        print_number(value - 1, out);
    else
        fputs("-", out);
}

/* Texts that stand for any number without a word are left to the number. */
static bool is_word(const char *word)
{
    static const char *const others[] = {"unknown", "Unknown", "Sync", "Overhead"};
    for (size_t i = 0; word && i < sizeof others / sizeof others[0]; i++)
        if (strcmp(word, others[i]) == 0)
            return false;
    return word;
}

static void print_word(const char *word, uint64_t value, FILE *out)
{
    if (is_word(word))
        fprintf(out, strchr(word, ' ') ? "\"%s\"" : "%s", word);
    else
        print_number(value, out);
}

static char *write_number(uint64_t value, char *out)
{
    return json_number(out, value);
}

static char *write_count(uint64_t value, char *out)
{
    if (value <= INT64_MAX || -value > JSON_EXACT_MAX)
        return write_number(value, out);
    *out++ = '-';
    return json_decimal(out, -value);
}

static char *write_known(uint64_t value, char *out)
{
    return value ? write_number(value - 1, out) : (char *)memcpy(out, "null", 4) + 4;
}

static char *write_hex(uint64_t value, char *out)
{
    *out++ = '"';
    out = json_hex(out, value);
    *out++ = '"';
    return out;
}

static char *write_signed(uint64_t value, char *out)
{
    return json_signed(out, value);
}

static char *write_dim3(uint64_t value, char *out)
{
    *out++ = '[';
    out = json_decimal(out, (uint32_t)value);
    *out++ = ',';
    out = json_decimal(out, value >> 32 & 0xffff);
    *out++ = ',';
    out = json_decimal(out, value >> 48);
    *out++ = ']';
    return out;
}

static char *write_word(const char *word, uint64_t value, char *out)
{
    return is_word(word) ? json_escape(out, word, strlen(word)) : write_number(value, out);
}

#define PRINTER_OF_WORDS(name)                                                                     \
    static void print_##name(uint64_t value, FILE *out)                                            \
    {                                                                                              \
        print_word(name##_text(value), value, out);                                                \
    }                                                                                              \
    static char *write_##name(uint64_t value, char *out)                                           \
    {                                                                                              \
        return write_word(name##_text(value), value, out);                                         \
    }
PRINTER_OF_WORDS(direction)
PRINTER_OF_WORDS(stream)
PRINTER_OF_WORDS(copy_kind)
PRINTER_OF_WORDS(memory_kind)
PRINTER_OF_WORDS(sync_kind)
PRINTER_OF_WORDS(overhead_kind)
PRINTER_OF_WORDS(object_kind)
PRINTER_OF_WORDS(memory_operation)
PRINTER_OF_WORDS(pool_operation)
PRINTER_OF_WORDS(payload_type)
PRINTER_OF_WORDS(label_kind)
PRINTER_OF_WORDS(cuda_type)
PRINTER_OF_WORDS(compute_type)
PRINTER_OF_WORDS(transpose)
PRINTER_OF_WORDS(nccl_type)
PRINTER_OF_WORDS(nccl_op)

void argument_print(unsigned kind, uint64_t value, FILE *out)
{
    static void (*const printers[ARG_KIND_END])(uint64_t value, FILE * out) = {
#define CALL_ARGUMENT(NAME, name, printer)   [ARG_##NAME] = print_##printer,
#define RECORD_ARGUMENT(NAME, name, printer) [ARG_##NAME] = print_##printer,
#include "argument_kinds.def"
    };
    (kind < ARG_KIND_END && printers[kind] ? printers[kind] : print_hex)(value, out);
}

char *argument_json(unsigned kind, uint64_t value, char *out)
{
    static char *(*const writers[ARG_KIND_END])(uint64_t value, char *out) = {
#define CALL_ARGUMENT(NAME, name, printer)   [ARG_##NAME] = write_##printer,
#define RECORD_ARGUMENT(NAME, name, printer) [ARG_##NAME] = write_##printer,
#include "argument_kinds.def"
    };
    return (kind < ARG_KIND_END && writers[kind] ? writers[kind] : write_hex)(value, out);
}

char *payload_json(uint64_t type, uint64_t value, char *out)
{
    char text[JSON_REAL_MAX + 1];
    double number;
    float single;
    memcpy(&number, &value, sizeof number);
    memcpy(&single, &value, sizeof single); /* its low half, as both are little-endian */
    switch (type) {
    case 1: return json_number(out, value);
    case 2: snprintf(text, sizeof text, "%lld", (long long)value); break;
    case 3: *json_real(text, number, false) = '\0'; break;
    case 4: return json_decimal(out, (uint32_t)value);
    case 5: return json_signed(out, value);
    case 6: *json_real(text, (double)single, true) = '\0'; break;
    default: return write_hex(value, out);
    }
    return json_escape(out, text, strlen(text));
}
