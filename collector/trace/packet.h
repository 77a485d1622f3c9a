/* SPDX-License-Identifier: Apache-2.0 */
/* A small encoder of Protocol Buffers messages in memory, which needs no library and no generated
 * code. */
#ifndef GPUPROF_COLLECTOR_PACKET_H
#define GPUPROF_COLLECTOR_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_text.h"

struct packet {
    uint8_t *bytes; /* owned */
    size_t used;
    size_t capacity;
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

#endif
