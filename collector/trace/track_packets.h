/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of track events, one sequence of them. Perfetto asks for two packets a slice, its begin
 * and its end. Ends wait here until it is their time, so that packets are mostly in the order of
 * time, and say it as the few ns since the packet before; what comes too late for that says its
 * time itself. Packets are compressed together, unless the whole file is.
 *
 * Memory: 512 KiB of packets, 1 MiB of ends; an end beyond that is written at once.
 */
#ifndef GPUPROF_COLLECTOR_TRACK_PACKETS_H
#define GPUPROF_COLLECTOR_TRACK_PACKETS_H

#include "base/json_scan.h"
#include "output/output.h"
#include "trace/packet.h"
#include "trace/perfetto_fields.h"
#include "trace/text_numbers.h"

struct track_end {
    uint64_t ns;
    uint64_t track;
};

struct track_packets {
    struct output *out;
    bool is_plain;          /* the file is compressed as a whole */
    struct packet part;     /* packets that are not written yet */
    struct packet end;      /* that is being made */
    uint64_t written;       /* bytes, before compression */
    uint64_t last_ns;       /* what the next difference counts from */
    struct track_end *ends; /* owned: a heap, the earliest first */
    uint32_t end_count;
    uint32_t end_room;
    bool failed; /* no memory */
};

void track_packets_init(struct track_packets *t, struct output *out);
void track_packets_release(struct track_packets *t);

/* The first packet: times are ns since a moment of the system's clock. */
void track_packets_begin(struct track_packets *t, uint64_t origin_ns);

/* Of that time the trace is: viewers show it first, and not from where a range began that reaches
 * into it. */
void track_packets_show(struct track_packets *t, uint64_t from_ns, uint64_t to_ns);

/* Opens another packet in `part`, and closes it with what was returned. */
size_t track_packet_open(struct track_packets *t);
void track_packet_close(struct track_packets *t, size_t opened);

/* An event at that time, with what is interned for it; both are empty afterwards. */
void track_packets_event(struct track_packets *t, uint64_t ns, struct packet *event,
                         struct packet *interned);

/* The innermost slice of the track that is open at that time ends. */
void track_packets_end(struct track_packets *t, uint64_t ns, uint64_t track);

/* All that there is goes to the output. */
void track_packets_finish(struct track_packets *t);

/* ---- track_arguments.c ---- */

/*
 * Numbers that most events have as arguments, in Perfetto's own format: a debug annotation says its
 * length, its key and its kind with each, of an array with each item. So they are fields of a
 * message `debug` instead, an extension of track events that the trace itself describes (which is
 * how Perfetto lets others add to its format); SQL finds them as it finds annotations.
 */

/* Gives the keys, as JSON has them, their numbers, before there is any other; false: no memory. */
bool track_arguments_number(struct text_numbers *keys);

/* Puts the description into the packet. */
void track_arguments_describe(struct packet *p);

/* Puts the argument with that number of its key; false: it has to be an annotation. */
bool track_argument_put(struct packet *p, uint32_t number, struct json_piece value);

/* Has the key a number of those? */
bool track_argument_is(uint32_t number);

#endif
