/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going through JSON text that gpuprof has made itself, value by value, without a copy. What is not
 * JSON ends the text: nothing is read beyond `end`.
 */
#ifndef GPUPROF_COLLECTOR_JSON_SCAN_H
#define GPUPROF_COLLECTOR_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of a text; of a string with its quotes. */
struct json_piece {
    const char *at;
    size_t length;
};

/* The next member of the object, or item of the array, whose text behind the opening bracket begins
 * at *at, which moves on: its key (of an item: of length 0) and value. False: there is none. */
bool json_next(const char **at, const char *end, struct json_piece *key, struct json_piece *value);

/* The value of a member of the object; of length 0: it has none such. */
struct json_piece json_member(struct json_piece object, const char *key);

/* What a string says, in UTF-8; `out` has room for its length. Returns the bytes. */
size_t json_unescape(struct json_piece string, char *out);

static inline bool json_is(struct json_piece piece, char first)
{
    return piece.length && *piece.at == first;
}

/* A whole number; false: it is none, or too large. */
bool json_whole(struct json_piece piece, int64_t *value);
double json_double(struct json_piece piece);

/* A time in us with three digits behind the point at most, in ns. */
uint64_t json_ns(struct json_piece piece);

#endif
