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
#include "trace/text_numbers.h"

/* Numbers of fields and values, as Perfetto's .proto files have them. */
enum perfetto_field {
    TRACE_PACKET = 1,

    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_COMPRESSED = 50,
    PACKET_SAMPLE = 66,
    PACKET_CLOCK = 58,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
    PACKET_SERVICE = 69,
    PACKET_EXTENSION = 72,
    DEFAULTS_CLOCK = 58,

    SNAPSHOT_CLOCK = 1,
    CLOCK_ID = 1,
    CLOCK_TIMESTAMP = 2,
    CLOCK_IS_INCREMENTAL = 3,

    SERVICE_STARTED = 2,
    SERVICE_DISABLED = 5,

    INTERNED_CATEGORY = 1,
    INTERNED_NAME = 2,
    INTERNED_KEY = 3,
    INTERNED_FUNCTION = 5,
    INTERNED_FRAME = 6,
    INTERNED_CALLSTACK = 7,
    INTERNED_PATH = 17,
    INTERNED_MAPPING = 19,
    INTERNED_STRING = 29,
    INTERNED_NUMBER = 1,
    INTERNED_TEXT = 2,

    MAPPING_PATH = 7,
    FRAME_FUNCTION = 2,
    FRAME_MAPPING = 3,
    CALLSTACK_FRAME = 2,
    PERF_PID = 2,
    PERF_TID = 3,
    PERF_CALLSTACK = 4,
    PERF_MODE = 5,

    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    PROCESS_LABEL = 8,
    THREAD_DESCRIPTOR_PID = 1,
    THREAD_DESCRIPTOR_TID = 2,
    THREAD_DESCRIPTOR_NAME = 5,

    EVENT_CATEGORY = 3,
    EVENT_ANNOTATION = 4,
    EVENT_LEGACY = 6,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORY_TEXT = 22,
    EVENT_NAME_TEXT = 23,
    EVENT_COUNTER = 44,
    EVENT_WHOLE_COUNTER = 30,
    EVENT_ARGUMENTS = 9947, /* of those from 9900 on, which are anybody's */
    LEGACY_PHASE = 2,
    LEGACY_ID = 6,
    LEGACY_BIND_ID = 8,
    LEGACY_ENCLOSING = 12,
    LEGACY_DIRECTION = 13,

    ANNOTATION_KEY = 1,
    ANNOTATION_BOOL = 2,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_TEXT = 6,
    ANNOTATION_KEY_TEXT = 10,
    ANNOTATION_ENTRY = 11,
    ANNOTATION_ITEM = 12,
    ANNOTATION_STRING = 17,

    /* Of descriptor.proto. */
    EXTENSION_SET = 1,
    SET_FILE = 1,
    FILE_NAME = 1,
    FILE_PACKAGE = 2,
    FILE_MESSAGE = 4,
    FILE_EXTENSION = 7,
    MESSAGE_NAME = 1,
    MESSAGE_FIELD = 2,
    FIELD_NAME = 1,
    FIELD_EXTENDEE = 2,
    FIELD_NUMBER = 3,
    FIELD_LABEL = 4,
    FIELD_TYPE = 5,
    FIELD_TYPE_NAME = 6,
};

enum { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER };
enum { FLOW_IN = 1, FLOW_OUT };
enum { FLAG_CLEARED = 1 };
enum { MODE_KERNEL = 1, MODE_USER };
enum { LABEL_OPTIONAL = 1, LABEL_REPEATED = 3 };
enum { FIELD_DOUBLE = 1, FIELD_INT64 = 3, FIELD_MESSAGE = 11 };
/* The last is a sequence's own. */
enum { CLOCK_REALTIME_ID = 1, CLOCK_BOOTTIME_ID = 6, CLOCK_STEPS_ID = 64 };

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

/* An event, of that field of a packet, at that time, with what is interned for it; both are empty
 * afterwards. */
void track_packets_event(struct track_packets *t, uint64_t ns, enum perfetto_field field,
                         struct packet *event, struct packet *interned);

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
