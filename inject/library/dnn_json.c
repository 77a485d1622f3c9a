/* SPDX-License-Identifier: Apache-2.0 */
#include "library/dnn_json.h"

#include <string.h>

struct json {
    const char *at;
    const char *end;
};

struct graph {
    const struct dnn_tensor *tensors;
    unsigned count;
    struct dnn_text *text;
};

#define IS(slice, literal)                                                                         \
    ((slice).bytes == sizeof(literal) - 1 && memcmp((slice).at, literal, (slice).bytes) == 0)

static void take_blanks(struct json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
        j->at++;
}

static bool dnn_json_take(struct json *j, char c)
{
    take_blanks(j);
    if (j->at == j->end || *j->at != c)
        return false;
    j->at++;
    return true;
}

/* Takes a string as it is, with escapes: cuDNN's names have none. */
static bool take_string(struct json *j, struct dnn_slice *s)
{
    if (!dnn_json_take(j, '"'))
        return false;
    s->at = j->at;
    for (; j->at < j->end && *j->at != '"'; j->at++)
        if (*j->at == '\\' && ++j->at == j->end)
            return false;
    s->bytes = (size_t)(j->at - s->at);
    return dnn_json_take(j, '"');
}

static bool is_scalar(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

/* Takes any value. */
static bool take_value(struct json *j, struct dnn_slice *value)
{
    size_t depth = 0;
    take_blanks(j);
    value->at = j->at;
    do {
        struct dnn_slice s;
        if (dnn_json_take(j, '{') || dnn_json_take(j, '['))
            depth++;
        else if (depth && (dnn_json_take(j, '}') || dnn_json_take(j, ']')))
            depth--;
        else if (depth && (dnn_json_take(j, ',') || dnn_json_take(j, ':')))
            continue;
        else if (j->at < j->end && *j->at == '"') {
            if (!take_string(j, &s))
                return false;
        } else if (j->at < j->end && is_scalar(*j->at)) {
            while (j->at < j->end && is_scalar(*j->at))
                j->at++;
        } else {
            return false;
        }
    } while (depth);
    value->bytes = (size_t)(j->at - value->at);
    return true;
}

static struct json inside(struct dnn_slice s)
{
    return (struct json){s.at, s.at + s.bytes};
}

/* Takes the next member of an object, or element of an array; -1: it is not well-formed. */
static int next_member(struct json *j, bool *begun, struct dnn_slice *key, struct dnn_slice *value)
{
    if (!*begun && !dnn_json_take(j, '{'))
        return -1;
    if (dnn_json_take(j, '}'))
        return 0;
    if (*begun && !dnn_json_take(j, ','))
        return -1;
    *begun = true;
    return take_string(j, key) && dnn_json_take(j, ':') && take_value(j, value) ? 1 : -1;
}

static int next_element(struct json *j, bool *begun, struct dnn_slice *value)
{
    if (!*begun && !dnn_json_take(j, '['))
        return -1;
    if (dnn_json_take(j, ']'))
        return 0;
    if (*begun && !dnn_json_take(j, ','))
        return -1;
    *begun = true;
    return take_value(j, value) ? 1 : -1;
}

/* Finds the object's member of that name. */
static bool member(struct dnn_slice object, const char *name, struct dnn_slice *value)
{
    struct json j = inside(object);
    struct dnn_slice key;
    bool begun = false;
    while (next_member(&j, &begun, &key, value) > 0)
        if (key.bytes == strlen(name) && memcmp(key.at, name, key.bytes) == 0)
            return true;
    return false;
}

static bool member_string(struct dnn_slice object, const char *name, struct dnn_slice *string)
{
    struct dnn_slice value;
    struct json j;
    if (!member(object, name, &value))
        return false;
    j = inside(value);
    return take_string(&j, string);
}

static bool member_is_true(struct dnn_slice object, const char *name)
{
    struct dnn_slice value;
    return member(object, name, &value) && IS(value, "true");
}

static bool dnn_json_number_of(struct dnn_slice s, int64_t *number)
{
    bool is_negative = s.bytes && *s.at == '-';
    int64_t n = 0;
    if (s.bytes == (size_t)is_negative)
        return false;
    for (size_t i = is_negative; i < s.bytes; i++)
        if (s.at[i] < '0' || s.at[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, s.at[i] - '0', &n))
            return false;
    *number = is_negative ? -n : n;
    return true;
}

/* Reads the numbers of an array, at most DNN_DIMS_MAX; 0: not an array of numbers. */
static unsigned numbers_of(struct dnn_slice array, int64_t *numbers)
{
    struct json j = inside(array);
    struct dnn_slice value;
    unsigned count = 0;
    bool begun = false;
    int next;
    while ((next = next_element(&j, &begun, &value)) > 0)
        if (count == DNN_DIMS_MAX || !dnn_json_number_of(value, &numbers[count++]))
            return 0;
    return next ? 0 : count;
}

static unsigned member_numbers(struct dnn_slice object, const char *name, int64_t *numbers)
{
    struct dnn_slice value;
    return member(object, name, &value) ? numbers_of(value, numbers) : 0;
}

static bool tensor_named(const struct graph *g, struct dnn_slice name, struct dnn_slice *tensor)
{
    for (unsigned i = 0; i < g->count; i++)
        if (g->tensors[i].name.bytes == name.bytes &&
            memcmp(g->tensors[i].name.at, name.at, name.bytes) == 0) {
            *tensor = g->tensors[i].description;
            return true;
        }
    return false;
}

/* Shortens cuDNN's name of a tensor, like those of other libraries' matrices. */
static struct dnn_slice dnn_json_key_of(struct dnn_slice key)
{
    static const struct {
        const char *theirs;
        const char *ours;
    } renamed[] = {{"mathPrec", "compute"},
                   {"compType", "compute"},
                   {"groupCount", "groups"},
                   {"pointwiseMode", "mode"},
                   {"reductionOp", "mode"},
                   {"fmode", "phase"},
                   {"matA", "a"},
                   {"matB", "b"},
                   {"matC", "c"}};
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strlen(renamed[i].theirs) == key.bytes &&
            memcmp(renamed[i].theirs, key.at, key.bytes) == 0)
            return (struct dnn_slice){renamed[i].ours, strlen(renamed[i].ours)};
    return key;
}

/* Removes the prefix that all enumerators of the kind share. */
static bool dnn_json_drop(struct dnn_slice *s, const char *prefix)
{
    size_t bytes = strlen(prefix);
    if (s->bytes <= bytes || memcmp(s->at, prefix, bytes) != 0)
        return false;
    s->at += bytes;
    s->bytes -= bytes;
    return true;
}

/* Leaves out scalars that are passed with the call: they are not in device memory. */
static bool dnn_json_put_tensor(const struct graph *g, struct dnn_slice key,
                                struct dnn_slice tensor)
{
    int64_t dims[DNN_DIMS_MAX], strides[DNN_DIMS_MAX], vector[1], dim[1];
    struct dnn_slice type, value;
    unsigned count = member_numbers(tensor, "dim", dims), flags = 0;
    if (member_is_true(tensor, "isByValue"))
        return true;
    if (!count || !member_string(tensor, "dataType", &type))
        return false;
    if (member_numbers(tensor, "stride", strides) == count)
        flags |= dnn_layout(dims, strides, count);
    if (member_is_true(tensor, "isVirtual"))
        flags |= DNN_VIRTUAL;
    /* This dimension is counted in vectors. */
    if (member(tensor, "vectCount", &value) && dnn_json_number_of(value, vector) && vector[0] > 1 &&
        (!member(tensor, "vectDim", &value) || !dnn_json_number_of(value, dim) || dim[0] < 0 ||
         dim[0] >= count || __builtin_mul_overflow(dims[dim[0]], vector[0], &dims[dim[0]])))
        return false;
    dnn_json_drop(&type, "CUDNN_DATA_");
    dnn_text_tensor(g->text, key.at, key.bytes, dims, count, dnn_type_named(type.at, type.bytes),
                    flags);
    return true;
}

/* Writes a tensor, a mode, or the type in which an operation computes; ignores other strings. */
static bool dnn_json_put_string(const struct graph *g, struct dnn_slice key, struct dnn_slice word)
{
    static const char *const kinds[] = {"POINTWISE_", "REDUCE_TENSOR_", "RESAMPLE_", "NORM_FWD_",
                                        "RNG_DISTRIBUTION_"};
    struct dnn_slice tensor, name = dnn_json_key_of(key);
    if (tensor_named(g, word, &tensor))
        return dnn_json_put_tensor(g, name, tensor);
    if (dnn_json_drop(&word, "CUDNN_DATA_")) {
        const char *type = dnn_type_named(word.at, word.bytes);
        dnn_text_pair(g->text, name.at, name.bytes, type, strlen(type));
    } else if (dnn_json_drop(&word, "CUDNN_") && !IS(word, "CROSS_CORRELATION") &&
               !IS(key, "nanOpt")) {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (dnn_json_drop(&word, kinds[i]))
                break;
        dnn_text_pair(g->text, name.at, name.bytes, word.at, word.bytes);
    }
    return true;
}

static bool put_operation(const struct graph *g, struct dnn_slice node)
{
    static const char suffix[] = "_DESCRIPTOR";
    struct json j = inside(node), string;
    struct dnn_slice key, value, name;
    int64_t numbers[DNN_DIMS_MAX];
    bool begun = false, is_good = member_string(node, "operation", &name);
    unsigned count;
    int next = -1;
    if (!is_good)
        return false;
    dnn_json_drop(&name, "CUDNN_BACKEND_OPERATION_");
    if (name.bytes > sizeof suffix - 1 &&
        memcmp(name.at + name.bytes - (sizeof suffix - 1), suffix, sizeof suffix - 1) == 0)
        name.bytes -= sizeof suffix - 1;
    dnn_text_operation(g->text, name.at, name.bytes);
    while (is_good && (next = next_member(&j, &begun, &key, &value)) > 0) {
        string = inside(value);
        if (IS(key, "operation"))
            continue;
        if (take_string(&string, &value)) {
            is_good = dnn_json_put_string(g, key, value);
        } else if ((count = numbers_of(value, numbers)) || dnn_json_number_of(value, numbers)) {
            name = dnn_json_key_of(key);
            dnn_text_numbers(g->text, name.at, name.bytes, numbers, count ? count : 1);
        }
    }
    return is_good && next == 0;
}

static bool find_tensors(struct graph *g, struct dnn_tensor *tensors, struct dnn_slice array)
{
    struct json j = inside(array);
    bool begun = false;
    int next;
    struct dnn_tensor tensor;
    while ((next = next_element(&j, &begun, &tensor.description)) > 0) {
        if (g->count == DNN_TENSORS_MAX || !member_string(tensor.description, "name", &tensor.name))
            return false;
        tensors[g->count++] = tensor;
    }
    return next == 0;
}

bool dnn_json_text(const char *json, size_t bytes, struct dnn_tensor *tensors, struct dnn_text *t)
{
    struct graph g = {.tensors = tensors, .text = t};
    struct dnn_slice all = {json, bytes}, graph, array, node;
    bool begun = false;
    int next;
    if (!member(all, "operationGraph", &graph) || !member(graph, "tensors", &array) ||
        !find_tensors(&g, tensors, array) || !member(graph, "nodes", &array))
        return false;
    struct json j = inside(array);
    while ((next = next_element(&j, &begun, &node)) > 0 && !t->is_cut)
        if (!put_operation(&g, node))
            return false;
    return (next == 0 || t->is_cut) && t->bytes;
}
