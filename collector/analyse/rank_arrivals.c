/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks arrive at collectives: counts them, and prints the table. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/idle.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "read/process.h"

#define HISTOGRAM_ROWS_LEFT 16384
#define ARRIVAL_KINDS_MAX   256

/* How often a device was last in a row's collectives while it was at this place, and how late. */
struct arrival_late {
    uint32_t row, device, place;
    uint64_t count, ns;
};

void arrivals_init(struct arrivals *a, struct walk *walk)
{
    *a = (struct arrivals){.places = {.walk = walk, .has_all_texts = true},
                           .histogram_rows = HISTOGRAM_ROWS_LEFT,
                           .late_of.count_max = ARRIVAL_LATE_MAX};
    a->kinds = memory_new(ARRIVAL_KINDS_MAX, sizeof *a->kinds);
}

void arrivals_release(struct arrivals *a)
{
    for (uint32_t i = 0; i < a->row_count; i++)
        histogram_release(&a->rows[i].skews);
    for (uint32_t i = 0; i < a->kind_count; i++)
        free(a->kinds[i]);
    work_places_release(&a->places);
    free(a->rows);
    free(a->late);
    free(a->kinds);
    key_map_release(&a->row_of);
    key_map_release(&a->late_of);
    *a = (struct arrivals){0};
}

/* ---- kinds ----------------------------------------------------------------------------------- */

uint32_t arrivals_kind_named(struct arrivals *a, const char *name, size_t length)
{
    uint32_t i = 0;
    while (i < a->kind_count &&
           (strlen(a->kinds[i]) != length || memcmp(a->kinds[i], name, length) != 0))
        i++;
    if (i == ARRIVAL_KINDS_MAX)
        return i - 1;
    if (i == a->kind_count)
        a->kinds[a->kind_count++] = i == ARRIVAL_KINDS_MAX - 1
                                        ? memory_text("others")
                                        : text_printf("%.*s", (int)length, name);
    return i;
}

/* Takes "AllReduce" from ncclDevKernel_AllReduce_Sum_f32_RING_LL(...). */
uint32_t arrivals_kind(struct arrivals *a, const struct kernel_name *name)
{
    const char *shown = name->shown, *end = shown + strcspn(shown, "(<");
    const char *line = memchr(shown, '_', (size_t)(end - shown)), *kind = line ? line + 1 : shown;
    size_t most = (size_t)(end - kind), length = strcspn(kind, "_(<");
    return arrivals_kind_named(a, kind, length < most ? length : most);
}

/* ---- meetings -------------------------------------------------------------------------------- */

/* The row. When rows are full, all communicators of a kind share one. */
static struct arrival_row *arrivals_row_of(struct arrivals *a, uint64_t communicator, uint32_t kind,
                                           uint32_t job)
{
    struct key key = {communicator, kind, job};
    const struct arrival_row new = {
        .communicator = communicator, .kind = kind, .job = job, .device = UINT64_MAX};
    bool is_others = !communicator && job == JOB_NONE;
    uint32_t number = KEY_MAP_ITEM(&a->row_of, key, a->rows, a->row_count,
                                   is_others ? UINT32_MAX : ARRIVAL_ROWS_MAX, &new);
    return number ? &a->rows[number - 1] : arrivals_row_of(a, 0, kind, JOB_NONE);
}

static void add_late(struct arrivals *a, uint32_t row, uint32_t device, uint32_t place, uint64_t ns)
{
    const struct arrival_late new = {.row = row, .device = device, .place = place};
    uint32_t number = KEY_MAP_ITEM(&a->late_of, ((struct key){row, device, place}), a->late,
                                   a->late_count, ARRIVAL_LATE_MAX, &new);
    if (!number)
        return;
    a->late[number - 1].count++;
    a->late[number - 1].ns += ns;
}

void arrivals_met(struct arrivals *a, const struct rank_meeting *m, uint32_t job)
{
    const uint64_t *known = m->last.numbers;
    uint64_t ns = m->last.begin_ns - m->first_ns;
    struct arrival_row *row =
        arrivals_row_of(a, m->sequence->communicator, (uint32_t)known[KERNEL_KIND], job);
    row->count++;
    row->ranks = (uint32_t)max_of(row->ranks, m->count);
    row->skew_ns += ns;
    row->max_ns = max_of(row->max_ns, ns);
    histogram_add(&row->skews, ns, 1, &a->histogram_rows);
    bool is_idle = known[KERNEL_IDLE_PLACE] && known[KERNEL_IDLE_NS] >= ns / 2;
    uint32_t place = (uint32_t)known[is_idle ? KERNEL_IDLE_PLACE : KERNEL_WORK_PLACE];
    if (ns)
        add_late(a, (uint32_t)(row - a->rows), m->sequence->device, place, ns);
}

void arrivals_missed(struct arrivals *a, const struct span *kernel, enum rank_miss why)
{
    uint64_t kind = kernel->numbers[KERNEL_KIND];
    a->missed[why] += !(kind & KERNEL_FILTERED) && strcmp(a->kinds[kind], "SendRecv") != 0;
}

/* ---- when all is known ----------------------------------------------------------------------- */

/* Sorts by row and device, then places by time, longest first. Equal ones stay in the order of
 * their first use. */
static int compare_late(const void *left, const void *right)
{
    const struct arrival_late *a = left, *b = right;
    return ORDER(a->row, b->row) ?: ORDER(a->device, b->device) ?: ORDER(b->ns, a->ns) ?:
           ORDER(a->place, b->place);
}

static int arrivals_compare_rows(const void *left, const void *right, void *context)
{
    const struct arrival_row *a = left, *b = right;
    const struct arrivals *of = context;
    return ORDER(b->skew_ns, a->skew_ns) ?: strcmp(of->kinds[a->kind], of->kinds[b->kind]) ?:
           ORDER(a->job, b->job) ?: ORDER(a->communicator, b->communicator);
}

void arrivals_finish(struct idle *d)
{
    struct arrivals *a = &d->arrivals;
    ARRAY_SORT(a->late, a->late_count, compare_late);
    for (uint32_t i = 0; i < a->late_count;) {
        const struct arrival_late *first = &a->late[i];
        struct arrival_row *row = &a->rows[first->row];
        uint64_t count = 0, ns = 0;
        for (; i < a->late_count && a->late[i].row == first->row &&
               a->late[i].device == first->device;
             i++) {
            count += a->late[i].count;
            ns += a->late[i].ns;
        }
        /* How often it was last says little: when ranks arrive together, one is last by a few
         * ns. */
        if (ns <= row->late_ns)
            continue;
        row->process = d->tracks[first->device].process;
        row->device = d->tracks[first->device].device;
        row->at = work_places_at(&a->places, first->place);
        row->late_count = count;
        row->late_ns = ns;
    }
    if (a->row_count)
        qsort_r(a->rows, a->row_count, sizeof *a->rows, arrivals_compare_rows, a);
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { TITLE, KIND, COMMUNICATOR, MEDIAN = 7, P95 };
enum { CAUSE = 17, WHERE };

#define ROW struct arrival_row

static const struct column columns[] = {
    [TITLE] = {NULL, "collective, the rank with the longest delay, and where it was",
               .doc = "the collective, the rank with the longest delay, and where that rank was"},
    [KIND] = {"collective", .doc = "the collective"},
    [COMMUNICATOR] =
        {"communicator",
         .doc =
             "a number that is the same on all of its ranks; none: only kernels' names are known"},
    {"job", NULL, COLUMN_NUMBER, .ascending = true, MEMBER(ROW, job), .lacks = LACKS_MAX,
     .doc = "the job, of several"},
    {"ranks", NULL, COLUMN_NUMBER, MEMBER(ROW, ranks), .doc = "ranks in the communicator"},
    {"count", "times", COLUMN_COUNT, 8, MEMBER(ROW, count), .doc = "how often all ranks called it"},
    {"skew_total_ns", "apart", COLUMN_NS, 11, MEMBER(ROW, skew_ns),
     .doc = "total delay between the first rank and the last"},
    [MEDIAN] = {"skew_median_ns", "median", COLUMN_NS, 11, .spare = 4,
                .doc = "median of that delay"},
    [P95] = {"skew_p95_ns", "95%", COLUMN_NS, 11, .spare = 1,
             .doc = "95th percentile of that delay"},
    {"skew_max_ns", "max", COLUMN_NS, 11, .spare = 2, MEMBER(ROW, max_ns), .doc = "longest delay"},
    {"rank", .from = FROM_RANK, .at = offsetof(ROW, process),
     .doc = "the rank with the longest total delay"},
    COLUMN_HOST(ROW, process),
    COLUMN_PID(ROW, process),
    {"device", NULL, COLUMN_NUMBER, .ascending = true, MEMBER(ROW, device), .lacks = LACKS_MAX,
     .doc = "the GPU of that rank"},
    {"last", NULL, COLUMN_COUNT, MEMBER(ROW, late_count), .doc = "how often that rank was last"},
    {"last_share", "last", COLUMN_SHARE, 6, MEMBER_SHARE(ROW, late_count, count),
     .doc = "how often that rank was last, as a share of all calls"},
    {"behind_ns", "behind", COLUMN_NS, 11, .spare = 3, MEMBER(ROW, late_ns),
     .doc = "total delay of that rank when it was last"},
    [CAUSE] = {"cause", .doc = "why the GPU of that rank had been idle before, or work"},
    [WHERE] = {"where", .doc = "where in the program that rank was"},
};

static void arrivals_print_begin(struct table *t)
{
    const struct idle *d = t->source;
    members_begin(t);
    if (d && d->walk->rec->left_out_ranks)
        t->none = RANKS_LEFT_OUT;
    for (unsigned i = 0; d && i < RANK_MISSES; i++)
        t->is_there |= d->arrivals.missed[i] != 0;
}

static const struct {
    const char *key, *text;
} misses[RANK_MISSES] = {
    [RANK_MISS_KERNEL] = {"kernel", "a rank has no kernel of"},
    [RANK_MISS_NUMBER] = {"number", "a rank has fewer kernels, and calls lack numbers (run "
                                    "--libraries=on), of"},
    [RANK_MISS_TIME] = {"time", "did not run on all ranks at the same time:"},
    [RANK_MISS_SELECTION] = {"piece", "ranks that are not here may have been last in"},
    [RANK_MISS_LOST] = {"lost", "a rank whose last work is lost may have been last in"},
};

void arrivals_say_missed(const uint64_t missed[static RANK_MISSES], FILE *out)
{
    char text[UNIT_TEXT_BYTES];
    const char *before = "  collectives not counted here: ";
    for (unsigned i = 0; i < RANK_MISSES; i++) {
        if (!missed[i])
            continue;
        fprintf(out, "%s%s %s", before, misses[i].text, count_text(text, missed[i]));
        before = "; ";
    }
    if (*before == ';')
        fputc('\n', out);
}

static void say_missed(const struct table *t, FILE *out)
{
    const struct idle *d = t->source;
    if (d)
        arrivals_say_missed(d->arrivals.missed, out);
}

static void put_missed(const struct table *t, FILE *out)
{
    const struct idle *d = t->source;
    fprintf(out, ",\n\"arrivals_missed\": {");
    for (unsigned i = 0; i < RANK_MISSES; i++)
        fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", misses[i].key,
                d ? d->arrivals.missed[i] : 0);
    fprintf(out, "}");
}

const char *arrivals_cause(const struct work_place *p)
{
    return p->cause < IDLE_CAUSES ? idle_cause_words[p->cause] : "work";
}

/* "AllReduce of 8: rank 3, load (train.py:3), host" */
static struct cell arrivals_print_title(const struct idle *d, const struct arrival_row *row)
{
    const struct process *p = row->process;
    const struct work_place *place = row->at;
    const char *kind = d->arrivals.kinds[row->kind];
    char rank[RANK_TITLE_BYTES];
    if (!row->late_count)
        return cell_printf("%s of %u", kind, row->ranks);
    if (!process_rank_title(p, rank)[0])
        snprintf(rank, sizeof rank, "process %u: ", p->header.pid);
    return cell_printf("%s of %u: %s%s%s%s", kind, row->ranks, rank,
                       place && place->text ? place->text : "not known where", place ? ", " : "",
                       place ? arrivals_cause(place) : "");
}

char *arrivals_late_text(const struct idle *d, const struct process *p)
{
    char time[UNIT_TEXT_BYTES];
    const struct arrival_row *most = NULL;
    for (uint32_t i = 0; i < d->arrivals.row_count; i++) {
        const struct arrival_row *row = &d->arrivals.rows[i];
        if (row->process == p && (!most || row->late_ns > most->late_ns))
            most = row;
    }
    if (!most)
        return NULL;
    const char *place = most->at ? most->at->text : NULL;
    return text_printf("%s of %u, last %llu time%s, %s behind%s%s%s", d->arrivals.kinds[most->kind],
                       most->ranks, (unsigned long long)most->late_count,
                       most->late_count == 1 ? "" : "s",
                       time_text(time, most->late_ns / most->late_count), place ? ", " : "",
                       place ? idle_at(place) : "", place ? place : "");
}

static void arrivals_print_fill(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct idle *d = t->source;
    const struct arrival_row *row = &d->arrivals.rows[index];
    cells[TITLE] = t->format == FORMAT_TEXT ? arrivals_print_title(d, row)
                                            : cell_text(d->arrivals.kinds[row->kind]);
    cells[KIND] = cell_text(d->arrivals.kinds[row->kind]);
    cells[COMMUNICATOR] =
        row->communicator ? cell_printf("0x%016" PRIx64, row->communicator) : cell_text(NULL);
    cells[MEDIAN] = cell_number(histogram_quantile(&row->skews, 0.5, 0, row->max_ns));
    cells[P95] = cell_number(histogram_quantile(&row->skews, 0.95, 0, row->max_ns));
    cells[CAUSE] = cell_text(row->at ? arrivals_cause(row->at) : NULL);
    cells[WHERE] = cell_text(row->at ? row->at->text : NULL);
}

const struct table_info arrivals_table = {
    .name = "arrivals",
    .key = "arrivals",
    .title = "arrival of ranks at their collectives",
    TABLE_COLUMNS(columns),
    .rows = {ROWS_IN(struct idle, arrivals.rows, arrivals.row_count)},
    .name_width = 46, /* the rank is in it */
    .text_none = ": needs recordings of at least two ranks that ran NCCL collectives together",
    .begin = arrivals_print_begin,
    .row = arrivals_print_fill,
    .text_behind = say_missed,
    .json_behind = put_missed};
