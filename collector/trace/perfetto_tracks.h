/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks of a Perfetto trace: processes, threads and counters, each described at its first use. */
#ifndef GPUPROF_COLLECTOR_PERFETTO_TRACKS_H
#define GPUPROF_COLLECTOR_PERFETTO_TRACKS_H

#include "base/key_map.h"
#include "trace/track_packets.h"

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

#endif
