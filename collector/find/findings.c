/* SPDX-License-Identifier: Apache-2.0 */
#include "find/findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/unit_text.h"
#include "error.h"
#include "find/judged_time.h"
#include "read/process_title.h"
#include "record/gpu_record.h"

const struct finding_kind finding_kinds[FINDING_KINDS] = {
#define FINDING(NAME, id, share, floor, title, advice, next)                                       \
    [FINDING_##NAME] = {id, share, floor * 1000000ull, title, advice, next},
#include "find/finding_kinds.def"
};

int findings_init(struct findings *f, struct walk *walk, struct idle *idle)
{
    *f = (struct findings){.walk = walk, .idle = idle};
    finding_sums_init(&f->sums, recording_bytes(walk->rec));
    return finding_gpu_init(&f->gpu, walk, &f->sums);
}

void findings_release(struct findings *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        free(f->list[i].where);
        for (uint32_t k = 0; k < f->list[i].row_count; k++) {
            free(f->list[i].rows[k].name);
            free(f->list[i].rows[k].where);
        }
    }
    finding_sums_release(&f->sums);
    finding_gpu_release(&f->gpu);
}

static int take_work(void *context, const struct slice *s)
{
    struct findings *f = context;
    return s->is_hidden ? finding_gpu_pass(&f->gpu, s) : finding_gpu_take(&f->gpu, s);
}

static int tied(void *context, const struct slice *s)
{
    struct findings *f = context;
    bool is_work = is_stream_work(s->event.record->type) && !s->is_hidden;
    return is_work ? finding_gpu_tied(&f->gpu, s) : 0;
}

static int end(void *context)
{
    return finding_gpu_end(&((struct findings *)context)->gpu);
}

struct consumer findings_consumer(struct findings *f)
{
    return (struct consumer){.context = f,
                             .needs = WALK_WORK | WALK_RANGES | WALK_OPS | WALK_STACKS,
                             .skips = WALK_SKIPS_TIED,
                             .sees_hidden = true,
                             .take_work = take_work,
                             .tied = tied,
                             .end = end};
}

/* ---- what each device is charged ------------------------------------------------------------- */

static bool launches_block(const struct process *p)
{
    const char *value = process_meta(p, "env.CUDA_LAUNCH_BLOCKING");
    return value && value[0] && strcmp(value, "0") != 0;
}

/* Whose idle time of that cause is; FINDING_KINDS: nobody's. Where each launch waits for its
 * kernel, nobody knows what else the device would have waited for. */
static enum finding_id kind_of(enum idle_cause cause, bool is_blocking)
{
    switch (cause) {
    case IDLE_LAUNCH: return is_blocking ? FINDING_LAUNCH_BLOCKING : FINDING_LAUNCH_BOUND;
    case IDLE_HOST: return is_blocking ? FINDING_LAUNCH_BLOCKING : FINDING_HOST_BOUND;
    case IDLE_SYNC: return FINDING_SYNC_IN_LOOP;
    case IDLE_COPY: return FINDING_PAGEABLE_COPIES;
    case IDLE_LOADER: return FINDING_SLOW_LOADER;
    case IDLE_ALLOCATION: return FINDING_ALLOCATION_CHURN;
    case IDLE_CAPTURE:
    case IDLE_START_UP: return FINDING_START_UP;
    default: return FINDING_KINDS;
    }
}

/* Both have met the same work in the same order; FOUND_DEVICES_MAX are fewer, and share one then.
 */
static const struct found_device *gpu_device(const struct findings *f, uint32_t place)
{
    return place < f->gpu.device_count && place < FOUND_DEVICES_MAX - 1 ? &f->gpu.devices[place]
                                                                        : NULL;
}

/* What each device waited for: in how many gaps, and how long in calls that never returned, which
 * are none too many; and, of IDLE_NOTHING, how long between calls. */
struct gaps {
    uint64_t counts[IDLE_CAUSES];
    uint64_t open_ns[IDLE_CAUSES];
    uint64_t between_ns;
};

/* No call for seconds, and then one: behind the last work there is none. */
static bool is_between(const struct idle_row *row)
{
    const void *word = (const void *)(uintptr_t)row->place.word;
    const char *text = row->place.kind == IDLE_WORD_OURS   ? word
                       : row->place.kind == IDLE_WORD_TOLD ? ((const struct idle_told *)word)->text
                                                           : "";
    return row->cause == IDLE_NOTHING && strcmp(text, idle_behind_all) != 0;
}

/* One for each device. NULL: no memory. */
static struct gaps *count_gaps(const struct findings *f)
{
    struct gaps *gaps = calloc(f->idle->device_count + 1u, sizeof *gaps);
    for (uint32_t i = 0; gaps && i < f->idle->rows.count; i++) {
        const struct idle_row *row = &f->idle->rows.list[i];
        bool is_one = !row->place.is_open && row->place.side != IDLE_AFTER; /* the wait is one */
        gaps[row->device].counts[row->cause] += is_one ? row->count : 0;
        gaps[row->device].open_ns[row->cause] += row->place.is_open ? row->ns : 0;
        gaps[row->device].between_ns += is_between(row) ? row->ns : 0;
    }
    return gaps;
}

/* What somebody does once, at the start or the end, is no habit to be cured of. */
static bool is_habit(enum idle_cause cause, uint64_t gaps, struct judged_time time)
{
    bool may_be_once = cause != IDLE_SYNC && cause != IDLE_ALLOCATION && cause != IDLE_LOADER;
    return may_be_once || (double)gaps >= FINDING_HABIT_GAPS * judged_part(time);
}

static void add_up(const struct findings *f, uint32_t place, const struct gaps *gaps,
                   uint64_t ns[static FINDING_KINDS])
{
    const struct idle_device *device = &f->idle->devices[place];
    const struct found_device *worked = gpu_device(f, place);
    bool is_blocking = launches_block(device->process);
    struct judged_time time = judged_time_of(f->walk, device);
    for (unsigned id = 0; id < FINDING_KINDS; id++)
        ns[id] = worked ? worked->ns[id] : 0;
    for (unsigned cause = 0; cause < IDLE_CAUSES; cause++) {
        enum finding_id id = kind_of((enum idle_cause)cause, is_blocking);
        if (id != FINDING_KINDS && is_habit((enum idle_cause)cause, gaps->counts[cause], time))
            ns[id] += device->causes[cause] - gaps->open_ns[cause];
    }
    ns[FINDING_HOST_BOUND] += gaps->between_ns;
    ns[FINDING_EXPOSED_COMMUNICATION] = device->parts[IDLE_COMMUNICATING];
}

/* ---- evidence -------------------------------------------------------------------------------- */

/* What may be evidence, of one place: a sum or a row. */
struct candidate {
    const struct finding_sum *sum;
    const struct idle_row *row;
    const char *where; /* NULL: not known */
    const char *name;  /* of a row that is one with others of that name; NULL: `what` says all */
    uint64_t what;     /* the same of what has the same name */
    uint64_t ns;
};

/* A line, and how many ways lead there; the text has the one with most time. */
struct told_line {
    const char *text; /* NULL: not known */
    unsigned ways;
};

/* All of one name. */
struct evidence {
    struct candidate longest; /* of those, the one with the longest */
    struct told_line where;   /* where most of it is */
    uint64_t count;
    uint64_t ns;
};

/* The candidates of a finding. */
struct candidates {
    struct candidate *list; /* owned */
    uint32_t count;
    char **texts; /* owned, and so are they: places of idle time */
    uint32_t text_count;
};

static bool is_sum_of(const struct finding_sum *sum, enum finding_id kind, uint32_t device)
{
    return sum->kind == kind && sum->device == device;
}

/* Is the row of idle time evidence of this finding, of the device at `place`? */
static bool is_evidence(const struct findings *f, const struct finding *found, uint32_t place,
                        const struct idle_row *row)
{
    enum finding_id id = (enum finding_id)(found->kind - finding_kinds);
    if (id == FINDING_STRAGGLER)
        return row->cause == IDLE_COMMUNICATION && row->place.kind == IDLE_WORD_DEVICE &&
               (uint32_t)row->place.word == found->process->index;
    if (row->device != place || row->place.is_open)
        return false;
    return is_between(row) ? id == FINDING_HOST_BOUND
                           : kind_of((enum idle_cause)row->cause,
                                     launches_block(f->idle->devices[place].process)) == id;
}

static uint64_t longest_ns(const struct candidate *c)
{
    return c->sum ? c->sum->longest_ns : c->row->longest_ns;
}

static uint64_t at_ns(const struct candidate *c)
{
    return c->sum ? c->sum->at_ns : c->row->longest_at_ns;
}

static char *copy_of(const char *text, int *error)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        *error = GPUPROF_NO_MEMORY;
    return copy;
}

static char *copy_of_line(const struct told_line *line, int *error)
{
    unsigned others = line->ways ? line->ways - 1 : 0;
    char *text = NULL;
    if (!others)
        return copy_of(line->text, error);
    if (asprintf(&text, "%s and %u other line%s", line->text, others, plural_end(others)) >= 0)
        return text;
    *error = GPUPROF_NO_MEMORY;
    return NULL;
}

/* Of a wait for a rank: who waited, and to what that rank came late from where. 0 or
 * GPUPROF_NO_MEMORY. */
static int wait_text(const struct findings *f, const struct idle_row *row, char **text)
{
    const struct process *p = f->idle->devices[row->device].process;
    const struct process *other = f->walk->rec->processes[(uint32_t)row->place.word];
    char who[RANK_TITLE_BYTES], *late;
    int error = arrivals_late_text(f->idle, other, &late);
    *text = NULL;
    if (error == 0 && asprintf(text, "%s waits%s%s", process_who(p, who), late ? "; " : "",
                               late ? late : "") < 0) {
        *text = NULL;
        error = GPUPROF_NO_MEMORY;
    }
    free(late);
    return error;
}

static bool is_of_minor(const struct findings *f, const struct idle_row *row)
{
    return row->cause == IDLE_HOST && idle_row_work_share(f->idle, row) < FINDING_MINOR;
}

/* 0 or GPUPROF_NO_MEMORY. */
static int make_row(const struct findings *f, const struct evidence *e, struct finding_row *made)
{
    char text[GPU_TITLE_BYTES];
    const struct finding_sum *sum = e->longest.sum;
    const struct idle_row *row = e->longest.row;
    uint64_t longest = longest_ns(&e->longest);
    int error = 0;
    *made = (struct finding_row){.count = e->count,
                                 .ns = e->ns,
                                 .longest_ns = longest < e->ns ? longest : e->ns,
                                 .at_ns = at_ns(&e->longest),
                                 .where = copy_of_line(&e->where, &error)};
    if (sum)
        made->name = strdup(finding_gpu_text(&f->gpu, sum->what, text));
    else if (e->where.text && strstr(e->where.text, PLACE_CALLED)) /* that is its name */
        made->name = copy_of_line(&e->where, &error);
    else
        made->name = idle_place_text(f->walk, &f->idle->lines, row);
    if (row) {
        made->thread = idle_row_thread(f->idle, row);
        made->work_share = idle_row_work_share(f->idle, row);
        made->is_of_minor = is_of_minor(f, row);
    }
    if (row && row->place.kind == IDLE_WORD_DEVICE && error == 0) {
        free(made->where);
        error = wait_text(f, row, &made->where);
    }
    return made->name ? error : GPUPROF_NO_MEMORY;
}

/* Without its stack there is nothing in the recording to look at. */
static const char hang_stackless_next[] = "gpuprof run --backtrace=sync,copy,alloc PROGRAM";

static const char hang_collective_next[] = "gpuprof report --table=collectives DATA";

/* Who waits there is not who has not come: that stands behind the place. 0 or GPUPROF_NO_MEMORY. */
static int tell_missing(const struct finding_hang *h, char **where)
{
    char who[RANK_TITLE_BYTES], *both = NULL;
    char *text = collectives_text(h->collectives), *clean = text ? json_line(text) : NULL;
    int length = clean ? asprintf(&both, "%s waits%s%s; %s", process_who(h->process, who),
                                  *where ? " at " : "", *where ? *where : "", clean)
                       : -1;
    int error = text && length < 0 ? GPUPROF_NO_MEMORY : 0; /* none has a row that is kept */
    free(clean);
    free(text);
    if (length < 0)
        return error;
    free(*where);
    *where = both;
    return 0;
}

/* Where the process is that has not come, clean; NULL: no stack is of its last call. */
static const char *line_of(const struct pending_row *late)
{
    const struct process_place *place = late->place;
    return place && place->stack_ns >= place->begin_ns ? late->line : NULL;
}

/* The call that hangs is all there is of it. */
static int add_hang(struct findings *f)
{
    const struct finding_hang *h = &f->hang;
    struct finding *to = &f->list[f->count];
    const struct idle_row row = {.place = h->place, .process = h->process ? h->process->index : 0};
    if (h->ns <= finding_kinds[FINDING_HANG].floor_ns)
        return 0;
    *to = (struct finding){.kind = &finding_kinds[FINDING_HANG],
                           .next = h->collectives   ? hang_collective_next
                                   : h->place.stack ? NULL
                                                    : hang_stackless_next,
                           .ns = h->ns,
                           .process = h->late ? h->late->process : h->process,
                           .device = UINT64_MAX,
                           .devices = 1,
                           .total_ns = h->ns,
                           .is_awaited = h->late != NULL};
    uint64_t begin_ns = f->idle->processes[h->process->index].begin_ns;
    to->of_ns = to->window_ns = f->walk->last_ns[h->process->index] - begin_ns;
    to->rows[to->row_count++] =
        (struct finding_row){.name = idle_place_text(f->walk, &f->idle->lines, &row),
                             .count = 1,
                             .ns = h->ns,
                             .longest_ns = h->ns,
                             .at_ns = h->begin_ns,
                             .thread = h->thread};
    f->count++;
    int error = idle_where_text(f->walk, &f->idle->lines, &row, &to->rows[0].where);
    to->where = copy_of(h->late ? line_of(h->late) : to->rows[0].where, &error);
    if (error == 0 && h->collectives)
        error = tell_missing(h, &to->rows[0].where);
    return to->rows[0].name ? error : GPUPROF_NO_MEMORY;
}

static int by_place(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return place_compare(a->where, b->where);
}

static int by_name_and_place(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return a->what != b->what ? (a->what < b->what ? -1 : 1) : place_compare(a->where, b->where);
}

/* Of the sorted candidates from *from to `to` the time of the first line, behind which *from is
 * then. Most calls have no stack as a rule: those tell nothing. */
static uint64_t take_line(const struct candidate **from, const struct candidate *to,
                          struct told_line *line)
{
    const struct candidate *first = *from, *c = first;
    uint64_t ns = 0, most_ns = 0;
    *line = (struct told_line){.text = first->where};
    while (c < to && place_compare_lines(c->where, first->where) == 0) {
        const struct candidate *way = c;
        uint64_t way_ns = 0;
        for (; c < to && by_place(c, way) == 0; c++)
            way_ns += c->where || c->row ? c->ns : 0;
        if (way_ns > most_ns) {
            line->text = way->where;
            most_ns = way_ns;
        }
        line->ways++;
        ns += way_ns;
    }
    *from = c;
    return ns;
}

/* Of these the line that has most time; none if idle time that is at no line has more. */
static struct told_line most_of(const struct candidate *from, const struct candidate *to)
{
    struct told_line most = {0}, line;
    uint64_t most_ns = 0;
    while (from < to) {
        uint64_t ns = take_line(&from, to, &line);
        if (ns > most_ns) {
            most = line;
            most_ns = ns;
        }
    }
    return most;
}

/* Of as much time the one whose longest began first: the numbers of names say nothing. */
static bool is_more(const struct evidence *a, const struct evidence *b)
{
    return a->ns != b->ns ? a->ns > b->ns : at_ns(&a->longest) < at_ns(&b->longest);
}

/* Keeps the FINDING_ROWS with most time, in their order; their number. */
static uint32_t keep(struct evidence *kept, uint32_t count, const struct evidence *new)
{
    uint32_t place = count < FINDING_ROWS ? count++ : FINDING_ROWS;
    if (place == FINDING_ROWS && !is_more(new, &kept[--place]))
        return count;
    for (; place && is_more(new, &kept[place - 1]); place--)
        kept[place] = kept[place - 1];
    kept[place] = *new;
    return count;
}

/* Of two that are as long the one that began first. */
static bool is_longer(const struct candidate *a, const struct candidate *b)
{
    return longest_ns(a) != longest_ns(b) ? longest_ns(a) > longest_ns(b) : at_ns(a) < at_ns(b);
}

/* Those of one name, which end at *to. */
static struct evidence add_together(const struct candidate *from, const struct candidate *end,
                                    const struct candidate **to)
{
    struct evidence all = {.longest = *from};
    const struct candidate *c = from;
    for (; c < end && c->what == from->what; c++) {
        all.count += c->sum ? c->sum->count : c->row->count;
        all.ns += c->ns;
        if (is_longer(c, &all.longest))
            all.longest = *c;
    }
    all.where = most_of(from, c);
    *to = c;
    return all;
}

static int by_text(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return place_compare(a->name, b->name);
}

/* A place is met on many ways, each with a stack of its own: who reads its name takes it for one.
 */
static void unite(struct candidates *c)
{
    qsort(c->list, c->count, sizeof *c->list, by_text);
    for (uint32_t i = 1; i < c->count; i++)
        if (c->list[i].name && place_compare_lines(c->list[i - 1].name, c->list[i].name) == 0)
            c->list[i].what = c->list[i - 1].what;
}

/* Each row has one of its own, in their order; waits for a rank in that of the devices that wait.
 */
static uint64_t row_what(const struct idle_row *row, uint32_t index)
{
    uint64_t wait = (uint64_t)row->device << 32 | row->place.word >> 32;
    return UINT64_MAX - (row->place.kind == IDLE_WORD_DEVICE ? wait : index);
}

/* 0 or GPUPROF_NO_MEMORY; candidates_release in both cases. */
static int find_candidates(const struct findings *f, const struct finding *to, uint32_t place,
                           struct candidates *c)
{
    uint32_t sums = gpu_device(f, place) ? f->sums.count : 0, rows = f->idle->rows.count, count = 0;
    enum finding_id kind = (enum finding_id)(to->kind - finding_kinds);
    int error = 0;
    for (uint32_t i = 0; i < sums; i++)
        count += is_sum_of(&f->sums.rows[i], kind, place);
    for (uint32_t i = 0; i < rows; i++)
        count += is_evidence(f, to, place, &f->idle->rows.list[i]);
    *c = (struct candidates){.list = calloc(count + 1u, sizeof *c->list),
                             .texts = calloc(2u * count + 1, sizeof *c->texts)};
    if (!c->list || !c->texts)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < sums; i++) {
        const struct finding_sum *sum = &f->sums.rows[i];
        if (is_sum_of(sum, kind, place))
            c->list[c->count++] =
                (struct candidate){.sum = sum,
                                   .where = work_places_text(&f->gpu.wheres, sum->where),
                                   .what = sum->what,
                                   .ns = sum->ns};
    }
    for (uint32_t i = 0; error == 0 && i < rows; i++) {
        const struct idle_row *row = &f->idle->rows.list[i];
        if (!is_evidence(f, to, place, row))
            continue;
        char **text = &c->texts[c->text_count++], *name = NULL;
        error = idle_where_text(f->walk, &f->idle->lines, row, text);
        if (row->place.kind != IDLE_WORD_DEVICE && !is_of_minor(f, row)) {
            name = c->texts[c->text_count++] = idle_place_text(f->walk, &f->idle->lines, row);
            error = name ? error : GPUPROF_NO_MEMORY;
        }
        c->list[c->count++] = (struct candidate){
            .row = row, .where = *text, .name = name, .what = row_what(row, i), .ns = row->ns};
    }
    unite(c);
    return error;
}

static void candidates_release(struct candidates *c)
{
    for (uint32_t i = 0; i < c->text_count; i++)
        free(c->texts[i]);
    free(c->texts);
    free(c->list);
}

/* Has what is evidence more than the finding costs (not all copies would fit beside kernels), each
 * has its share of that. */
static void share_out(struct candidates *c, uint64_t ns)
{
    unsigned __int128 all = 0;
    for (uint32_t i = 0; i < c->count; i++)
        all += c->list[i].ns;
    for (uint32_t i = 0; all > ns && i < c->count; i++)
        c->list[i].ns = (uint64_t)((unsigned __int128)c->list[i].ns * ns / all);
}

static int add_rows(const struct findings *f, struct finding *to, uint32_t place)
{
    struct evidence kept[FINDING_ROWS] = {0};
    struct candidates all = {0};
    uint32_t count = 0;
    int error = find_candidates(f, to, place, &all);
    const struct candidate *next = all.list, *end = all.list + all.count;
    if (to->kind != &finding_kinds[FINDING_STRAGGLER]) /* costs the mean of several ranks' waits */
        share_out(&all, to->ns);
    if (error == 0 && all.count) {
        qsort(all.list, all.count, sizeof *all.list, by_place);
        const struct told_line most = most_of(next, end);
        to->where = copy_of_line(&most, &error);
        qsort(all.list, all.count, sizeof *all.list, by_name_and_place);
    }
    while (error == 0 && next < end) {
        struct evidence evidence = add_together(next, end, &next);
        count = keep(kept, count, &evidence);
    }
    for (; error == 0 && to->row_count < count; to->row_count++)
        error = make_row(f, &kept[to->row_count], &to->rows[to->row_count]);
    candidates_release(&all);
    return error;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Of a device that costs `ns` of that time: if that is worth it, and the worst of its kind so far.
 */
static void weigh(const struct findings *f, struct finding *found, uint32_t *worst, uint32_t place,
                  uint64_t ns, struct judged_time time)
{
    const struct idle_device *device = &f->idle->devices[place];
    bool is_start_up = found->kind == &finding_kinds[FINDING_START_UP];
    uint64_t of_ns = is_start_up ? time.window_ns : time.window_ns - time.aside_ns;
    if (!judged_worth_it(found->kind, ns, of_ns, judged_part(time)))
        return;
    found->devices++;
    found->total_ns += ns;
    if (ns <= found->ns)
        return;
    *worst = place;
    found->ns = ns;
    found->window_ns = time.window_ns;
    found->of_ns = of_ns;
    found->process = device->process;
    found->device = device->device;
}

static bool communicates(const struct idle_device *device)
{
    return device->parts[IDLE_COMMUNICATING] || device->causes[IDLE_COMMUNICATION];
}

static struct judged_time communication_time(const struct findings *f,
                                             const struct idle_device *device)
{
    return communicates(device) ? judged_time_of(f->walk, device) : (struct judged_time){0};
}

/* What all others that communicate wait for each process, in the mean, of their time, in the mean:
 * that of who is late may be shorter. `waits`: zeros, by process index. */
static void weigh_ranks(const struct findings *f, struct finding *found, uint32_t *worst,
                        uint64_t *waits)
{
    uint32_t others = 0;
    struct judged_time all = {0};
    for (uint32_t i = 0; i < f->idle->device_count; i++) {
        struct judged_time own = communication_time(f, &f->idle->devices[i]);
        others += communicates(&f->idle->devices[i]);
        all.window_ns += own.window_ns;
        all.aside_ns += own.aside_ns;
        all.whole_ns += own.whole_ns;
    }
    for (uint32_t i = 0; i < f->idle->rows.count; i++) {
        const struct idle_row *row = &f->idle->rows.list[i];
        if (row->cause == IDLE_COMMUNICATION && row->place.kind == IDLE_WORD_DEVICE)
            waits[(uint32_t)row->place.word] += row->ns;
    }
    for (uint32_t i = 0; i < f->idle->device_count; i++) {
        uint32_t process = f->idle->devices[i].process->index;
        struct judged_time own = communication_time(f, &f->idle->devices[i]);
        uint32_t waiting = others - communicates(&f->idle->devices[i]);
        if (waiting)
            weigh(f, found, worst, i, waits[process] / waiting,
                  judged_time_mean(all, own, waiting));
        waits[process] = 0; /* each process once */
    }
}

static int compare(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;
    bool hangs = a->kind == &finding_kinds[FINDING_HANG];
    if (hangs || b->kind == &finding_kinds[FINDING_HANG])
        return hangs ? -1 : 1;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->kind < b->kind ? -1 : a->kind > b->kind;
}

void findings_sort(struct findings *f)
{
    qsort(f->list, f->count, sizeof *f->list, compare);
}

bool findings_may_tell(const struct findings *f, const struct finding_sum *sum)
{
    return f->is_found[sum->kind] && f->worst[sum->kind] == sum->device;
}

/* Lines are looked up of what is shown alone: of the devices that findings are about. */
static int name_places(struct findings *f, const char *symbol_folder)
{
    struct place_lines *lines = &f->idle->lines;
    const struct finding_hang *h = &f->hang;
    int error = h->process ? place_lines_add(lines, h->process->index, h->place.stack) : 0;
    for (uint32_t i = 0; error == 0 && i < f->sums.count; i++)
        if (findings_may_tell(f, &f->sums.rows[i]))
            error = work_places_want(&f->gpu.wheres, lines, f->sums.rows[i].where);
    if (error == 0)
        error = idle_name(f->idle, symbol_folder);
    return error < 0 ? error : work_places_name(&f->gpu.wheres, lines);
}

static void know_hang(struct findings *f, const struct hang *hang)
{
    struct hang_told told;
    const struct open_call *c = hang_first(hang, &told) ? told.call : NULL;
    if (c)
        f->hang = (struct finding_hang){
            .process = c->process,
            .thread = c->thread,
            .place = {.stack = c->stack, .function = c->function->index},
            .begin_ns = c->begin_ns,
            .ns = c->duration_ns,
            .collectives = hang->collectives.pending_count ? &hang->collectives : NULL,
            .late = collectives_late(&hang->collectives)};
}

int findings_finish(struct findings *f, const struct hang *hang, const char *symbol_folder)
{
    struct finding found[FINDING_KINDS] = {0};
    int settled = finding_gpu_settle(&f->gpu, f->idle);
    uint32_t *worst = f->worst;
    know_hang(f, hang);
    uint64_t *waits = calloc(f->walk->rec->count + 1u, sizeof *waits);
    struct gaps *gaps = count_gaps(f);
    int error = waits && gaps ? settled : GPUPROF_NO_MEMORY;
    for (unsigned id = 0; id < FINDING_KINDS; id++)
        found[id].kind = &finding_kinds[id];
    for (uint32_t i = 0; gaps && i < f->idle->device_count; i++) {
        uint64_t ns[FINDING_KINDS];
        add_up(f, i, &gaps[i], ns);
        for (unsigned id = 0; id < FINDING_KINDS; id++)
            weigh(f, &found[id], &worst[id], i, ns[id],
                  judged_time_of(f->walk, &f->idle->devices[i]));
    }
    if (waits)
        weigh_ranks(f, &found[FINDING_STRAGGLER], &worst[FINDING_STRAGGLER], waits);
    free(waits);
    free(gaps);
    for (unsigned id = 0; id < FINDING_KINDS; id++)
        f->is_found[id] = found[id].devices != 0;
    found[FINDING_EXPOSED_COMMUNICATION].lacks_ranks = idle_lacks_ranks(f->idle);
    if (error == 0)
        error = name_places(f, symbol_folder);
    if (error < 0 || f->walk->rec->share)
        return error;
    error = add_hang(f);
    for (unsigned id = 0; error == 0 && id < FINDING_KINDS; id++)
        if (found[id].devices) {
            f->list[f->count] = found[id];
            error = add_rows(f, &f->list[f->count++], worst[id]);
        }
    findings_judge_lines(f);
    findings_sort(f);
    return error;
}
