/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "array.h"
#include "error.h"
#include "gpu_report.h"
#include "message.h"
#include "options.h"
#include "report_tables.h"
#include "stack_report.h"
#include "text_width.h"
#include "timeline.h"
#include "verb_output.h"

#define RESULT_NOT_READY  600
#define SUMMARY_FUNCTIONS 5

static struct report_row *row_add(struct report *r, const struct function *f)
{
    struct report_row *rows = array_room(r->rows, r->row_count, &r->row_capacity, sizeof *rows, 64);
    if (!rows)
        return NULL;
    r->rows = rows;
    r->rows[r->row_count] = (struct report_row){.function = f};
    return &r->rows[r->row_count++];
}

static uint32_t name_hash(const void *item)
{
    const struct function *f = ((const struct report_row *)item)->function;
    uint32_t hash = 2166136261u ^ f->domain;
    for (const char *p = f->name; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 16777619u;
    return hash;
}

static bool same_name(const void *a, const void *b)
{
    const struct function *x = ((const struct report_row *)a)->function;
    const struct function *y = ((const struct report_row *)b)->function;
    return x->domain == y->domain && strcmp(x->name, y->name) == 0;
}

static const struct number_kind by_name = {sizeof(struct report_row), name_hash, same_name};

/* Functions of one name and domain share a row: _ptsz forms, ABI variants, other builds. */
static struct report_row *row_of(struct report *r, const struct function *f)
{
    if (f->index < r->row_of_count && r->row_of[f->index])
        return &r->rows[r->row_of[f->index] - 1];
    if (f->index >= r->row_of_count) {
        uint32_t count = f->index + 256;
        uint32_t *grown = realloc(r->row_of, count * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + r->row_of_count, 0, (count - r->row_of_count) * sizeof *grown);
        r->row_of = grown;
        r->row_of_count = count;
    }
    struct report_row wanted = {.function = f};
    uint32_t *number = number_set_find(&r->row_names, &by_name, r->rows, r->row_count, &wanted);
    if (!number || (!*number && !row_add(r, f)))
        return NULL;
    if (!*number)
        *number = r->row_count;
    r->row_of[f->index] = *number;
    return &r->rows[*number - 1];
}

static uint64_t call_bytes(const struct event *e)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < e->record->arg_count && i < e->function->arg_count; i++)
        if (e->function->args[i].kind == API_BYTES)
            bytes += e->record->args[i];
    return bytes;
}

static int take_call(struct report *r, const struct event *e)
{
    struct report_row *row = row_of(r, e->function);
    if (!row)
        return GPUPROF_NO_MEMORY;
    uint64_t duration_ns = e->end_ns - e->begin_ns;
    uint64_t weight = e->record->weight > 1 ? e->record->weight : 1;
    row->count += weight;
    row->recorded++;
    row->total_ns += duration_ns * weight;
    if (duration_ns > row->max_ns)
        row->max_ns = duration_ns;
    /* The outer call has the time and the bytes of those nested in it already. */
    bool outermost = !(e->record->flags & RECORD_NESTED);
    row->outer_ns += outermost ? duration_ns * weight : 0;
    r->total_ns += outermost ? duration_ns * weight : 0;
    if (r->calls == 0)
        r->begin_ns = e->begin_ns;
    if (e->end_ns > r->end_ns)
        r->end_ns = e->end_ns;
    open_calls_take(&r->open, e);
    r->calls += weight;
    r->is_estimated |= weight > 1;
    r->process_calls[e->process->index] += weight;
    if (e->record->result && e->record->result != RESULT_NOT_READY) {
        row->errors += weight;
        r->errors += weight;
        failures_take(&r->failures, e, row->function, weight);
    } else {
        uint64_t bytes = call_bytes(e) * weight;
        row->bytes += bytes;
        if (e->function->copies && outermost) {
            r->copy_calls += weight;
            r->copy_bytes += bytes;
        }
    }
    return histogram_add(&row->durations, duration_ns, weight);
}

static int compare_rows(const void *left, const void *right)
{
    const struct report_row *a = left;
    const struct report_row *b = right;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return strcmp(a->function->name, b->function->name);
}

static int complete(struct report *r)
{
    r->failures.begin_ns = r->begin_ns;
    if (r->row_count)
        qsort(r->rows, r->row_count, sizeof *r->rows, compare_rows);
    for (uint32_t i = 0; i < r->rec->count; i++)
        losses_add(&r->losses, &r->rec->processes[i]->losses);
    return cost_report_init(&r->cost, r->rec);
}

static int start_stacks(struct report *r, enum report_by by, const char *symbol_folder)
{
    if (by != BY_STACK && by != BY_PYTHON_LINE)
        return 0;
    r->stacks = calloc(1, sizeof *r->stacks);
    if (!r->stacks)
        return GPUPROF_NO_MEMORY;
    return stack_report_init(r->stacks, gpu_report_surveyed(r->gpu), by, symbol_folder);
}

static int take_event(struct report *r, const struct event *e)
{
    int error = e->record->type == RECORD_CALL ? take_call(r, e) : gpu_report_take(r->gpu, e);
    return error == 0 && r->stacks ? stack_costs_take(&r->stacks->costs, e) : error;
}

int report_make(struct report *r, struct recording *rec, enum report_by by,
                const char *symbol_folder)
{
    *r = (struct report){.rec = rec};
    r->gpu = gpu_report_create(rec, by);
    int more = r->gpu ? gpu_report_survey(r->gpu) : GPUPROF_NO_MEMORY;
    if (r->gpu && more < 0)
        return more;
    int started = r->gpu ? start_stacks(r, by, symbol_folder) : GPUPROF_NO_MEMORY;
    struct timeline *timeline = timeline_create(rec, OPEN_BYTES_MAX);
    r->process_calls = calloc(rec->count + 1u, sizeof *r->process_calls);
    more = r->gpu && timeline && r->process_calls && started == 0 ? 1 : GPUPROF_NO_MEMORY;
    while (more > 0) {
        struct event event;
        more = timeline_next(timeline, &event);
        int error = more > 0 ? take_event(r, &event) : 0;
        more = error < 0 ? error : more;
    }
    if (more == 0)
        more = gpu_report_finish(r->gpu);
    if (more == 0 && r->stacks)
        more = stack_report_finish(r->stacks);
    if (more < 0)
        message("%s: %s", timeline ? timeline_path(timeline) : "report",
                more == GPUPROF_IO ? strerror(errno) : gpuprof_error_text(more));
    timeline_free(timeline);
    int completed = complete(r);
    if (completed < 0 && more == 0)
        message("report: %s", gpuprof_error_text(completed));
    return more < 0 ? more : completed;
}

void report_release(struct report *r)
{
    for (uint32_t i = 0; i < r->row_count; i++)
        histogram_release(&r->rows[i].durations);
    free(r->rows);
    free(r->row_of);
    number_set_release(&r->row_names);
    free(r->process_calls);
    cost_report_release(&r->cost);
    if (r->stacks)
        stack_report_release(r->stacks);
    free(r->stacks);
    gpu_report_free(r->gpu);
}

static enum exit_code report_print(const struct report *r, const struct report_view *view,
                                   enum report_format format)
{
    struct output out;
    uint64_t room = verb_output_room(recording_bytes(r->rec));
    enum exit_code code = verb_output_open(&out, NULL, &room);
    if (code != EXIT_OK)
        return code;
    FILE *text = output_stream(&out);
    int error = text ? 0 : GPUPROF_NO_MEMORY;
    if (error == 0)
        error = format == FORMAT_JSON  ? report_print_json(r, view, text)
                : format == FORMAT_CSV ? report_print_csv(r, view, text)
                                       : report_print_text(r, view, text);
    if (error < 0)
        message("report: %s", gpuprof_error_text(error));
    return verb_output_close(&out, NULL, error);
}

enum exit_code report_verb(const struct options *options)
{
    struct recording rec;
    struct recording_options how = {.keep_live = options->keep_live};
    struct report_view view = {
        options->by,
        options->tables,
        {.sort = options->sort,
         .limit = options->limit,
         .width = options->is_full ? 0 : terminal_width(STDOUT_FILENO),
         .is_named = options->tables != NULL},
    };
    enum exit_code code = report_view_check(&view, options->format);
    if (code != EXIT_OK)
        return code;
    code = recording_open(&rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK) {
        struct report report;
        int error = report_make(&report, &rec, options->by, options->symbols);
        code = error < 0 ? EXIT_ENVIRONMENT : report_print(&report, &view, options->format);
        report_release(&report);
    }
    if (code == EXIT_OK)
        code = recording_verdict(&rec, options->strict);
    recording_release(&rec);
    return code;
}

/* Not all was read: how long all took the block headers say. */
static void say_cut(struct report *r, const struct recording *rec)
{
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        if (p->min_ns > p->max_ns)
            continue;
        uint64_t from_ns = clock_map_ns(&p->clock, p->min_ns);
        uint64_t to_ns = clock_map_ns(&p->clock, p->max_ns);
        begin_ns = from_ns < begin_ns ? from_ns : begin_ns;
        end_ns = to_ns > end_ns ? to_ns : end_ns;
    }
    r->whole_ns = end_ns > begin_ns ? end_ns - begin_ns : 1;
    /* Work and the calls that made it were not read equally far. */
    r->losses.gpu_missing = r->losses.gpu_unpaired = 0;
}

enum exit_code report_summary(char **paths, int path_count, uint64_t walk_ns_max, FILE *out)
{
    struct recording rec;
    struct report report;
    struct recording_options how = {.quiet = true, .found = true};
    enum exit_code code = recording_open(&rec, paths, path_count, &how);
    if (code == EXIT_OK) {
        rec.walk_ns_max = walk_ns_max;
        int error = report_make(&report, &rec, BY_NAME, NULL);
        if (error == 0 && rec.is_cut)
            say_cut(&report, &rec);
        if (error == 0)
            report_print_summary(&report, SUMMARY_FUNCTIONS, out);
        bool damaged = rec.unread_files || losses_weight(&report.losses) == LOSS_DAMAGE;
        code = error < 0 ? EXIT_ENVIRONMENT : damaged ? EXIT_DAMAGED : EXIT_OK;
        report_release(&report);
    }
    recording_release(&rec);
    return code;
}
