/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/range_text.h"

#include <stdio.h>
#include <string.h>

/* A place in a text. */
struct cursor {
    const char *at;
    const char *end;
};

static bool skip(struct cursor *c, const char *literal)
{
    size_t length = strlen(literal);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, literal, length) != 0)
        return false;
    c->at += length;
    return true;
}

static bool range_text_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool take_number(struct cursor *c, uint64_t *number)
{
    const char *begin = c->at;
    *number = 0;
    for (; c->at < c->end && range_text_is_digit(*c->at); c->at++)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*c->at - '0'), number))
            return false;
    return c->at > begin;
}

/* The last place of `word`, or NULL. */
static const char *find_last(const char *text, uint32_t byte_count, const char *word)
{
    size_t length = strlen(word);
    const char *comma = text + byte_count;
    while ((comma = memrchr(text, word[0], (size_t)(comma - text))))
        if ((size_t)(text + byte_count - comma) >= length && memcmp(comma, word, length) == 0)
            return comma;
    return NULL;
}

/* ---- operators of emit_nvtx ------------------------------------------------------------------ */

/* Whether it is namespace::name as in C++; other names with two colons are labels. */
static bool is_qualified(const char *name, uint32_t byte_count)
{
    bool has_colons = false;
    if (range_text_is_digit(name[0]) || (name[0] >= 'A' && name[0] <= 'Z'))
        return false;
    for (uint32_t i = 0; i < byte_count; i++) {
        has_colons |= i > 0 && name[i] == ':' && name[i - 1] == ':';
        if (!is_letter(name[i]) && !range_text_is_digit(name[i]) && !strchr("_:.", name[i]))
            return false;
    }
    return has_colons;
}

static bool is_operator(const char *name, uint32_t byte_count)
{
    static const char *const known[] = {"detach",
                                        "detach_",
                                        "record_param_comms",
                                        "PythonDispatchMode",
                                        "PythonSubclass",
                                        "Pregraph bytecode",
                                        "TorchDynamo Cache Lookup",
                                        "AOTDispatcher Runtime Wrapper Prologue"};
    static const char *const begins[] = {RANGE_OP_EVALUATES, "Torch-Compiled Region: "};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i]) == byte_count && memcmp(known[i], name, byte_count) == 0)
            return true;
    struct cursor c = {name, name + byte_count};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (skip(&c, begins[i]))
            return true;
    return is_qualified(name, byte_count);
}

bool range_text_op(const char *text, uint32_t byte_count, struct range_op *op)
{
    /* A label can contain anything, also ", op_id = ", so the last one counts. */
    const char *id = find_last(text, byte_count, ", op_id = ");
    struct cursor c = {id, text + byte_count};
    if (!id || id == text || !skip(&c, ", op_id = ") || !take_number(&c, &op->id))
        return false;
    if (c.at < c.end && !skip(&c, ", sizes = [") && !skip(&c, ", input_op_ids = ["))
        return false;
    op->name_bytes = (uint32_t)(id - text);
    op->sequence = 0;
    const char *sequence = find_last(text, op->name_bytes, ", seq = ");
    struct cursor s = {sequence, id};
    uint64_t number;
    if (sequence && sequence > text && skip(&s, ", seq = ") && take_number(&s, &number) &&
        s.at == id && number < UINT64_MAX) {
        op->name_bytes = (uint32_t)(sequence - text);
        op->sequence = number + 1;
    }
    op->is_label = !op->sequence && !is_operator(text, op->name_bytes);
    return true;
}

bool range_op_begins_trace(const char *name, uint32_t byte_count)
{
    static const char timed[] = "(dynamo_timed)";
    size_t length = sizeof timed - 1;
    return byte_count >= length && memcmp(name + byte_count - length, timed, length) == 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The value of the last ",KEY=" or "#KEY=" in a text of XLA, up to its delimiter. */
static bool find_value(struct cursor c, const char *key, struct cursor *value)
{
    const char *at = find_last(c.at, (uint32_t)(c.end - c.at), key);
    if (!at || at == c.at || (at[-1] != ',' && at[-1] != '#'))
        return false;
    value->at = value->end = at + strlen(key);
    while (value->end < c.end && *value->end != ',' && *value->end != '#')
        value->end++;
    return value->end > value->at && value->end < c.end;
}

/* XlaModule:#prefix=jit_f,hlo_module=jit_f,program_id=3# */
static uint32_t module_name(struct cursor c, char *out)
{
    struct cursor name;
    return find_value(c, "hlo_module=", &name)
               ? (uint32_t)sprintf(out, "XlaModule: %.*s", (int)(name.end - name.at), name.at)
               : 0;
}

/* Thunk:#name=main/dot_general,hlo_op=fusion.3#; the name can contain anything. */
static uint32_t thunk_name(struct cursor c, char *out)
{
    struct cursor op, name = c;
    if (!find_value(c, "hlo_op=", &op))
        return 0;
    int length = sprintf(out, "Thunk: %.*s", (int)(op.end - op.at), op.at);
    if (skip(&name, "#name=") && op.at - name.at > 8) /* up to ",hlo_op=" */
        length += sprintf(out + length, " (%.*s)", (int)(op.at - name.at - 8), name.at);
    return (uint32_t)length;
}

/* {'Module': 'model.layers.0.mlp', 'Inputs': ..}, with quotes as Python's repr() has them. */
static uint32_t layer_name(struct cursor c, char *out)
{
    char quote = c.at < c.end ? *c.at++ : '\0';
    const char *begin = c.at;
    if (quote != '\'' && quote != '"')
        return 0;
    while (c.at < c.end && *c.at != quote)
        c.at += *c.at == '\\' && c.at + 1 < c.end ? 2 : 1;
    uint32_t length = (uint32_t)(c.at - begin);
    bool is_closed = c.at < c.end && *c.at++ == quote;
    if (!is_closed || !length || !(skip(&c, ", ") || skip(&c, "}")))
        return 0;
    memcpy(out, begin, length);
    return length;
}

uint32_t range_text_name(const char *text, uint32_t byte_count, char *out)
{
    struct range_op op;
    struct cursor c = {text, text + byte_count};
    if (skip(&c, "{'Module': "))
        return layer_name(c, out);
    if (byte_count && c.end[-1] == '#' && skip(&c, "XlaModule:"))
        return module_name(c, out);
    if (byte_count && c.end[-1] == '#' && skip(&c, "Thunk:"))
        return thunk_name(c, out);
    if (!range_text_op(text, byte_count, &op))
        return 0;
    memcpy(out, text, op.name_bytes);
    return op.name_bytes;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool range_text_is_word(char c)
{
    return is_letter(c) || range_text_is_digit(c);
}

/* Whether the number from `begin` to `end` may be that of an iteration, and not a part of a name,
 * as in layer1.0.conv2 and 128x64. */
static bool is_apart(const char *text, uint32_t byte_count, uint32_t begin, uint32_t end)
{
    if (begin > 0 && (is_letter(text[begin - 1]) ||
                      (text[begin - 1] == '.' && begin > 1 && range_text_is_word(text[begin - 2]))))
        return false;
    return end == byte_count ||
           !(is_letter(text[end]) ||
             (text[end] == '.' && end + 1 < byte_count && range_text_is_word(text[end + 1])));
}

uint32_t range_text_pattern(const char *text, uint32_t byte_count, enum range_numbers which,
                            char *out)
{
    uint32_t length = 0;
    bool has_numbers = false;
    for (uint32_t i = 0; i < byte_count;) {
        uint32_t end = i;
        while (end < byte_count && range_text_is_digit(text[end]))
            end++;
        if (end > i && (which == NUMBERS_ALL || is_apart(text, byte_count, i, end))) {
            out[length++] = '*';
            has_numbers = true;
            i = end;
            continue;
        }
        end = end > i ? end : i + 1;
        memcpy(out + length, text + i, end - i);
        length += end - i;
        i = end;
    }
    return has_numbers ? length : 0;
}
