/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/chrome.h"

#include "api/api_error.h"
#include "base/json_text.h"
#include "record/argument_text.h"

char *chrome_put_value(struct trace_writer *w, char *out, unsigned kind, uint64_t value)
{
    uint64_t hash = (value + kind) * 0x9E3779B97F4A7C15u;
    struct value_slot *slot = &w->values[hash >> 56];
    _Static_assert(VALUE_SLOTS == 256, "the hash's top byte is the slot");
    if (!slot->length || slot->value != value || slot->kind != kind) {
        slot->value = value;
        slot->kind = (uint8_t)kind;
        slot->length = (uint8_t)(argument_json(kind, value, slot->text) - slot->text);
    }
    memcpy(out, slot->text, VALUE_TEXT_MAX);
    return out + slot->length;
}

void chrome_reach(struct trace_writer *w, const struct process *p, uint64_t begin_ns,
                  uint64_t end_ns)
{
    struct process_span *span = chrome_span(w, p);
    if (begin_ns < span->begin_ns)
        span->begin_ns = begin_ns;
    if (end_ns > span->end_ns)
        span->end_ns = end_ns;
    if (end_ns > w->last_ns)
        w->last_ns = end_ns;
}

void chrome_reach_into(struct trace_writer *w, const struct process *p, uint64_t begin_ns,
                       uint64_t end_ns)
{
    if (w->is_of_time) {
        begin_ns = begin_ns > w->from_ns ? begin_ns : w->from_ns;
        end_ns = end_ns < w->to_ns ? end_ns : w->to_ns;
    }
    if (begin_ns <= end_ns)
        chrome_reach(w, p, begin_ns, end_ns);
}

char *chrome_begin_slice(struct trace_writer *w, char *out, const char *category, const char *name,
                         size_t name_bytes, const struct trace_row *row, uint64_t begin_ns,
                         uint64_t end_ns)
{
    out = chrome_put(PUT(out, ",\n{\"ph\":\"X\",\"cat\":\""), category, strlen(category));
    out = chrome_put(PUT(out, "\",\"name\":"), name, name_bytes);
    out = chrome_put_ids(PUT(out, ",\"pid\":"), row);
    out = json_microseconds(out, begin_ns);
    out = json_microseconds(PUT(out, ",\"dur\":"), end_ns - begin_ns);
    return w->arguments = PUT(out, ",\"args\":");
}

char *chrome_end_arguments(const struct trace_writer *w, char *out, uint32_t stack)
{
    if (stack)
        out = chrome_put_stack(w, out, "stack", stack, STACK_TEXT_BYTES);
    *w->arguments = '{';
    out += out == w->arguments;
    *out++ = '}';
    return stack ? json_decimal(PUT(out, ",\"sf\":"), w->frame_numbers[stack - 1]) : out;
}

void chrome_end_slice(struct trace_writer *w, char *out, uint32_t stack)
{
    out = chrome_end_arguments(w, out, stack);
    *out++ = '}';
    output_advance(w->out, out);
}

char *chrome_put_result(char *out, const struct function *f, int32_t result)
{
    const char *name = result ? api_error_name(f->domain, result) : NULL;
    if (result)
        out = json_signed(PUT(out, ",\"result\":"), (uint32_t)result);
    if (!name)
        return out;
    out = chrome_put(PUT(out, ",\"error\":\""), name, strlen(name));
    return PUT(out, "\"");
}

uint32_t chrome_open_nested(struct trace_writer *w, const struct thread *thread, uint64_t begin_ns)
{
    uint64_t shown_ns = chrome_time(w, begin_ns);
    uint64_t moved_ns = trace_row_open(chrome_row(w, thread->index), shown_ns) - shown_ns;
    return moved_ns < UINT32_MAX ? (uint32_t)moved_ns : UINT32_MAX;
}
