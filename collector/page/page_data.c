/* SPDX-License-Identifier: Apache-2.0 */
/* Data of the sections that show what the report has: its overview, the processes' metadata, its
 * tables, kernels, libraries, and who held the memory. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/device_peak.h"
#include "base/text.h"
#include "page/page.h"
#include "read/process.h"
#include "resolve/selection.h"

#define PROCESSES_MAX       4096
#define TITLE_BYTES         512
#define KEYS_BYTES          (64u << 10) /* of the settings */
#define TABLE_ROWS_MAX      5000        /* of a table; all places of memory fit */
#define TABLE_BYTES_MAX     (3u << 20)  /* approximate: the last row is written whole */
#define ALL_BYTES_MAX       (7u << 20)
#define KERNELS_MAX         200
#define TOGETHER            8 /* histogram buckets that are one bucket here */
#define ROOF_DEVICES_MAX    8 /* different models */
#define MEMORY_TABLES_SHOWN 6 /* the first: failed allocations, places, owners ... */
#define MEMORY_BYTES_MAX    (1u << 20)
#define LEVELS              4095 /* of a place's peak; two letters encode a height */
_Static_assert(TABLE_ROWS_MAX > MEMORY_PLACES_MAX, "the curves are those of the table's rows");

/* ---- the recording: its processes, their metadata, and what is missing ---- */

static void put_losses(const struct report *r, struct page_data *d)
{
    const char *separator = "";
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        struct loss_info info = loss_info(i);
        if (!loss_value(&r->total.losses, i))
            continue;
        fputs(separator, d->stream);
        page_printf(d, "[%s, %" PRIu64 ", %d, %d, %s, %d]", info.key,
                    loss_value(&r->total.losses, i), info.weight, info.is_count, info.text,
                    info.leaves_out);
        separator = ", ";
    }
    fputs(r->rec->unread_files ? separator : "", d->stream);
    if (r->rec->unread_files)
        page_printf(d, "[\"unread_files\", %u, %d, 1, \"files that could not be read at all\"]",
                    r->rec->unread_files, LOSS_DAMAGE);
}

void page_put_overview(const struct page *p, struct page_data *d)
{
    const struct report *r = p->report;
    struct overview o;
    overview_init(&o, r);
    page_printf(
        d,
        "{\"wall_ns\": %" PRIu64 ", \"start_up_ns\": %" PRIu64
        ", \"start_up_end\": %s, \"process_count\": %u, \"left_out\": %u, \"calls\": %" PRIu64
        ", \"errors\": %" PRIu64 ", \"held_back\": %" PRIu64 ", \"devices\": %u"
        ", \"kernels\": %" PRIu64 ", \"hides_waits\": %d, \"estimated\": %d, \"gpu_rows\": %s",
        r->time.wall_end_ns - r->time.wall_begin_ns, overview_start_up_ns(r),
        overview_start_up_end(&o), r->rec->count, r->rec->left_out, r->total.calls, r->total.errors,
        overview_held_back(r), o.devices, r->sums[ANALYSIS_kernels_sums].whole[SUMS_COUNT],
        r->rec->left_out_ranks && r->idle && idle_lacks_ranks(r->idle), r->total.is_estimated,
        recording_gpu_rows(r->rec));
    page_put_owned(d,
                   ", \"piece\": ", r->time.selection ? selection_text(r->time.selection) : NULL);
    page_put_owned(d, ", \"missing_ranks\": ", overview_missing_text(r));
    page_put_owned(d, ", \"collective\": ", collectives_text(&r->hang.collectives));
    fputs(",\n\"losses\": [", d->stream);
    put_losses(r, d);
    fputs("],\n\"processes\": [", d->stream);
    for (uint32_t i = 0; i < r->rec->count && i < PROCESSES_MAX; i++) {
        const struct process *process = r->rec->processes[i];
        char title[TITLE_BYTES];
        page_printf(d, i ? ",\n[%s, %s, %" PRIu64 ", %s]" : "\n[%s, %s, %" PRIu64 ", %s]",
                    process_title(process, true, title, sizeof title), process_rank(process),
                    r->total.process_calls[process->index], process_gpu_rows(process));
    }
    fputs("]}", d->stream);
}

/* Returns the number of processes with the same value as the first one. */
static uint32_t agreeing(const struct recording *rec, const char *key, const char *value)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        const char *other = process_meta(rec->processes[i], key);
        count += other && strcmp(other, value) == 0;
    }
    return count;
}

/* Writes the first process's metadata: [key, value, processes with the same value]. */
void page_put_settings(const struct page *p, struct page_data *d)
{
    const struct recording *rec = p->report->rec;
    const struct process *first = rec->count ? rec->processes[0] : NULL;
    uint64_t before = page_data_written(d);
    const char *separator = "\n";
    fputs("{\"release\": \"" GPUPROF_RELEASE "\", \"meta\": [", d->stream);
    for (uint32_t i = 0; first && i < first->meta_count; i++) {
        const char *text = first->meta[i].text, *is = strchr(text, '=');
        char *key = is ? strndup(text, (size_t)(is - text)) : NULL;
        const char *value = key ? process_meta(first, key) : NULL;
        /* Of several values for a key, the last is valid. */
        if (value == is + 1 && page_data_written(d) - before < KEYS_BYTES) {
            fputs(separator, d->stream);
            page_printf(d, "[%s, %s, %u]", key, value, agreeing(rec, key, value));
            separator = ",\n";
        }
        free(key);
    }
    fputs("]}", d->stream);
}

/* ---- tables ---- */

static const char *const types[] = {
    [COLUMN_TEXT] = "text",     [COLUMN_LINES] = "lines",      [COLUMN_COUNT] = "count",
    [COLUMN_NS] = "ns",         [COLUMN_BYTES] = "bytes",      [COLUMN_AMOUNT] = "amount",
    [COLUMN_SHARE] = "share",   [COLUMN_FINE_SHARE] = "share", [COLUMN_RATE] = "rate",
    [COLUMN_NUMBER] = "number", [COLUMN_BOOL] = "bool",        [COLUMN_JSON] = "json",
    [COLUMN_LIST] = "list",     [COLUMN_POWER] = "number",     [COLUMN_ENERGY] = "number",
};

static void put_columns(const struct table_info *info, struct page_data *d)
{
    const char *separator = "";
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct column *c = &info->columns[i];
        if (!c->key)
            continue;
        fputs(separator, d->stream);
        page_printf(d, "{\"key\": %s, \"type\": %s, \"label\": %s, \"doc\": %s}", c->key,
                    types[c->type], c->label, c->doc);
        separator = ", ";
    }
}

static void put_row(const struct table_info *info, const struct cell *cells, struct page_data *d)
{
    const char *separator = "[";
    for (unsigned i = 0; i < info->column_count; i++) {
        if (!info->columns[i].key)
            continue;
        fputs(separator, d->stream);
        cell_print_json(&info->columns[i], &cells[i], page_put_text, d->stream);
        separator = ",";
    }
    fputc(']', d->stream);
}

/* Writes a note that the text has before or after the table. */
static void put_note(const char *before, void (*print)(const struct table *, FILE *),
                     const struct table *t, struct page_data *d)
{
    struct new_text text;
    FILE *note = new_text_begin(&text);
    if (print)
        print(t, note);
    page_put_owned(d, before, new_text_end(&text, note));
}

static void put_rows(struct table *t, uint64_t bytes_max, struct page_data *d)
{
    uint64_t before = page_data_written(d);
    uint32_t place = 0;
    for (; place <= t->shown && page_data_written(d) - before <= bytes_max; place++) {
        struct cell cells[TABLE_COLUMNS_MAX];
        if (table_row(t, place, cells)) {
            fputs(place ? ",\n" : "\n", d->stream);
            put_row(t->info, cells, d);
        }
        cells_release(cells);
    }
    uint32_t rows = place < t->shown ? place : t->shown;
    fprintf(d->stream, "], \"left_out\": %u", t->rows - rows);
}

/* Writes a table as the script's tableOf expects it, of about `bytes_max` bytes at most, after
 * `separator`, if it is there. */
static void put_table(struct table *t, const struct table_view *how, uint64_t bytes_max,
                      const char *separator, struct page_data *d)
{
    table_begin(t, how, FORMAT_JSON);
    if (t->is_there) {
        fputs(separator, d->stream);
        page_printf(d, "\n{\"name\": %s, \"key\": %s, \"title\": %s", t->info->name, t->info->key,
                    t->info->title);
        put_note(", \"note\": ", t->info->text_before, t, d);
        put_note(", \"behind\": ", t->info->text_behind, t, d);
        fputs(",\n\"columns\": [", d->stream);
        put_columns(t->info, d);
        fputs("],\n\"rows\": [", d->stream);
        put_rows(t, bytes_max, d);
        fputc('}', d->stream);
    }
    table_end(t);
}

void page_put_tables(const struct page *p, struct page_data *d)
{
    struct table tables[REPORT_TABLES_MAX];
    struct table_view how = p->view->how;
    unsigned count = report_tables(p->report, tables);
    uint64_t before = page_data_written(d), at = before;
    how.limit = TABLE_ROWS_MAX;
    fputc('[', d->stream);
    for (unsigned i = 0; i < count; i++) {
        uint64_t left = at - before < ALL_BYTES_MAX ? ALL_BYTES_MAX - (at - before) : 0;
        if (report_wants(p->view, tables[i].info, FORMAT_JSON))
            put_table(&tables[i], &how, left < TABLE_BYTES_MAX ? left : TABLE_BYTES_MAX,
                      at > before + 1 ? "," : "", d);
        at = page_data_written(d);
    }
    fputs("\n]", d->stream);
}

/* ---- durations of the kernels with most time: buckets, eight to each power of two ---- */

/* Writes a list of [from, to, count], the shortest first. */
static void put_durations(const struct histogram *h, FILE *out)
{
    const char *separator = "";
    for (unsigned row = 0; row < HISTOGRAM_ROWS; row++)
        for (unsigned i = 0; h->rows[row] && i < HISTOGRAM_BUCKETS; i += TOGETHER) {
            uint64_t count = 0;
            for (unsigned k = i; k < i + TOGETHER; k++)
                count += h->rows[row][k];
            if (count)
                fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", separator,
                        histogram_bucket_begin(row, i), histogram_bucket_begin(row, i + TOGETHER),
                        count);
            separator = count ? "," : separator;
        }
}

/* Writes the kernels: [name, durations]. */
void page_put_kernels(const struct page *p, struct page_data *d)
{
    const struct sums *kernels = &p->report->sums[ANALYSIS_kernels_sums];
    char name[SUMS_NAME_BYTES];
    fputs("{\"durations\": [", d->stream);
    for (uint32_t i = 0; i < kernels->count && i < KERNELS_MAX; i++) {
        page_printf(d, i ? ",\n[%s, [" : "\n[%s, [",
                    sums_name(kernels, &kernels->rows[i], 0, name));
        put_durations(kernels->rows[i].durations, d->stream);
        fputs("]]", d->stream);
    }
    fputs("]}", d->stream);
}

/* ---- peak performance of the devices, for the roofline ---- */

/* Writes published figures: TFLOP/s by type, and GB/s. */
static void put_peaks(const struct device_peaks *p, struct page_data *d)
{
    const struct {
        const char *type;
        uint32_t peak;
    } peaks[] = {{"f64", p->double_},   {"f32", p->single}, {"tf32", p->tf32}, {"f16", p->half},
                 {"bf16", p->bfloat16}, {"fp8", p->float8}, {"i8", p->int8}};
    const char *separator = "";
    page_printf(d, "{\"name\": %s, \"bandwidth\": %u, \"peaks\": {", p->name, p->bandwidth);
    for (unsigned i = 0; i < sizeof peaks / sizeof peaks[0]; i++)
        if (peaks[i].peak) {
            fprintf(d->stream, "%s\"%s\": %.1f", separator, peaks[i].type, peaks[i].peak / 1e3);
            separator = ", ";
        }
    fputs("}}", d->stream);
}

void page_put_libraries(const struct page *p, struct page_data *d)
{
    const struct survey *survey = &p->report->walk.survey;
    const struct device_peaks *found[ROOF_DEVICES_MAX];
    unsigned count = 0;
    fputs("{\"devices\": [", d->stream);
    for (uint32_t i = 0; i < survey->device_count && count < ROOF_DEVICES_MAX; i++) {
        const struct device_peaks *peaks = device_peaks_of(survey->devices[i].name);
        unsigned k = 0;
        while (k < count && found[k] != peaks)
            k++;
        if (!peaks || k < count)
            continue;
        found[count++] = peaks;
        fputs(count > 1 ? ",\n" : "\n", d->stream);
        put_peaks(peaks, d);
    }
    fputs("]}", d->stream);
}

/* ---- memory: tables of `gpuprof memory`, and a curve for each place ---- */

/* Writes the maximum of each span of time. */
static void put_curve(const struct memory_place *p, FILE *out)
{
    double most = p->peak.bytes ? (double)p->peak.bytes : 1;
    fputc('"', out);
    for (unsigned i = 0; i < MEMORY_CURVE; i++) {
        unsigned level = (unsigned)((double)p->curve.list[i].peak / most * LEVELS + 0.5);
        fputc(PAGE_LETTERS[level >> 6 & 63], out);
        fputc(PAGE_LETTERS[level & 63], out);
    }
    fputc('"', out);
}

static void put_memory_tables(const struct page *p, const struct memory_report *m,
                              struct page_data *d)
{
    struct table_view how = p->view->how;
    const char *separator = "";
    how.limit = TABLE_ROWS_MAX;
    how.sort = NULL; /* rows of places keep the order of their curves */
    fputs("\"tables\": [", d->stream);
    for (unsigned i = 0; i < MEMORY_TABLES_SHOWN; i++) {
        struct table table = {.info = memory_tables[i], .source = m};
        uint64_t before = page_data_written(d);
        put_table(&table, &how, MEMORY_BYTES_MAX, separator, d);
        separator = page_data_written(d) > before ? "," : separator;
    }
    fputs("]", d->stream);
}

void page_put_memory(const struct page *p, struct page_data *d)
{
    struct memory_report *made = NULL, *m = p->report->memory;
    if (!m && !p->report->peaks.any) {
        fputs("{\"tables\": [], \"curves\": []}", d->stream);
        return;
    }
    if (!m)
        m = made = memory_report_create(p->report->rec, &p->memory, p->symbols, &d->error);
    if (!m)
        return;
    fprintf(d->stream, "{\"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64 ", ",
            memory_moment(m, m->times.begin_ns), memory_moment(m, m->times.end_ns));
    put_memory_tables(p, m, d);
    fputs(",\n\"curves\": [", d->stream);
    for (uint32_t i = 0; i < m->places.count; i++) {
        fputs(i ? ",\n" : "\n", d->stream);
        put_curve(&m->places.list[i], d->stream);
    }
    fputs("]}", d->stream);
    memory_report_free(made);
}
