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
#include "base/key_map.h"
#include "output/output.h"
#include "trace/packet.h"

/* Numbers of fields and values, as Perfetto's .proto files have them, by their message. */
enum { TRACE_PACKET = 1 };
enum { PACKET_CLOCK_SNAPSHOT = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_TRACK_EVENT };
enum { PACKET_INTERNED = 12, PACKET_FLAGS, PACKET_COMPRESSED = 50, PACKET_CLOCK = 58 };
enum { PACKET_DEFAULTS = 59, PACKET_TRACK_DESCRIPTOR, PACKET_SAMPLE = 66, PACKET_SERVICE = 69 };
enum { PACKET_EXTENSION = 72 };
enum { DEFAULTS_CLOCK = 58 };
enum { SNAPSHOT_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIMESTAMP, CLOCK_IS_INCREMENTAL };
enum { SERVICE_STARTED = 2, SERVICE_DISABLED = 5 };
enum { INTERNED_CATEGORY = 1, INTERNED_NAME, INTERNED_KEY, INTERNED_FUNCTION = 5 };
enum { INTERNED_FRAME = 6, INTERNED_CALLSTACK, INTERNED_PATH = 17, INTERNED_MAPPING = 19 };
enum { INTERNED_STRING = 29 };
enum { INTERNED_NUMBER = 1, INTERNED_TEXT };
enum { MAPPING_PATH = 7, FRAME_FUNCTION = 2, FRAME_MAPPING, CALLSTACK_FRAME = 2 };
enum { PERF_PID = 2, PERF_TID, PERF_CALLSTACK, PERF_MODE };
enum { TRACK_UUID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_THREAD, TRACK_PARENT, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6, PROCESS_LABEL = 8 };
enum { THREAD_DESCRIPTOR_PID = 1, THREAD_DESCRIPTOR_TID, THREAD_DESCRIPTOR_NAME = 5 };
enum { EVENT_CATEGORY = 3, EVENT_ANNOTATION, EVENT_LEGACY = 6, EVENT_TYPE = 9, EVENT_NAME };
enum { EVENT_TRACK = 11, EVENT_CATEGORY_TEXT = 22, EVENT_NAME_TEXT, EVENT_WHOLE_COUNTER = 30 };
enum { EVENT_COUNTER = 44, EVENT_ARGUMENTS = 9947 }; /* from 9900 on they are anybody's */
enum { LEGACY_PHASE = 2, LEGACY_ID = 6, LEGACY_BIND_ID = 8, LEGACY_ENCLOSING = 12 };
enum { LEGACY_DIRECTION = 13 };
enum { ANNOTATION_KEY = 1, ANNOTATION_BOOL, ANNOTATION_INT = 4, ANNOTATION_DOUBLE };
enum { ANNOTATION_TEXT = 6, ANNOTATION_KEY_TEXT = 10, ANNOTATION_ENTRY, ANNOTATION_ITEM };
enum { ANNOTATION_STRING = 17 };
/* Of descriptor.proto. */
enum { EXTENSION_SET = 1, SET_FILE = 1, MESSAGE_NAME = 1, MESSAGE_FIELD };
enum { FILE_NAME = 1, FILE_PACKAGE, FILE_MESSAGE = 4, FILE_EXTENSION = 7 };
enum { FIELD_NAME = 1, FIELD_EXTENDEE, FIELD_NUMBER, FIELD_LABEL, FIELD_TYPE, FIELD_TYPE_NAME };

enum { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER };
enum { FLOW_IN = 1, FLOW_OUT };
enum { FLAG_CLEARED = 1 };
enum { MODE_KERNEL = 1, MODE_USER };
enum { LABEL_OPTIONAL = 1, LABEL_REPEATED = 3 };
enum { FIELD_DOUBLE = 1, FIELD_INT64 = 3, FIELD_MESSAGE = 11 };
/* The last is a sequence's own. */
enum { CLOCK_REALTIME_ID = 1, CLOCK_BOOTTIME_ID = 6, CLOCK_STEPS_ID = 64 };

/* ---- numbers of texts ---- */

/*
 * Numbers of texts, from 1 on, in the order in which they are met. Memory: the texts, 24 to 48
 * bytes each; what would be more than TEXT_NUMBERS_BYTES or TEXT_NUMBERS_MAX has no number.
 */
#define TEXT_NUMBERS_MAX   65536
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

/* 0: it has none. *is_new: it has just got it. */
uint32_t text_number(struct text_numbers *t, const char *text, size_t length, bool *is_new);

/* ---- packets ---- */

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
void track_packets_event(struct track_packets *t, uint64_t ns, unsigned field, struct packet *event,
                         struct packet *interned);

/* The innermost slice of the track that is open at that time ends. */
void track_packets_end(struct track_packets *t, uint64_t ns, uint64_t track);

/* All that there is goes to the output. */
void track_packets_finish(struct track_packets *t);

/* ---- tracks: processes, threads and counters, each described at its first use ---- */

/* What a track stands for; of a counter, the number of its name. */
enum track { TRACK_OF_PROCESS = 1, TRACK_OF_THREAD, TRACK_OF_COUNTER };

struct perfetto_tracks {
    struct track_packets *packets; /* a view */
    struct key_map known;
    struct text_numbers counter_names;
    uint64_t count;
    bool failed; /* no memory */
};

void perfetto_tracks_release(struct perfetto_tracks *t);

/* The number of a process or thread's track, or of one that is called so: `field` of its descriptor
 * says `text`, or nothing. */
uint64_t perfetto_track(struct perfetto_tracks *t, enum track kind, int64_t pid, int64_t tid,
                        unsigned field, struct json_piece text);

/* Each of a counter's values has a track, "GPU busy %", as Perfetto makes of a Chrome trace. */
uint64_t perfetto_counter(struct perfetto_tracks *t, int64_t pid, struct json_piece name,
                          struct json_piece key);

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
