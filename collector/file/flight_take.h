/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a killed process that ran with --flight: the stream file with what its recorder still held, as
 * one more dump (formats/flight.h).
 */
#ifndef GPUPROF_COLLECTOR_FLIGHT_TAKE_H
#define GPUPROF_COLLECTOR_FLIGHT_TAKE_H

#include <stdint.h>

/* Where it is. */
struct flight_place {
    int fd;            /* of the live file */
    uint64_t offset;   /* in it; 0: it has none, or it has been taken */
    uint64_t alive_ns; /* when its process was last seen alive, as times in records; 0: not known */
};

/*
 * Puts a stream file with that dump into the place of the one at `stream_path`, whose live file is
 * open, and says there that it has been taken. A dump that was under way is part of it.
 * 1, 0 if the live file has no recorder, GPUPROF_DAMAGED if it is not whole, GPUPROF_IO (errno) or
 * GPUPROF_NO_MEMORY: then all is as it was.
 */
int flight_take(struct flight_place *place, const char *stream_path);

/* Writes that file to `fd` instead, and leaves all as it is. As flight_take. */
int flight_copy(struct flight_place *place, const char *stream_path, int fd);

#endif
