/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/value_text.h"

enum style { STYLE_DIM3 = 1, STYLE_HANDLE = 2 };

char *value_number(char *out, uint64_t value)
{
    if (value <= VALUE_EXACT_MAX)
        return json_decimal(out, value);
    *out++ = '"';
    out = json_decimal(out, value);
    *out++ = '"';
    return out;
}

char *value_signed(char *out, uint64_t value)
{
    int32_t number = (int32_t)(uint32_t)value;
    if (number < 0)
        *out++ = '-';
    return json_decimal(out, number < 0 ? -(uint64_t)(int64_t)number : (uint64_t)number);
}

char *value_copy_kind(char *out, uint64_t value)
{
    static const char kinds[][8] = {"\"HtoH\"", "\"HtoD\"", "\"DtoH\"", "\"DtoD\""};
    if (value < 4) {
        memcpy(out, kinds[value], 6);
        return out + 6;
    }
    if (value != 4)
        return value_number(out, value);
    memcpy(out, "\"default\"", 9);
    return out + 9;
}

static char *make_dim3(char *out, uint64_t value)
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

static char *make_handle(char *out, uint64_t value)
{
    out = json_hex(out, value);
    *out++ = '"';
    return out;
}

static char *cached(struct value_cache *c, char *out, uint64_t value, enum style style)
{
    uint64_t hash = (value + style) * 0x9E3779B97F4A7C15u;
    struct value_slot *slot = &c->slots[hash >> 56];
    _Static_assert(VALUE_CACHE_SLOTS == 256, "the hash's top byte is the slot");
    if (slot->value != value || slot->style != style) {
        char *end =
            style == STYLE_DIM3 ? make_dim3(slot->text, value) : make_handle(slot->text, value);
        slot->value = value;
        slot->style = (uint8_t)style;
        slot->length = (uint8_t)(end - slot->text);
    }
    memcpy(out, slot->text, VALUE_TEXT_MAX);
    return out + slot->length;
}

char *value_dim3(struct value_cache *c, char *out, uint64_t value)
{
    return cached(c, out, value, STYLE_DIM3);
}

char *value_handle(struct value_cache *c, char *out, uint64_t value)
{
    return cached(c, out, value, STYLE_HANDLE);
}
