/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/range_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "record/op_record.h"

#define UNKNOWN_TYPE  255 /* type of tensors that op_type_text does not know */
#define CUT_BYTES_MAX 24  /* the rest of a cut text is shorter: longer than any single part */

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

/* Reads [4, 16]. An empty list [] may be a tensor of one number, a number or nothing. */
static bool take_sizes(struct cursor *c, struct byte_writer *out)
{
    uint64_t size;
    uint8_t count = 0;
    size_t head = out->length;
    if (!skip(c, "["))
        return false;
    if (skip(c, "]")) {
        put_u8(out, OP_OTHER);
        return true;
    }
    put_u8(out, OP_TENSOR);
    put_u8(out, UNKNOWN_TYPE);
    put_u8(out, 0);
    do {
        if (count == OP_DIMENSIONS_MAX || !take_number(c, &size))
            return false;
        put_varint(out, size);
        count++;
    } while (skip(c, ", "));
    if (out->failed || !skip(c, "]"))
        return false;
    out->data[head + 2] = count;
    return true;
}

static bool take_tensors(struct cursor *c, struct byte_writer *out)
{
    if (skip(c, "]"))
        return true;
    do {
        size_t known = out->length;
        if (!take_sizes(c, out)) {
            out->length = known;
            return false;
        }
    } while (skip(c, ", "));
    return skip(c, "]");
}

/* (28,0), (0,-1) */
static bool take_edges(struct cursor *c)
{
    uint64_t number;
    if (skip(c, "]"))
        return true;
    do {
        if (!skip(c, "(") || !take_number(c, &number) || !skip(c, ","))
            return false;
        skip(c, "-");
        if (!take_number(c, &number) || !skip(c, ")"))
            return false;
    } while (skip(c, ", "));
    return skip(c, "]");
}

/* Reads the lists after the number of the operator, to the end or to where the text was cut. */
static bool take_lists(struct cursor *c, bool is_cut, struct range_op *op)
{
    struct byte_writer out = byte_writer(op->inputs, sizeof op->inputs);
    bool is_whole = true;
    if (skip(c, ", sizes = [")) {
        is_whole = take_tensors(c, &out);
        if (!is_whole)
            put_u8(&out, OP_CUT);
        op->input_bytes = (uint32_t)out.length;
    }
    if (is_whole && skip(c, ", input_op_ids = ["))
        is_whole = take_edges(c);
    if (out.failed)
        return false;
    return (is_whole && c->at == c->end) || (is_cut && c->end - c->at < CUT_BYTES_MAX);
}

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

/* Labels have no tensors. */
static bool has_sizes(const struct range_op *op)
{
    for (uint32_t i = 0; i < op->input_bytes; i++)
        if (op->inputs[i] != OP_OTHER)
            return true;
    return false;
}

bool range_text_op(const char *text, uint32_t byte_count, struct range_op *op)
{
    /* A label can contain anything, also ", op_id = ", so the last one counts. */
    const char *id = find_last(text, byte_count, ", op_id = ");
    if (!id || id == text)
        return false;
    struct cursor c = {id, text + byte_count};
    op->name_bytes = (uint32_t)(id - text);
    op->sequence = 0;
    op->input_bytes = 0;
    if (!skip(&c, ", op_id = ") || !take_number(&c, &op->id) ||
        !take_lists(&c, byte_count >= RANGE_TEXT_CUT_BYTES, op))
        return false;
    const char *sequence = find_last(text, op->name_bytes, ", seq = ");
    struct cursor s = {sequence, id};
    uint64_t number;
    if (sequence && sequence > text && skip(&s, ", seq = ") && take_number(&s, &number) &&
        s.at == id && number < UINT64_MAX) {
        op->name_bytes = (uint32_t)(sequence - text);
        op->sequence = number + 1;
    }
    op->is_label = !op->sequence && !has_sizes(op) && !is_operator(text, op->name_bytes);
    return true;
}

bool range_op_begins_trace(const char *name, uint32_t byte_count)
{
    static const char timed[] = "(dynamo_timed)";
    size_t length = sizeof timed - 1;
    return byte_count >= length && memcmp(name + byte_count - length, timed, length) == 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static char *copy(char *out, const char *text, size_t byte_count)
{
    memcpy(out, text, byte_count);
    return out + byte_count;
}

/* Length of a value of XLA, up to its delimiter; 0: no delimiter, or empty. */
static uint32_t value_bytes(struct cursor c)
{
    const char *at = c.at;
    while (at < c.end && *at != ',' && *at != '#')
        at++;
    return at < c.end ? (uint32_t)(at - c.at) : 0;
}

/* XlaModule:#prefix=jit_f,hlo_module=jit_f,program_id=3# */
static uint32_t module_name(struct cursor c, char *out)
{
    struct cursor name = c;
    const char *key = memmem(c.at, (size_t)(c.end - c.at), "#hlo_module=", 12);
    if (!key)
        key = memmem(c.at, (size_t)(c.end - c.at), ",hlo_module=", 12);
    if (!key)
        return 0;
    name.at = key + 12;
    uint32_t length = value_bytes(name);
    if (!length)
        return 0;
    char *end = copy(out, "XlaModule: ", 11);
    return (uint32_t)(copy(end, name.at, length) - out);
}

/* Thunk:#name=main/dot_general,hlo_op=fusion.3#; the name can contain anything. */
static uint32_t thunk_name(struct cursor c, char *out)
{
    struct cursor name = {c.at + 1, c.end};
    bool is_named = skip(&name, "name=");
    const char *key = is_named ? find_last(name.at, (uint32_t)(c.end - name.at), ",hlo_op=") : c.at;
    struct cursor op = {key, c.end};
    if (!key || !(is_named ? skip(&op, ",hlo_op=") : skip(&op, "#hlo_op=")))
        return 0;
    uint32_t length = value_bytes(op);
    if (!length)
        return 0;
    char *end = copy(out, "Thunk: ", 7);
    end = copy(end, op.at, length);
    if (is_named && key > name.at) {
        end = copy(end, " (", 2);
        end = copy(end, name.at, (size_t)(key - name.at));
        *end++ = ')';
    }
    return (uint32_t)(end - out);
}

/* {'Module': 'model.layers.0.mlp', 'Inputs': ..}, with quotes as Python's repr() has them. */
static uint32_t layer_name(struct cursor c, bool is_cut, char *out)
{
    char quote = c.at < c.end ? *c.at++ : '\0';
    const char *begin = c.at;
    if (quote != '\'' && quote != '"')
        return 0;
    while (c.at < c.end && *c.at != quote)
        c.at += *c.at == '\\' && c.at + 1 < c.end ? 2 : 1;
    uint32_t length = (uint32_t)(c.at - begin);
    bool is_closed = c.at < c.end && *c.at++ == quote;
    if (!is_closed || !length || (c.end[-1] != '}' && !is_cut))
        return 0;
    if (!skip(&c, ", ") && !(skip(&c, "}") && c.at == c.end))
        return 0;
    return (uint32_t)(copy(out, begin, length) - out);
}

uint32_t range_text_name(const char *text, uint32_t byte_count, char *out)
{
    struct range_op op;
    struct cursor c = {text, text + byte_count};
    bool is_cut = byte_count >= RANGE_TEXT_CUT_BYTES;
    if (skip(&c, "{'Module': "))
        return layer_name(c, is_cut, out);
    if (byte_count && c.end[-1] == '#' && skip(&c, "XlaModule:"))
        return module_name(c, out);
    if (byte_count && c.end[-1] == '#' && skip(&c, "Thunk:#")) {
        c.at--;
        return thunk_name(c, out);
    }
    if (!range_text_op(text, byte_count, &op))
        return 0;
    return (uint32_t)(copy(out, text, op.name_bytes) - out);
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

/* ---- frequent names -------------------------------------------------------------------------- */

void step_names_take(struct step_names *n, const char *text)
{
    char name[STEP_NAME_BYTES] = {0}, pattern[STEP_NAME_BYTES];
    int length = snprintf(name, sizeof name, "%s", text);
    if (length >= (int)sizeof name) {
        length = (int)sizeof name - 1;
        while (length > 1 && (name[length - 1] & 0xC0) == 0x80) /* do not cut a UTF-8 character */
            length--;
        strcpy(name + length - 1, "*");
    }
    uint32_t bytes = range_text_pattern(name, (uint32_t)length, NUMBERS_ALL, pattern);
    if (bytes) {
        memcpy(name, pattern, bytes);
        name[bytes] = '\0';
    }
    for (uint32_t i = 0; i < n->count; i++)
        if (strcmp(n->list[i].pattern, name) == 0) {
            n->list[i].count++;
            return;
        }
    if (n->count == STEP_NAMES_MAX)
        return;
    memcpy(n->list[n->count].pattern, name, sizeof name);
    n->list[n->count++].count = 1;
}

static int most_first(const void *left, const void *right)
{
    const struct step_name *a = left, *b = right;
    return a->count != b->count ? (a->count < b->count ? 1 : -1) : strcmp(a->pattern, b->pattern);
}

const char *step_names_text(struct step_names *n, char text[STEP_NAMES_ALL_BYTES])
{
    size_t at = (size_t)sprintf(text, "%s", n->count ? "; the names are " : "");
    if (n->count)
        qsort(n->list, n->count, sizeof n->list[0], most_first);
    for (uint32_t i = 0; i < n->count && i < STEP_NAMES_REPORTED; i++)
        at += (size_t)sprintf(text + at, "%s'%s'", i ? ", " : "", n->list[i].pattern);
    if (n->count > STEP_NAMES_REPORTED)
        strcpy(text + at, " ...");
    return text;
}
