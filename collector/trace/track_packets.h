/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sequence of track event packets. Perfetto needs two packets a slice, for its begin and end, and
 * sorts all by time. They are compressed together, unless the whole file is. Memory: 512 KiB of
 * packets.
 */
#ifndef GPUPROF_COLLECTOR_TRACK_PACKETS_H
#define GPUPROF_COLLECTOR_TRACK_PACKETS_H

#include "base/json_text.h"
#include "base/key_map.h"
#include "output/output.h"
#include "resolve/call_tree.h"
#include "resolve/event_walk.h"
#include "trace/packet.h"

/* Field numbers and values from Perfetto's .proto files, by message. */
enum { TRACE_PACKET = 1 };
enum { PACKET_CLOCK_SNAPSHOT = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_TRACK_EVENT };
enum { PACKET_INTERNED = 12, PACKET_FLAGS, PACKET_COMPRESSED = 50, PACKET_CLOCK = 58 };
enum { PACKET_DEFAULTS = 59, PACKET_TRACK_DESCRIPTOR, PACKET_SAMPLE = 66, PACKET_SERVICE = 69 };
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
enum { EVENT_COUNTER = 44 };
enum { LEGACY_PHASE = 2, LEGACY_ID = 6, LEGACY_BIND_ID = 8, LEGACY_ENCLOSING = 12 };
enum { LEGACY_DIRECTION = 13 };
enum { ANNOTATION_KEY = 1, ANNOTATION_BOOL, ANNOTATION_INT = 4, ANNOTATION_DOUBLE };
enum { ANNOTATION_TEXT = 6, ANNOTATION_KEY_TEXT = 10, ANNOTATION_ENTRY, ANNOTATION_ITEM };
enum { ANNOTATION_STRING = 17 };

enum { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER };
enum { FLOW_IN = 1, FLOW_OUT };
enum { FLAG_CLEARED = 1 };
enum { MODE_KERNEL = 1, MODE_USER };
/* The last clock is specific to the sequence. */
enum { CLOCK_REALTIME_ID = 1, CLOCK_BOOTTIME_ID = 6, CLOCK_STEPS_ID = 64 };

/* ---- packets ---- */

struct track_packets {
    struct output *out;
    bool is_plain;       /* the file is compressed as a whole */
    struct packet part;  /* packets not written yet */
    struct packet event; /* the next event, and the texts it is the first to use */
    struct packet interned;
    uint64_t written;       /* bytes before compression */
    uint64_t last_ns;       /* base of the next time difference */
    struct key_map numbers; /* of tracks, and of interned stacks, frames and modules */
    uint64_t count;
    struct call_tree *tree; /* of CPU samples, a view; NULL: no stacks */
    uint64_t *way;          /* owned: frames of a stack, innermost first */
};

void track_packets_release(struct track_packets *t);

/* Writes the first packet: times are ns since a moment of the system's clock. Viewers first show
 * the time from `from_ns` to `to_ns`, unless it is empty: not from the begin of a range that
 * reaches into the selection. */
void track_packets_begin(struct track_packets *t, uint64_t origin_ns, uint64_t from_ns,
                         uint64_t to_ns);

/* Writes `event` as that field of a packet, with its interned texts, at time `ns`: the time since
 * the last event, or, of a late event and of the end of a slice, its own time. Empties both. */
void track_packets_event(struct track_packets *t, uint64_t ns, unsigned field, bool is_end);

/* Writes everything to the output. */
void track_packets_flush(struct track_packets *t);

/* ---- tracks: processes, threads and counters, each described at its first use ---- */

enum track { TRACK_OF_PROCESS = 1, TRACK_OF_THREAD };

/* Returns the track of a process or thread, or of a name; describes it at first use: `field` of its
 * descriptor is `text`, if any. */
uint64_t perfetto_track(struct track_packets *t, enum track kind, int64_t pid, int64_t tid,
                        unsigned field, struct json_piece text);

/* Returns the track of a counter's value, "GPU busy %", named as Perfetto does for a Chrome
 * trace. */
uint64_t perfetto_counter(struct track_packets *t, int64_t pid, struct json_piece name,
                          struct json_piece key);

/* ---- CPU samples ---- */

/*
 * Writes a CPU sample, if the slice is one, at that time of the trace in Perfetto's own format:
 * perf sample packets with interned callstacks. Its viewer shows a flame graph of selected samples.
 * Perfetto counts samples, so one that stands for several is repeated. Memory: 48 to 96 bytes for
 * each stack and frame in use.
 */
void perfetto_sample(struct track_packets *t, const struct slice *s, uint64_t ns);

#endif
