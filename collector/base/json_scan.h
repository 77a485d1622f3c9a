/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of JSON text that gpuprof wrote itself: value by value, without a copy. Malformed text
 * ends the iteration; nothing is read beyond `end`. */
#ifndef GPUPROF_COLLECTOR_JSON_SCAN_H
#define GPUPROF_COLLECTOR_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a JSON text; a string includes its quotes. */
struct json_piece {
    const char *at;
    size_t length;
};

/* Reads the next member of an object, or item of an array, at *at, which starts behind the opening
 * bracket and moves on. Sets its key (empty for an item) and value. Returns false at the end. */
bool json_next(const char **at, const char *end, struct json_piece *key, struct json_piece *value);

/* Returns the value of a member of the object; its length is 0 if there is no such member. */
struct json_piece json_member(struct json_piece object, const char *key);

/* Decodes a string to UTF-8; `out` has room for the string's length. Returns the bytes written. */
size_t json_unescape(struct json_piece string, char *out);

static inline bool json_is(struct json_piece piece, char first)
{
    return piece.length && *piece.at == first;
}

/* Parses a whole number. Returns false if it is none, or too large. */
bool json_whole(struct json_piece piece, int64_t *value);
double json_double(struct json_piece piece);

/* Converts microseconds with at most three decimals to ns. */
uint64_t json_ns(struct json_piece piece);

#endif
