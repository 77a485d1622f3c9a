/* SPDX-License-Identifier: Apache-2.0 */
#include "record/argument_text.h"

#include <stddef.h>
#include <string.h>

#include "argument_kind.h"
#include "record/gpu_record.h"
#include "record/library_text.h"

static void print_number(uint64_t value, FILE *out)
{
    fprintf(out, "%llu", (unsigned long long)value);
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

static void print_direction(uint64_t value, FILE *out)
{
    static const char *const names[] = {"HtoH", "HtoD", "DtoH", "DtoD", "default"};
    if (value < sizeof names / sizeof names[0])
        fputs(names[value], out);
    else
        print_number(value, out);
}

static void print_stream(uint64_t value, FILE *out)
{
    if (value == GPU_STREAM_NONE)
        fputs("none", out);
    else
        print_number(value, out);
}

static void print_known(uint64_t value, FILE *out)
{
    if (value)
        print_number(value - 1, out);
    else
        fputs("-", out);
}

/* Texts that stand for any number without a word are left to the number. */
static void print_word(const char *word, uint64_t value, FILE *out)
{
    static const char *const others[] = {"unknown", "Unknown", "Sync", "Overhead"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!word || strcmp(word, others[i]) == 0) {
            print_number(value, out);
            return;
        }
    fprintf(out, strchr(word, ' ') ? "\"%s\"" : "%s", word);
}

#define PRINTER_OF_WORDS(name)                                                                     \
    static void print_##name(uint64_t value, FILE *out)                                            \
    {                                                                                              \
        print_word(name##_text(value), value, out);                                                \
    }
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
