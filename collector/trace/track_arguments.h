/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that most events have as arguments, in Perfetto's own format: a debug annotation says its
 * length, its key and its kind with each, of an array with each item. So they are fields of a
 * message `debug` instead, an extension of track events that the trace itself describes (which is
 * how Perfetto lets others add to its format); SQL finds them as it finds annotations.
 */
#ifndef GPUPROF_COLLECTOR_TRACK_ARGUMENTS_H
#define GPUPROF_COLLECTOR_TRACK_ARGUMENTS_H

#include "base/json_scan.h"
#include "trace/packet.h"
#include "trace/text_numbers.h"

/* Gives the keys, as JSON has them, their numbers, before there is any other; false: no memory. */
bool track_arguments_number(struct text_numbers *keys);

/* Puts the description into the packet. */
void track_arguments_describe(struct packet *p);

/* Puts the argument with that number of its key; false: it has to be an annotation. */
bool track_argument_put(struct packet *p, uint32_t number, struct json_piece value);

/* Has the key a number of those? */
bool track_argument_is(uint32_t number);

#endif
