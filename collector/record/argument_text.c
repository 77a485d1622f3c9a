/* SPDX-License-Identifier: Apache-2.0 */
#include "record/argument_text.h"

#include <stddef.h>
#include <string.h>

#include "argument_kind.h"
#include "base/json_text.h"
#include "record/gpu_record.h"

#define ENTRIES(table) (sizeof(table) / sizeof(table)[0])

/* Defines NAME_text: the words of values from 0 on; NULL: another value. */
#define WORDS(name, ...)                                                                           \
    const char *name##_text(uint64_t value)                                                        \
    {                                                                                              \
        static const char *const words[] = {__VA_ARGS__};                                          \
        return value < ENTRIES(words) ? words[value] : NULL;                                       \
    }

/* By the numbers of library_types.h and cublas_api.h. "c" is the prefix of a complex type. */
WORDS(cuda_type, "f32", "f64", "f16", "i8", "cf32", "cf64", "cf16", "ci8", "u8", "cu8", "i32",
      "ci32", "u32", "cu32", "bf16", "cbf16", "i4", "ci4", "u4", "cu4", "i16", "ci16", "u16",
      "cu16", "i64", "ci64", "u64", "cu64", "e4m3", "e5m2", "ue8m0", "e2m3", "e3m2", "e2m1")
WORDS(
    compute_type, [64] = "f16", [65] = "f16-pedantic", [68] = "f32", [69] = "f32-pedantic",
    [70] = "f64", [71] = "f64-pedantic", [72] = "i32", [73] = "i32-pedantic", [74] = "f32-fast-f16",
    [75] = "f32-fast-bf16", [77] = "f32-fast-tf32", [78] = "f32-emulated-bf16x9")
static WORDS(transpose, "n", "t", "c", "conjugate") static WORDS(
    nccl_type, "i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16", "e4m3",
    "e5m2") static WORDS(nccl_op, "sum", "prod", "max", "min",
                         "avg") static WORDS(direction, "HtoH", "HtoD", "DtoH", "DtoD",
                                             "default") /* enum cudaMemcpyKind */

    static const char *stream_text(uint64_t value)
{
    return value == GPU_STREAM_NONE ? "none" : NULL;
}

/* Whether the word is specific; a value with a generic word is printed as a number. */
static bool argument_text_is_word(const char *word)
{
    static const char *const others[] = {"unknown", "Unknown", "Sync", "Overhead"};
    for (size_t i = 0; word && i < sizeof others / sizeof others[0]; i++)
        if (strcmp(word, others[i]) == 0)
            return false;
    return word;
}

static char *write_number(uint64_t value, char *out)
{
    return json_number(out, value);
}

/* Prints a size that looks negative as such: the program computed it wrongly. */
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
    return argument_text_is_word(word) ? json_escape(out, word, strlen(word))
                                       : write_number(value, out);
}

#define WRITER_OF_WORDS(name)                                                                      \
    static char *write_##name(uint64_t value, char *out)                                           \
    {                                                                                              \
        return write_word(name##_text(value), value, out);                                         \
    }
WRITER_OF_WORDS(direction)
WRITER_OF_WORDS(stream)
WRITER_OF_WORDS(copy_kind)
WRITER_OF_WORDS(memory_kind)
WRITER_OF_WORDS(sync_kind)
WRITER_OF_WORDS(overhead_kind)
WRITER_OF_WORDS(object_kind)
WRITER_OF_WORDS(memory_operation)
WRITER_OF_WORDS(pool_operation)
WRITER_OF_WORDS(payload_type)
WRITER_OF_WORDS(label_kind)
WRITER_OF_WORDS(cuda_type)
WRITER_OF_WORDS(compute_type)
WRITER_OF_WORDS(transpose)
WRITER_OF_WORDS(nccl_type)
WRITER_OF_WORDS(nccl_op)

char *argument_json(unsigned kind, uint64_t value, char *out)
{
    static char *(*const writers[ARG_KIND_END])(uint64_t value, char *out) = {
#define CALL_ARGUMENT(NAME, name, printer)   [ARG_##NAME] = write_##printer,
#define RECORD_ARGUMENT(NAME, name, printer) [ARG_##NAME] = write_##printer,
#include "argument_kinds.def"
    };
    return (kind < ARG_KIND_END && writers[kind] ? writers[kind] : write_hex)(value, out);
}

/* Leaves out the quotes of a single word, and the brackets of a list. */
void argument_print(unsigned kind, uint64_t value, FILE *out)
{
    char json[ARGUMENT_JSON_BYTES + 1];
    *argument_json(kind, value, json) = '\0';
    bool is_bare = *json == '[' || (*json == '"' && !strchr(json, ' '));
    if (strcmp(json, "null") == 0)
        fputs("-", out);
    else
        fprintf(out, "%.*s", (int)strlen(json) - 2 * is_bare, json + is_bare);
}

char *payload_json(uint64_t type, uint64_t value, char *out)
{
    char text[JSON_REAL_MAX + 1];
    double number;
    float single;
    memcpy(&number, &value, sizeof number);
    memcpy(&single, &value, sizeof single); /* the low half: all machines here are little-endian */
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
