/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk whose text several workers make (workers.h), each for some of the processes. A worker
 * sends its text in pieces, one per event, with the event's place in the timeline. This process
 * merges them in that order: the result is byte for byte that of a single walk. With more
 * processors than recordings, or one dominant recording, several workers walk through the same
 * processes and take turns with the text.
 * For consumers whose text of an event depends only on the walk, not on earlier text. Memory:
 * LANE_BATCHES times 1.3 MiB shared with each worker, besides its walk; a worker that far ahead
 * waits. So workers run in parallel where processes recorded at the same time.
 */
#include "export/export_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/message.h"
#include "base/workers.h"
#include "error.h"

#define LANE_PIECES  16384 /* in a batch, with at most OUTPUT_BUFFER_BYTES of text */
#define LANE_BATCHES 6

#define LANE_TURN 4096 /* events in a turn */
#define LANE_ROW  3.0  /* time for an event's text, relative to surveying and walking */

/* Up to this many workers take longer to make plain text than this process takes to merge and write
 * it (a quarter of their total). A writer thread would only take their processors. */
#define LANES_SLOWER 3

/* Kinds of slices after the last event, in order of their largest times. */
enum behind { BEHIND_LIBRARIES = 2, BEHIND_OPS = 1, BEHIND_RANGES = 0 };

struct piece {
    uint64_t ns; /* place in the timeline: time, then process */
    uint32_t process;
    uint32_t bytes;
};

/* Pieces and their text, in memory shared by the worker and this process. The worker sends the
 * number of pieces (0: the tail follows) and goes on with the next batch; this process acknowledges
 * a batch when it is done. */
struct batch {
    struct piece pieces[LANE_PIECES + 1]; /* one more for an unfinished event */
    char text[OUTPUT_BUFFER_BYTES];
};

static struct batch *next_batch(struct batch *first, uint32_t *at)
{
    *at = (*at + 1) % LANE_BATCHES;
    return &first[*at];
}

/* ---- a worker -------------------------------------------------------------------------------- */

/* Workers that walk through the same processes and take turns. */
struct crew {
    uint32_t shares; /* a worker's share is its number modulo this */
    uint32_t size;   /* workers per share */
    uint32_t place;  /* this worker's place in its crew */
    uint32_t turn;   /* whose turn it is */
    uint32_t turn_events;
};

struct lane {
    struct walk *walk;
    struct crew crew;
    struct steps *steps; /* NULL: already known */
    const struct consumer *consumer;
    struct output *out;
    struct selection_found *found;
    int to;
    struct batch *batches; /* a view: its own */
    struct batch *batch;   /* being filled */
    uint32_t at;           /* its number */
    uint32_t ahead;        /* batches sent and not acknowledged */
    struct piece now;      /* place of the current event */
    uint32_t piece_count;
    uint64_t bytes; /* in these */
    uint64_t sent;
};

static void add_piece(struct lane *l, uint64_t bytes)
{
    struct piece *last = l->piece_count ? &l->batch->pieces[l->piece_count - 1] : NULL;
    if (!last || last->ns != l->now.ns || last->process != l->now.process) {
        if (!bytes)
            return;
        last = &l->batch->pieces[l->piece_count++];
        *last = l->now;
    }
    last->bytes += (uint32_t)bytes;
    l->bytes += bytes;
}

static int send_text(void *context, const char *data, size_t length)
{
    struct lane *l = context;
    (void)data;
    add_piece(l, length - l->bytes);
    bool is_sent = workers_write(l->to, &l->piece_count, sizeof l->piece_count);
    if (is_sent && ++l->ahead == LANE_BATCHES) {
        is_sent = workers_hear(l->to, &(char){0}, 1);
        l->ahead--;
    }
    l->batch = next_batch(l->batches, &l->at);
    l->out->buffer = l->batch->text;
    l->piece_count = 0;
    l->bytes = 0;
    l->sent += length;
    return is_sent ? 0 : EPIPE;
}

/*
 * All workers of a crew compute the same turns, which end only when time advances, so one worker
 * has all events of a moment. If times of a damaged file go back, the last time counts. Slices
 * still open at the end come last, by kind.
 */
static bool event_lanes_is_ours(struct lane *l, const struct slice *s)
{
    uint64_t behind = s->library_change ? BEHIND_LIBRARIES
                      : s->op_change    ? BEHIND_OPS
                                        : BEHIND_RANGES;
    uint64_t ns = s->event.record->type ? s->event.begin_ns : UINT64_MAX - behind;
    if (ns > l->now.ns && l->crew.turn_events >= LANE_TURN) {
        l->crew.turn = (l->crew.turn + 1) % l->crew.size;
        l->crew.turn_events = 0;
    }
    l->crew.turn_events++;
    l->now.ns = ns > l->now.ns ? ns : l->now.ns;
    l->now.process = s->event.process->index;
    return l->crew.turn == l->crew.place;
}

static int event_lanes_take(void *context, const struct slice *s)
{
    struct lane *l = context;
    if (!event_lanes_is_ours(l, s))
        return 0;
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

/* Receives the steps that the parent found meanwhile, without what they are made of. */
static bool hear_steps(const struct lane *l)
{
    struct steps *s = l->steps;
    size_t firsts = (l->walk->rec->count + 1u) * sizeof *s->firsts;
    if (!workers_hear(l->to, s->firsts, firsts) || !workers_hear(l->to, &s->count, sizeof s->count))
        return false;
    s->list = calloc(s->count + 1u, sizeof *s->list);
    if (!s->list || !workers_hear(l->to, s->list, s->count * sizeof *s->list))
        return false;
    for (uint32_t i = 0; i < s->count; i++)
        s->list[i].made_of = NULL;
    return true;
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
    l->crew.place = index / l->crew.shares;
    l->batch = l->batches = l->batches + index * LANE_BATCHES;
    *l->found = (struct selection_found){0};
    output_divert(l->out, l->batch->text, send_text, l);
    recording_keep_share(l->walk->rec, index % l->crew.shares);
    if ((l->steps && !hear_steps(l)) || walk_run(l->walk, NULL, &consumer, 1) != 0)
        return EXIT_ENVIRONMENT;
    output_drain(l->out); /* earlier failures were reported */
    if (l->out->error || !send_tail(l))
        return EXIT_ENVIRONMENT;
    if (l->crew.place)
        workers_unsay();
    return EXIT_OK;
}

/* ---- what puts them together ----------------------------------------------------------------- */

struct incoming {
    struct batch *batches; /* a view: the worker's */
    struct batch *batch;   /* being read */
    uint32_t number;       /* its number */
    uint32_t piece_count;
    uint32_t at;      /* index of the next piece */
    uint32_t text_at; /* offset of its text */
    bool has_ended;
};

struct joint {
    struct walk *walk;
    uint32_t shares; /* as in struct crew */
    struct workers workers;
    struct incoming lanes[WORKERS_MAX];
    struct batch *batches; /* a view: all batches */
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
    if (lane->batch) {
        workers_report(&j->workers, index, "", 1); /* a failure shows in the read below */
        lane->batch = next_batch(lane->batches, &lane->number);
    } else {
        lane->batch = lane->batches = j->batches + index * LANE_BATCHES;
    }
    if (!workers_read(&j->workers, index, &lane->piece_count, sizeof lane->piece_count))
        return false;
    lane->at = lane->text_at = 0;
    lane->has_ended = !lane->piece_count;
    if (!lane->has_ended)
        return true;
    bool is_read = workers_read(&j->workers, index, &selected, sizeof selected);
    if (is_read && index < j->shares) /* others of its crew found the same */
        selection_add_found(j->found, &selected);
    for (uint32_t i = 0; is_read && i < rec->count; i++) {
        if (rec->processes[i]->worker != index % j->shares)
            continue;
        is_read = workers_read(&j->workers, index, &found, sizeof found);
        if (is_read)
            walk_add_found(j->walk, rec->processes[i], &found);
    }
    return is_read;
}

static bool event_lanes_is_before(const struct incoming *a, const struct incoming *b)
{
    const struct piece *p = &a->batch->pieces[a->at], *q = &b->batch->pieces[b->at];
    return p->ns != q->ns ? p->ns < q->ns : p->process < q->process;
}

/* Sets the two lanes with the earliest pieces; NULL: none. */
static void event_lanes_choose(struct joint *j, struct incoming **first, struct incoming **second)
{
    *first = *second = NULL;
    for (uint32_t i = 0; i < j->workers.count; i++) {
        struct incoming *lane = &j->lanes[i];
        if (lane->has_ended)
            continue;
        if (!*first || event_lanes_is_before(lane, *first)) {
            *second = *first;
            *first = lane;
        } else if (!*second || event_lanes_is_before(lane, *second)) {
            *second = lane;
        }
    }
}

/* Returns the number of a worker that ended early, WORKERS_DONE, or WORKERS_UNWANTED if the output
 * failed. */
static uint32_t event_lanes_join(struct joint *j, struct output *out)
{
    struct incoming *lane, *next;
    for (uint32_t i = 0; i < j->workers.count; i++)
        if (!event_lanes_fill(j, i))
            return i;
    for (event_lanes_choose(j, &lane, &next); lane; event_lanes_choose(j, &lane, &next)) {
        uint32_t from = lane->text_at;
        do
            lane->text_at += lane->batch->pieces[lane->at++].bytes;
        while (lane->at < lane->piece_count && (!next || event_lanes_is_before(lane, next)));
        output_write(out, lane->batch->text + from, lane->text_at - from);
        if (out->error)
            return WORKERS_UNWANTED;
        uint32_t index = (uint32_t)(lane - j->lanes);
        if (lane->at == lane->piece_count && !event_lanes_fill(j, index))
            return index;
    }
    return WORKERS_DONE;
}

static int event_lanes_find_steps(struct walk *w, struct steps *steps)
{
    struct consumer marks = steps_consumer(steps);
    return steps ? walk_run(w, NULL, &marks, 1) : 0;
}

/* Sends the steps to the workers. Returns the same as `event_lanes_join`. */
static uint32_t report_steps(const struct joint *j, const struct steps *s)
{
    for (uint32_t i = 0; s && i < j->workers.count; i++)
        if (!workers_report(&j->workers, i, s->firsts,
                            (j->walk->rec->count + 1u) * sizeof *s->firsts) ||
            !workers_report(&j->workers, i, &s->count, sizeof s->count) ||
            !workers_report(&j->workers, i, s->list, s->count * sizeof *s->list))
            return i;
    return WORKERS_DONE;
}

/*
 * Each worker of a crew walks all of its share, but makes only a part of the rows, which cost more.
 * Crews are used if processes cannot be divided evenly and this saves at least an eighth of the
 * time.
 */
static void deal(struct recording *rec, struct lane *lane)
{
    double least = 0;
    for (uint32_t shares = rec->workers; shares; shares--) {
        uint32_t crew = rec->processors / shares;
        double cost = (double)recording_deal(rec, shares) * (1 + LANE_ROW / crew);
        if (shares < rec->workers && cost > least * 7 / 8)
            continue;
        least = cost;
        lane->crew.shares = shares;
        lane->crew.size = crew;
    }
    recording_deal(rec, lane->crew.shares);
}

/* Returns 0, or an error after a message. This process finds the steps that the workers wait
 * for. */
static int event_lanes_own_run(struct joint *j, struct steps *steps,
                               const struct consumer *consumer, struct output *out)
{
    if (j->workers.count <= LANES_SLOWER && !out->zstream)
        out->in_background = false;
    int error = event_lanes_find_steps(j->walk, steps);
    uint32_t how = error < 0 ? WORKERS_UNWANTED : report_steps(j, steps);
    if (how == WORKERS_DONE)
        how = event_lanes_join(j, out);
    enum exit_code code = workers_end(&j->workers, how);
    if (error < 0 || how != WORKERS_DONE || code != EXIT_OK)
        return error < 0 ? error : code == EXIT_OK ? 0 : GPUPROF_IO;
    error = consumer->end(consumer->context);
    say_error("export", error);
    return error;
}

int event_lanes_run(struct walk *w, struct steps *steps, const struct consumer *consumer,
                    struct output *out, struct selection_found *found)
{
    struct joint *j = calloc(1, sizeof *j);
    struct lane lane = {
        .walk = w, .steps = steps, .consumer = consumer, .out = out, .found = found};
    void *room = MAP_FAILED;
    int error;
    deal(w->rec, &lane);
    uint32_t count = lane.crew.shares * lane.crew.size;
    size_t bytes = (size_t)count * LANE_BATCHES * sizeof(struct batch);
    if (j && count > 1) /* pages are allocated when first used */
        room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    lane.batches = room == MAP_FAILED ? NULL : room;
    if (lane.batches) {
        j->walk = w;
        j->shares = lane.crew.shares;
        j->batches = lane.batches;
        j->found = found;
    }
    if (lane.batches && workers_start(&j->workers, count, event_lanes_work, &lane)) {
        error = event_lanes_own_run(j, steps, consumer, out);
    } else {
        error = event_lanes_find_steps(w, steps);
        if (error == 0)
            error = walk_run(w, NULL, consumer, 1);
    }
    if (lane.batches)
        munmap(room, bytes);
    free(j);
    return error < 0 ? error : 0;
}
