/* SPDX-License-Identifier: Apache-2.0 */
#include "report/dump_record.h"

#include <stddef.h>
#include <string.h>

#include "bytes.h"
#include "frame.h"
#include "record/gpu_record.h"

enum style { STYLE_DECIMAL, STYLE_HEX, STYLE_DIM3, STYLE_STREAM, STYLE_WORD };

static const struct {
    uint8_t type;
    uint8_t index;
    enum style style;
    const char *(*word)(uint64_t value);
} styles[] = {
    {RECORD_NAME, 0, STYLE_HEX, NULL},
    {RECORD_MODULE, 1, STYLE_HEX, NULL},
    {RECORD_MODULE, 2, STYLE_HEX, NULL},
    {RECORD_MODULE, 3, STYLE_HEX, NULL},
    {RECORD_KERNEL, KERNEL_GRID, STYLE_DIM3, NULL},
    {RECORD_KERNEL, KERNEL_BLOCK, STYLE_DIM3, NULL},
    {RECORD_KERNEL, KERNEL_CLUSTER, STYLE_DIM3, NULL},
    {RECORD_COPY, COPY_KIND, STYLE_WORD, copy_kind_text},
    {RECORD_COPY, COPY_SOURCE, STYLE_WORD, memory_kind_text},
    {RECORD_COPY, COPY_DESTINATION, STYLE_WORD, memory_kind_text},
    {RECORD_SET, SET_VALUE, STYLE_HEX, NULL},
    {RECORD_SET, SET_KIND, STYLE_WORD, memory_kind_text},
    {RECORD_SYNC, SYNC_KIND, STYLE_WORD, sync_kind_text},
    {RECORD_SYNC, SYNC_STREAM, STYLE_STREAM, NULL},
    {RECORD_OVERHEAD, OVERHEAD_KIND, STYLE_WORD, overhead_kind_text},
    {RECORD_OVERHEAD, OVERHEAD_OBJECT, STYLE_WORD, object_kind_text},
    {RECORD_MEMORY, MEMORY_OPERATION, STYLE_WORD, memory_operation_text},
    {RECORD_MEMORY, MEMORY_KIND, STYLE_WORD, memory_kind_text},
    {RECORD_MEMORY, MEMORY_ADDRESS, STYLE_HEX, NULL},
    {RECORD_MEMORY, MEMORY_STREAM, STYLE_STREAM, NULL},
    {RECORD_MEMORY, MEMORY_PC, STYLE_HEX, NULL},
    {RECORD_MEMORY, MEMORY_POOL, STYLE_HEX, NULL},
    {RECORD_POOL, 0, STYLE_WORD, pool_operation_text},
    {RECORD_POOL, 2, STYLE_HEX, NULL},
    {RECORD_PUSH, PUSH_COLOR, STYLE_HEX, NULL},
    {RECORD_PUSH, PUSH_PAYLOAD_TYPE, STYLE_WORD, payload_type_text},
    {RECORD_PUSH, PUSH_PAYLOAD, STYLE_HEX, NULL},
    {RECORD_PUSH, PUSH_MESSAGE, STYLE_HEX, NULL},
    {RECORD_MARK, PUSH_COLOR, STYLE_HEX, NULL},
    {RECORD_MARK, PUSH_PAYLOAD_TYPE, STYLE_WORD, payload_type_text},
    {RECORD_MARK, PUSH_PAYLOAD, STYLE_HEX, NULL},
    {RECORD_MARK, PUSH_MESSAGE, STYLE_HEX, NULL},
    {RECORD_RANGE_START, 1 + PUSH_COLOR, STYLE_HEX, NULL},
    {RECORD_RANGE_START, 1 + PUSH_PAYLOAD_TYPE, STYLE_WORD, payload_type_text},
    {RECORD_RANGE_START, 1 + PUSH_PAYLOAD, STYLE_HEX, NULL},
    {RECORD_RANGE_START, 1 + PUSH_MESSAGE, STYLE_HEX, NULL},
    {RECORD_LABEL, LABEL_KIND, STYLE_WORD, label_kind_text},
};

/* Texts that stand for any number without a word. */
static bool is_word(const char *text)
{
    static const char *const others[] = {"unknown", "Unknown", "Sync", "Overhead"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(text, others[i]) == 0)
            return false;
    return true;
}

static void print(enum style style, uint64_t value, FILE *out)
{
    switch (style) {
    case STYLE_HEX: fprintf(out, "0x%llx", (unsigned long long)value); break;
    case STYLE_DIM3:
        fprintf(out, "%u,%u,%u", (unsigned)(uint32_t)value, (unsigned)(value >> 32 & 0xffff),
                (unsigned)(value >> 48));
        break;
    case STYLE_STREAM:
        if (value == GPU_STREAM_NONE)
            fputs("none", out);
        else
            fprintf(out, "%llu", (unsigned long long)value);
        break;
    default: fprintf(out, "%llu", (unsigned long long)value); break;
    }
}

void dump_frames(const struct record *r, FILE *out)
{
    fputs(" frames=", out);
    for (uint32_t i = 0; i + 8 <= r->byte_count; i += 8) {
        uint64_t frame = load_u64(r->bytes + i);
        if (i)
            fputc(',', out);
        switch (frame_kind(frame)) {
        case FRAME_MODULE:
            fprintf(out, "%u+0x%llx", frame_module(frame), (unsigned long long)frame_offset(frame));
            break;
        case FRAME_ADDRESS: fprintf(out, "0x%llx", (unsigned long long)frame_address(frame)); break;
        case FRAME_PYTHON: fprintf(out, "python:%u", frame_python(frame)); break;
        default: fprintf(out, "?0x%llx", (unsigned long long)frame); break;
        }
    }
    if (r->byte_count % 8)
        fputs(",cut", out);
}

void dump_argument(const struct record *r, unsigned index, FILE *out)
{
    uint64_t value = r->args[index];
    for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++) {
        if (styles[i].type != r->type || styles[i].index != index)
            continue;
        const char *word = styles[i].word ? styles[i].word(value) : NULL;
        if (word && is_word(word))
            fprintf(out, strchr(word, ' ') ? "\"%s\"" : "%s", word);
        else
            print(styles[i].style, value, out);
        return;
    }
    print(STYLE_DECIMAL, value, out);
}
