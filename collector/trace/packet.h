/* SPDX-License-Identifier: Apache-2.0 */
/* A small encoder of Protocol Buffers messages in memory, which needs no library and no generated
 * code. After the first failed allocation it adds nothing, and `failed` is set. And numbers of
 * texts, for tables of strings. */
#ifndef GPUPROF_COLLECTOR_PACKET_H
#define GPUPROF_COLLECTOR_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_text.h"
#include "base/key_map.h"

struct packet {
    uint8_t *bytes; /* owned */
    size_t used;
    size_t capacity;
    bool failed;
};

void packet_release(struct packet *p);

/* Returns room for `bytes` more at the end, to be added to `used`. */
void *packet_room(struct packet *p, size_t bytes);

void packet_append(struct packet *p, const void *data, size_t length);

/* Adds a uint64, int64 (two's complement), bool or enum. */
void packet_number(struct packet *p, unsigned field, uint64_t value);
void packet_double(struct packet *p, unsigned field, double value);
void packet_bytes(struct packet *p, unsigned field, const void *data, size_t length);

/* Adds a decoded JSON string. */
void packet_string(struct packet *p, unsigned field, struct json_piece string);

/* Begins a nested message; fields go into it until packet_close with the returned value. */
size_t packet_open(struct packet *p, unsigned field);
void packet_close(struct packet *p, size_t opened);

/* ---- numbers of texts ---- */

/* Interns texts: numbers from 1 on in order of appearance. Memory: the texts, and 24 to 48 bytes
 * each. Texts beyond TEXT_NUMBERS_BYTES or TEXT_NUMBERS_MAX get no number. */
#define TEXT_NUMBERS_MAX   (1u << 20)
#define TEXT_NUMBERS_BYTES (16u << 20)

struct text_number {
    char *text; /* owned */
    uint32_t length;
    uint32_t hash;
};

struct text_numbers {
    struct text_number *texts; /* owned */
    uint32_t count;
    struct number_set set;
    size_t bytes;
};

void text_numbers_release(struct text_numbers *t);

/* Returns the text's number; 0: none. *is_new: the number is new. */
uint32_t text_number(struct text_numbers *t, const char *text, size_t length, bool *is_new);

#endif
