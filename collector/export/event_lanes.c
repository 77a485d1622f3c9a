/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk whose text several workers make (workers.h), each for some of the processes. A worker
 * sends its text in pieces, one per event, with the event's place in the timeline. This process
 * merges them in that order: the result is byte for byte that of a single walk.
 * For consumers whose text of an event depends only on the walk, not on earlier text. Memory:
 * 2.6 MiB a worker, besides its walk; a worker that is a batch ahead waits. So workers run in
 * parallel where processes recorded at the same time.
 */
#include "export/export_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/workers.h"
#include "error.h"

#define LANE_PIECES 16384 /* in a batch, with at most OUTPUT_BUFFER_BYTES of text */

/* Kinds of slices after the last event, in order of their largest times. */
enum behind { BEHIND_LIBRARIES = 2, BEHIND_OPS = 1, BEHIND_RANGES = 0 };

struct piece {
    uint64_t ns; /* place in the timeline: time, then process */
    uint32_t process;
    uint32_t bytes;
};

/* ---- a worker -------------------------------------------------------------------------------- */

struct lane {
    struct walk *walk;
    const struct consumer *consumer;
    struct output *out;
    struct selection_found *found;
    int to;
    struct piece now;                     /* place of the current event */
    struct piece pieces[LANE_PIECES + 1]; /* one more for an unfinished event */
    uint32_t piece_count;
    uint64_t bytes; /* in these */
    uint64_t sent;
};

static void add_piece(struct lane *l, uint64_t bytes)
{
    struct piece *last = l->piece_count ? &l->pieces[l->piece_count - 1] : NULL;
    if (!last || last->ns != l->now.ns || last->process != l->now.process) {
        if (!bytes)
            return;
        last = &l->pieces[l->piece_count++];
        *last = l->now;
    }
    last->bytes += (uint32_t)bytes;
    l->bytes += bytes;
}

static int send_text(void *context, const char *data, size_t length)
{
    struct lane *l = context;
    add_piece(l, length - l->bytes);
    bool is_sent = workers_write(l->to, &l->piece_count, sizeof l->piece_count) &&
                   workers_write(l->to, l->pieces, l->piece_count * sizeof *l->pieces) &&
                   workers_write(l->to, data, length);
    l->piece_count = 0;
    l->bytes = 0;
    l->sent += length;
    return is_sent ? 0 : EPIPE;
}

/* Sets the place of an event in the timeline. If times of a damaged file go back, the last time
 * counts. Slices still open at the end come last, by kind. */
static void find_place(struct lane *l, const struct slice *s)
{
    uint64_t behind = s->library_change ? BEHIND_LIBRARIES
                      : s->op_change    ? BEHIND_OPS
                                        : BEHIND_RANGES;
    uint64_t ns = s->event.record->type ? s->event.begin_ns : UINT64_MAX - behind;
    l->now.ns = ns > l->now.ns ? ns : l->now.ns;
    l->now.process = s->event.process->index;
}

static int event_lanes_take(void *context, const struct slice *s)
{
    struct lane *l = context;
    find_place(l, s);
    int error = l->consumer->take(l->consumer->context, s);
    add_piece(l, output_bytes(l->out) - l->sent - l->bytes);
    if (l->piece_count == LANE_PIECES)
        output_drain(l->out);
    return error == 0 && l->out->error ? WALK_STOP : error;
}

static bool send_tail(struct lane *l)
{
    const struct walk *w = l->walk;
    bool is_sent = workers_write(l->to, &(uint32_t){0}, sizeof(uint32_t)) &&
                   workers_write(l->to, l->found, sizeof *l->found);
    for (uint32_t i = 0; is_sent && i < w->rec->count; i++) {
        struct process *p = w->rec->processes[i];
        struct walk_found found = walk_found(w, p);
        is_sent = p->is_elsewhere || workers_write(l->to, &found, sizeof found);
    }
    return is_sent;
}

/* The context is a copy of the parent's. */
static enum exit_code event_lanes_work(void *context, uint32_t index, int to)
{
    struct lane *l = context;
    struct consumer consumer = *l->consumer;
    consumer.context = l;
    consumer.take = event_lanes_take;
    consumer.end = NULL;
    l->to = to;
    *l->found = (struct selection_found){0};
    output_divert(l->out, send_text, l);
    recording_keep_share(l->walk->rec, index);
    if (walk_run(l->walk, NULL, &consumer, 1) != 0)
        return EXIT_ENVIRONMENT;
    output_drain(l->out); /* earlier failures were reported */
    return !l->out->error && send_tail(l) ? EXIT_OK : EXIT_ENVIRONMENT;
}

/* ---- what puts them together ----------------------------------------------------------------- */

/* A batch of pieces and their text. */
struct incoming {
    struct piece pieces[LANE_PIECES + 1];
    char text[OUTPUT_BUFFER_BYTES];
    uint32_t piece_count; /* 0: the worker has ended */
    uint32_t at;          /* index of the next piece */
    uint32_t text_at;     /* offset of its text */
};

struct joint {
    struct walk *walk;
    struct workers workers;
    struct incoming *lanes; /* owned, one for each worker */
    struct selection_found *found;
};

/* Reads the next batch of a lane, or its end with the worker's findings. Returns false if the
 * worker ended early. */
static bool event_lanes_fill(struct joint *j, uint32_t index)
{
    struct incoming *lane = &j->lanes[index];
    const struct recording *rec = j->walk->rec;
    struct selection_found selected;
    struct walk_found found;
    size_t bytes = 0;
    lane->at = lane->text_at = 0;
    if (!workers_read(&j->workers, index, &lane->piece_count, sizeof lane->piece_count) ||
        !workers_read(&j->workers, index, lane->pieces, lane->piece_count * sizeof *lane->pieces))
        return false;
    for (uint32_t i = 0; i < lane->piece_count; i++)
        bytes += lane->pieces[i].bytes;
    if (lane->piece_count)
        return workers_read(&j->workers, index, lane->text, bytes);
    bool is_read = workers_read(&j->workers, index, &selected, sizeof selected);
    if (is_read)
        selection_add_found(j->found, &selected);
    for (uint32_t i = 0; is_read && i < rec->count; i++) {
        if (rec->processes[i]->worker != index)
            continue;
        is_read = workers_read(&j->workers, index, &found, sizeof found);
        if (is_read)
            walk_add_found(j->walk, rec->processes[i], &found);
    }
    return is_read;
}

static bool event_lanes_is_before(const struct incoming *a, const struct incoming *b)
{
    const struct piece *p = &a->pieces[a->at], *q = &b->pieces[b->at];
    return p->ns != q->ns ? p->ns < q->ns : p->process < q->process;
}

/* Returns the lane with the earliest piece; NULL: none. */
static struct incoming *earliest(struct joint *j)
{
    struct incoming *first = NULL;
    for (uint32_t i = 0; i < j->workers.count; i++)
        if (j->lanes[i].piece_count && (!first || event_lanes_is_before(&j->lanes[i], first)))
            first = &j->lanes[i];
    return first;
}

/* Returns the number of a worker that ended early, WORKERS_DONE, or WORKERS_UNWANTED if the output
 * failed. */
static uint32_t event_lanes_join(struct joint *j, struct output *out)
{
    for (uint32_t i = 0; i < j->workers.count; i++)
        if (!event_lanes_fill(j, i))
            return i;
    for (struct incoming *lane; (lane = earliest(j));) {
        uint32_t bytes = lane->pieces[lane->at++].bytes, index = (uint32_t)(lane - j->lanes);
        output_write(out, lane->text + lane->text_at, bytes);
        lane->text_at += bytes;
        if (out->error)
            return WORKERS_UNWANTED;
        if (lane->at == lane->piece_count && !event_lanes_fill(j, index))
            return index;
    }
    return WORKERS_DONE;
}

int event_lanes_run(struct walk *w, const struct consumer *consumer, struct output *out,
                    struct selection_found *found)
{
    uint32_t count = w->rec->workers;
    struct joint j = {.walk = w, .found = found};
    struct lane lane = {.walk = w, .consumer = consumer, .out = out, .found = found};
    int error = 0;
    recording_deal(w->rec);
    if (count > 1) /* pages are allocated when first used */
        j.lanes = malloc(count * sizeof *j.lanes);
    if (j.lanes && workers_start(&j.workers, count, event_lanes_work, &lane)) {
        uint32_t how = event_lanes_join(&j, out);
        enum exit_code code = workers_end(&j.workers, how);
        if (how == WORKERS_DONE && code == EXIT_OK)
            say_error("export", error = consumer->end(consumer->context));
        else
            error = code == EXIT_OK ? 0 : GPUPROF_IO;
    } else {
        error = walk_run(w, NULL, consumer, 1);
    }
    free(j.lanes);
    return error < 0 ? error : 0;
}
