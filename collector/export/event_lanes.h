/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk whose text several workers make (workers.h), each of the events of some of the processes.
 * A worker sends its text in pieces, one an event, with the event's place in the timeline; this
 * process puts them together in that order, so that the text is that of one walk, to the byte.
 * Where there are more processors than recordings, or one recording has most of the events, several
 * workers walk through the same processes, and take turns with the text.
 *
 * It is for consumers whose text of an event depends on no other events but by the walk. Memory:
 * for each worker LANE_BATCHES times 1.3 MiB that it shares with this process, besides what its
 * walk takes; who is that far ahead waits. So workers share the work where processes record at the
 * same time.
 */
#ifndef GPUPROF_COLLECTOR_EVENT_LANES_H
#define GPUPROF_COLLECTOR_EVENT_LANES_H

#include "output/output.h"
#include "resolve/event_walk.h"
#include "resolve/selection.h"

#define LANE_PIECES  16384 /* of a batch, and text of OUTPUT_BUFFER_BYTES at most */
#define LANE_BATCHES 6

#define LANE_TURN 4096 /* events */
#define LANE_ROW  3.0  /* an event's text takes so many times what surveying and walking takes */

/* So many workers take longer for plain text than this process to put it together and write it: a
 * quarter of what they take in all. A thread that writes only takes their processors then. */
#define LANES_SLOWER 3

/*
 * As walk_run, of a walk that has surveyed or only what is shared, and for one consumer, which
 * writes into *out; its `end` runs here. *steps, if not NULL, are found before: the consumer has
 * them, those of a worker without `made_of`. *found, of a selection that filters the walk, is
 * the sum over all. 0 or an error, which is said, also where *out has one.
 */
int event_lanes_run(struct walk *w, struct steps *steps, const struct consumer *consumer,
                    struct output *out, struct selection_found *found);

#endif
