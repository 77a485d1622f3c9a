/* SPDX-License-Identifier: Apache-2.0 */
#include "library/dnn_text.h"

#include <string.h>

#define NUMBER_BYTES_MAX 20 /* digits of an int64_t */

static const char cut_mark[] = "; ...";

/* By the numbers of cudnn_graph.h. */
static const struct {
    const char *name;
    const char *type;
} types[] = {{"FLOAT", "f32"},        {"DOUBLE", "f64"},    {"HALF", "f16"},
             {"INT8", "i8"},          {"INT32", "i32"},     {"INT8x4", "i8x4"},
             {"UINT8", "u8"},         {"UINT8x4", "u8x4"},  {"INT8x32", "i8x32"},
             {"BFLOAT16", "bf16"},    {"INT64", "i64"},     {"BOOLEAN", "bool"},
             {"FP8_E4M3", "e4m3"},    {"FP8_E5M2", "e5m2"}, {"FAST_FLOAT_FOR_FP8", "f32-fast-fp8"},
             {"FP8_E8M0", "ue8m0"},   {"FP4_E2M1", "e2m1"}, {"INT4", "i4"},
             {"UINT4", "u4"},         {"UINT32", "u32"},    {"COMPLEX_FP32", "cf32"},
             {"COMPLEX_FP64", "cf64"}};

const char *dnn_type(int type)
{
    return type >= 0 && (size_t)type < sizeof types / sizeof *types ? types[type].type : "?";
}

const char *dnn_type_named(const char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == bytes && memcmp(types[i].name, name, bytes) == 0)
            return types[i].type;
    return "?";
}

void dnn_text_init(struct dnn_text *t, char *text, uint32_t bytes_max)
{
    *t = (struct dnn_text){.text = text, .bytes_max = bytes_max - (uint32_t)strlen(cut_mark)};
}

/* Removes an operation that does not fit completely: parts of it would mislead. */
static void dnn_text_cut(struct dnn_text *t)
{
    const char *mark = t->operation ? cut_mark : cut_mark + 2;
    t->bytes = t->operation + (uint32_t)strlen(mark);
    memcpy(t->text + t->operation, mark, strlen(mark));
    t->is_cut = true;
}

static void dnn_text_put(struct dnn_text *t, const char *bytes, size_t count)
{
    if (t->is_cut)
        return;
    if (count > t->bytes_max - t->bytes) {
        dnn_text_cut(t);
        return;
    }
    memcpy(t->text + t->bytes, bytes, count);
    t->bytes += (uint32_t)count;
}

/* Lower case, and only characters without a meaning in the grammar. */
static void put_word(struct dnn_text *t, const char *word, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char c = word[i];
        if (c >= 'A' && c <= 'Z')
            c += 'a' - 'A';
        else if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
            c = '_';
        dnn_text_put(t, &c, 1);
    }
}

static void dnn_text_put_key(struct dnn_text *t, const char *key, size_t count)
{
    dnn_text_put(t, " ", 1);
    put_word(t, key, count);
    dnn_text_put(t, "=", 1);
}

static void dnn_text_put_numbers(struct dnn_text *t, const int64_t *numbers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char digits[NUMBER_BYTES_MAX];
        char *at = digits + sizeof digits;
        uint64_t rest = numbers[i] < 0 ? 0 - (uint64_t)numbers[i] : (uint64_t)numbers[i];
        do
            *--at = (char)('0' + rest % 10);
        while (rest /= 10);
        if (numbers[i] < 0)
            *--at = '-';
        if (i)
            dnn_text_put(t, ",", 1);
        dnn_text_put(t, at, (size_t)(digits + sizeof digits - at));
    }
}

void dnn_text_operation(struct dnn_text *t, const char *name, size_t bytes)
{
    t->operation = t->is_cut ? t->operation : t->bytes;
    if (t->bytes)
        dnn_text_put(t, "; ", 2);
    put_word(t, name, bytes);
}

void dnn_text_pair(struct dnn_text *t, const char *key, size_t key_bytes, const char *word,
                   size_t word_bytes)
{
    dnn_text_put_key(t, key, key_bytes);
    put_word(t, word, word_bytes);
}

void dnn_text_word(struct dnn_text *t, const char *key, const char *word)
{
    dnn_text_pair(t, key, strlen(key), word, strlen(word));
}

void dnn_text_numbers(struct dnn_text *t, const char *key, size_t key_bytes, const int64_t *numbers,
                      unsigned count)
{
    dnn_text_put_key(t, key, key_bytes);
    dnn_text_put_numbers(t, numbers, count);
}

void dnn_text_tensor(struct dnn_text *t, const char *key, size_t key_bytes, const int64_t *dims,
                     unsigned count, const char *type, unsigned flags)
{
    dnn_text_numbers(t, key, key_bytes, dims, count);
    dnn_text_put(t, ":", 1);
    dnn_text_put(t, type, strlen(type));
    if (flags & DNN_CHANNELS_LAST)
        dnn_text_put(t, ":channels_last", 14);
    if (flags & DNN_VIRTUAL)
        dnn_text_put(t, ":virtual", 8);
}

unsigned dnn_layout(const int64_t *dims, const int64_t *strides, unsigned count)
{
    bool has_space = false;
    for (unsigned i = 2; i < count; i++)
        has_space |= dims[i] > 1;
    return count > 3 && has_space && dims[1] > 1 && strides[1] == 1 ? DNN_CHANNELS_LAST : 0;
}
