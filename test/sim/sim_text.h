/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_TEXT_H
#define SIM_TEXT_H

/* Bounded writing of numbers and strings into a line: what does not fit is left out. */

#include <stdint.h>

#include "sim_log.h"

struct sim_text {
    char *at;
    char *limit;
};

static inline void sim_text_char(struct sim_text *text, char value)
{
    if (text->at < text->limit)
        *text->at++ = value;
}

static inline void sim_text_string(struct sim_text *text, const char *value)
{
    while (*value)
        sim_text_char(text, *value++);
}

void sim_text_number(struct sim_text *text, uint64_t value);
void sim_text_digits(struct sim_text *text, uint64_t value, unsigned digits);
void sim_text_arg(struct sim_text *text, const struct sim_arg *arg);
void sim_text_hex16(char *at, uint64_t value);

#endif
