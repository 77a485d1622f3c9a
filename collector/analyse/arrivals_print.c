/* SPDX-License-Identifier: Apache-2.0 */
/* Prints how ranks arrived at collectives. */
#include <inttypes.h>
#include <stdlib.h>

#include "analyse/idle.h"
#include "base/new_text.h"
#include "base/unit_text.h"
#include "read/process_title.h"

enum { TITLE, KIND, COMMUNICATOR, MEDIAN = 7, P95 };
enum { RANK = 10, HOST, PID, DEVICE, CAUSE = 17, WHERE };

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
    [RANK] = {"rank", .doc = "the rank with the longest total delay"},
    [HOST] = {"host", .doc = "the host of that rank"},
    [PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true, .doc = "the process of that rank"},
    [DEVICE] = {"device", NULL, COLUMN_NUMBER, .ascending = true, .doc = "the GPU of that rank"},
    {"last", NULL, COLUMN_COUNT, MEMBER(ROW, late_count), .doc = "how often that rank was last"},
    {"last_share", "last", COLUMN_SHARE, 6, MEMBER_SHARE(ROW, late_count, count),
     .doc = "how often that rank was last, as a share of all calls"},
    {"behind_ns", "behind", COLUMN_NS, 11, .spare = 3, MEMBER(ROW, late_ns),
     .doc = "total delay of that rank when it was last"},
    [CAUSE] = {"cause", .doc = "why the GPU of that rank had been idle before, or work"},
    [WHERE] = {"where", .doc = "where in the program that rank was"},
};

static void arrivals_print_begin(struct table *t, enum report_format format)
{
    const struct idle *d = t->source;
    members_begin(t, format);
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
static struct cell arrivals_print_title(const struct idle *d, const struct arrival_row *row,
                                        const struct work_place *place)
{
    const struct process *p = d->tracks[row->late].process;
    char rank[RANK_TITLE_BYTES];
    if (!process_rank_title(p, rank)[0])
        snprintf(rank, sizeof rank, "process %u: ", p->header.pid);
    if (!row->late_count)
        return cell_owned(text_printf("%s of %u", d->arrivals.kinds[row->kind], row->ranks));
    return cell_owned(text_printf("%s of %u: %s%s%s%s", d->arrivals.kinds[row->kind], row->ranks,
                                  rank, place && place->text ? place->text : "not known where",
                                  place ? ", " : "", place ? arrivals_cause(place) : ""));
}

int arrivals_late_text(const struct idle *d, const struct process *p, char **text)
{
    char time[UNIT_TEXT_BYTES];
    const struct arrival_row *most = NULL;
    *text = NULL;
    for (uint32_t i = 0; i < d->arrivals.row_count; i++) {
        const struct arrival_row *row = &d->arrivals.rows[i];
        if (row->late_count && d->tracks[row->late].process == p &&
            (!most || row->late_ns > most->late_ns))
            most = row;
    }
    if (!most)
        return 0;
    const struct work_place *place = work_places_at(&d->arrivals.places, most->place);
    bool is_placed = place && place->text;
    *text = text_printf("%s of %u, last %llu time%s, %s behind%s%s%s",
                        d->arrivals.kinds[most->kind], most->ranks,
                        (unsigned long long)most->late_count, most->late_count == 1 ? "" : "s",
                        time_text(time, most->late_ns / most->late_count), is_placed ? ", " : "",
                        is_placed ? idle_at(place->text) : "", is_placed ? place->text : "");
    return *text ? 0 : GPUPROF_NO_MEMORY;
}

static struct cell number_text(uint64_t number)
{
    return number ? cell_owned(text_printf("0x%016" PRIx64, number)) : cell_text(NULL);
}

static void arrivals_print_fill(const struct table *t, uint32_t index, enum report_format format,
                                struct cell *cells)
{
    const struct idle *d = t->source;
    const struct arrival_row *row = &d->arrivals.rows[index];
    const struct idle_track *late = &d->tracks[row->late];
    const struct work_place *place = work_places_at(&d->arrivals.places, row->place);
    cells[TITLE] = format == FORMAT_TEXT ? arrivals_print_title(d, row, place)
                                         : cell_text(d->arrivals.kinds[row->kind]);
    cells[KIND] = cell_text(d->arrivals.kinds[row->kind]);
    cells[COMMUNICATOR] = number_text(row->communicator);
    cells[MEDIAN] = cell_number(histogram_quantile(&row->skews, 0.5, 0, row->max_ns));
    cells[P95] = cell_number(histogram_quantile(&row->skews, 0.95, 0, row->max_ns));
    cells[RANK] = cells[HOST] = cells[CAUSE] = cells[WHERE] = cell_text(NULL);
    if (!row->late_count)
        return;
    cells[RANK] = cell_text(process_rank(late->process));
    cells[HOST] = cell_text(late->process->header.host);
    cells[PID] = cell_number(late->process->header.pid);
    cells[DEVICE] = cell_number(late->device);
    cells[CAUSE] = cell_text(place ? arrivals_cause(place) : NULL);
    cells[WHERE] = cell_text(place ? place->text : NULL);
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
