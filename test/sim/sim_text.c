/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_text.h"

static const char hex_digits[] = "0123456789abcdef";

/* Names come from the program: a tab or a newline in one must not break the line. */
static void text_name(struct sim_text *text, const char *value)
{
    for (unsigned i = 0; value[i] && i < SIM_STRING_BYTES_MAX; i++)
        sim_text_char(text, (unsigned char)value[i] < ' ' ? ' ' : value[i]);
}

void sim_text_number(struct sim_text *text, uint64_t value)
{
    char digits[20];
    unsigned count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count)
        sim_text_char(text, digits[--count]);
}

void sim_text_digits(struct sim_text *text, uint64_t value, unsigned digits)
{
    if (text->limit - text->at < (long)digits)
        return;
    for (unsigned i = digits; i-- > 0; value /= 10)
        text->at[i] = (char)('0' + value % 10);
    text->at += digits;
}

void sim_text_hex16(char *at, uint64_t value)
{
    for (unsigned i = 16; i-- > 0; value >>= 4)
        at[i] = hex_digits[value & 15];
}

static void text_hex(struct sim_text *text, uint64_t value)
{
    int shift = 60;
    while (shift > 0 && (value >> shift) == 0)
        shift -= 4;
    sim_text_string(text, "0x");
    for (; shift >= 0; shift -= 4)
        sim_text_char(text, hex_digits[(value >> shift) & 15]);
}

void sim_text_arg(struct sim_text *text, const struct sim_arg *arg)
{
    switch (arg->type) {
    case 'x':
    case 'o': text_hex(text, arg->value); break;
    case 's': text_name(text, arg->value ? (const char *)(uintptr_t)arg->value : ""); break;
    case 'd':
        if ((int64_t)arg->value < 0)
            sim_text_char(text, '-');
        sim_text_number(text, (int64_t)arg->value < 0 ? 0 - arg->value : arg->value);
        break;
    case '3':
        sim_text_number(text, arg->value);
        sim_text_char(text, ',');
        sim_text_number(text, arg->y);
        sim_text_char(text, ',');
        sim_text_number(text, arg->z);
        break;
    default: sim_text_number(text, arg->value); break;
    }
}
