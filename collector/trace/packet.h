/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of Protocol Buffers, written into memory: fields by their numbers, one behind the other.
 * Few lines do it, so no library and no generated code is needed. After the first failure to get
 * memory nothing is added, and `failed` says so.
 */
#ifndef GPUPROF_COLLECTOR_PACKET_H
#define GPUPROF_COLLECTOR_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_scan.h"

struct packet {
    uint8_t *bytes; /* owned */
    size_t used;
    size_t capacity;
    bool failed;
};

void packet_release(struct packet *p);

/* Bytes as they are. */
void packet_append(struct packet *p, const void *data, size_t length);

/* uint64, int64 (of two's complement), bool, enum. */
void packet_number(struct packet *p, unsigned field, uint64_t value);
void packet_double(struct packet *p, unsigned field, double value);
void packet_bytes(struct packet *p, unsigned field, const void *data, size_t length);

/* What a JSON string says. */
void packet_string(struct packet *p, unsigned field, struct json_piece string);

/* Begins a message inside of this one; what is added belongs to it, until packet_close with what
 * was returned. */
size_t packet_open(struct packet *p, unsigned field);
void packet_close(struct packet *p, size_t opened);

#endif
