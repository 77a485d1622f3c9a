/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of the interpreter's as UTF-8, and the table of lines of a code object. */
#ifndef GPUPROF_INJECT_PYTHON_TEXT_H
#define GPUPROF_INJECT_PYTHON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct python_layout;

/* Where the characters of a str are, from its beginning on. */
struct python_characters {
    uint32_t data;
    uint32_t size;   /* of one: 1, 2 or 4; 0: they are elsewhere */
    uint64_t length; /* in characters */
};

/* By the head of the str. A str of a derived class has them elsewhere. */
struct python_characters python_characters(const struct python_layout *l, const uint8_t *head);

/* Is it the type of a str, or derived from it? By checked reads. */
bool python_type_is_text(const struct python_layout *l, uint64_t type);

/*
 * The str at `address`, by checked reads, cut at a whole character of at most `max` bytes. What has
 * no place in UTF-8, and zeros, become U+FFFD. Returns the length; "?" if it cannot be read.
 */
uint32_t python_text(const struct python_layout *l, uint64_t address, char *to, uint32_t max);

/*
 * The line of the instruction `offset` bytes into the code, by the table (a bytes object) at
 * `table`; 0 if it has none or it cannot be known.
 */
uint32_t python_line(const struct python_layout *l, uint64_t table, uint32_t first_line,
                     int64_t offset);

#endif
