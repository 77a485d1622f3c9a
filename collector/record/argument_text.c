/* SPDX-License-Identifier: Apache-2.0 */
#include "record/argument_text.h"

#include <stddef.h>
#include <string.h>

#include "argument_kind.h"
#include "base/json_text.h"
#include "record/gpu_record.h"
#include "record/library_text.h"

#define EXACT_MAX (1ull << 53) /* larger numbers are rounded by JavaScript */

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
    if (value <= EXACT_MAX)
        return json_decimal(out, value);
    *out++ = '"';
    out = json_decimal(out, value);
    *out++ = '"';
    return out;
}

static char *write_count(uint64_t value, char *out)
{
    if (value <= INT64_MAX || -value > EXACT_MAX)
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
    int64_t number = (int32_t)(uint32_t)value;
    if (number < 0)
        *out++ = '-';
    return json_decimal(out, (uint64_t)(number < 0 ? -number : number));
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
