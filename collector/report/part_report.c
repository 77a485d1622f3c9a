/* SPDX-License-Identifier: Apache-2.0 */
#include "report/part_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
#include "analyse/energy_report.h"
#include "analyse/gpu_report.h"
#include "analyse/step_report.h"
#include "base/array.h"
#include "base/message.h"
#include "error.h"
#include "report/collective_part.h"
#include "report/gpu_report_part.h"
#include "report/library_part.h"
#include "report/op_part.h"
#include "report/process_part.h"
#include "report/step_part.h"

#define FAILURE_BYTES 8 /* in a part, at least */

/* Tables that need every event in one place, and of a combination are empty. */
static bool is_asked_for(const struct table_info *info)
{
    return info->by != BY_NAME || (info >= step_tables && info < step_tables + STEP_TABLES);
}

unsigned part_report_needs(const struct table_info *info)
{
    const struct {
        const struct table_info *infos;
        unsigned count, needs;
    } list[] = {{&findings_table, 1, PART_HANGS | PART_COUNTERS | PART_MEMORY},
                {&open_calls_table, 1, PART_HANGS},
                {&unfinished_table, 1, PART_HANGS},
                {&collectives_table, 1, PART_COLLECTIVES},
                {&library_table, 1, PART_LIBRARIES},
                {device_tables, DEVICE_TABLES, PART_COUNTERS},
                {&energy_table, 1, PART_COUNTERS}};
    for (unsigned i = 0; i < sizeof list / sizeof list[0]; i++)
        if (info >= list[i].infos && info < list[i].infos + list[i].count)
            return list[i].needs;
    return 0;
}

bool part_report_has(const struct table_info *info)
{
    return !is_asked_for(info);
}

const char *part_report_missing(unsigned missing, char text[static PART_MISSING_BYTES])
{
    static const char *const words[] = {
        "hangs", "collectives that differ, or did not end", "more collectives than a part keeps",
        "counters of devices and their energy",
        "what is wrong with the memory (which 'gpuprof memory' of the recordings tells, too)"};
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        if (missing >> i & 1)
            length += (size_t)snprintf(text + length, PART_MISSING_BYTES - length, "%s%s",
                                       length ? ", " : "", words[i]);
    return text;
}

/* What the report has that is in no part. */
static unsigned find_missing(const struct report *r)
{
    const struct hang *h = &r->hang;
    unsigned missing = h->open.total || h->unfinished.total || h->quiet.count ? PART_HANGS : 0;
    missing |= collective_part_is_doubtful(h) ? PART_COLLECTIVES : 0;
    missing |= r->libraries && r->libraries->has_forgotten ? PART_LIBRARIES : 0;
    missing |=
        r->devices->count || r->devices->absence_count || r->energy->count ? PART_COUNTERS : 0;
    missing |=
        r->signs.ooms || (r->marks && memory_signs_of_fault(&r->signs, r->marks)) ? PART_MEMORY : 0;
    return missing;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* What there is one of, in each part. */
struct whole {
    uint64_t origin_ns, calls, errors, total_ns, copy_calls, copy_bytes, begin_ns, end_ns,
        wall_begin_ns, wall_end_ns, failures_others, ooms;
    uint32_t threads, own_threads, unread_files, missing;
    bool is_estimated, has_dropped, has_few_times;
};

static void carry_whole(struct part *p, struct whole *w)
{
    uint64_t *const numbers[] = {&w->origin_ns,   &w->calls,           &w->errors,
                                 &w->total_ns,    &w->copy_calls,      &w->copy_bytes,
                                 &w->begin_ns,    &w->end_ns,          &w->wall_begin_ns,
                                 &w->wall_end_ns, &w->failures_others, &w->ooms};
    part_numbers(p, numbers, sizeof numbers / sizeof numbers[0]);
    part_u32(p, &w->threads);
    part_u32(p, &w->own_threads);
    part_u32(p, &w->unread_files);
    part_u32(p, &w->missing);
    part_flag(p, &w->is_estimated);
    part_flag(p, &w->has_dropped);
    part_flag(p, &w->has_few_times);
    p->has_failed |= w->wall_end_ns < w->wall_begin_ns;
}

/* The number and the name of a function are all that tables show of it. */
static void carry_function(struct part *p, struct function *f)
{
    uint32_t domain = f->domain;
    part_u32(p, &domain);
    part_text(p, &f->name);
    p->has_failed |= domain > UINT8_MAX || !f->name;
    f->domain = (uint8_t)domain;
}

static void carry_failure(struct part *p, struct function *f, struct failure *row,
                          uint32_t *process, struct thread *thread)
{
    char name[THREAD_NAME_BYTES_MAX + 1];
    const char *text = name;
    uint64_t result = (uint32_t)row->result;
    memcpy(name, thread->name, sizeof name);
    carry_function(p, f);
    part_number(p, &result);
    part_u32(p, process);
    part_u32(p, &thread->number);
    part_u32(p, &thread->tid);
    part_text(p, &text);
    part_number(p, &row->count);
    part_number(p, &row->first_ns);
    part_number(p, &row->begin_ns);
    p->has_failed |= result > UINT32_MAX || !text || strlen(text) >= sizeof thread->name;
    row->result = (int32_t)(uint32_t)result;
    if (!p->has_failed && !p->is_written)
        memcpy(thread->name, text, strlen(text) + 1);
}

static void put_process(struct part *p, const struct report *r, const struct process *process)
{
    uint32_t index = process->index;
    struct process_told told = {.losses = r->walk.losses[index],
                                .calls = r->process_calls[index],
                                .window = r->walk.recorded[index].window};
    process_part_put(p, process, &told);
}

int part_report_put(struct report *r, struct part *p)
{
    const struct recording *rec = r->rec;
    struct whole w = {.origin_ns = r->walk.survey.origin_ns,
                      .calls = r->calls,
                      .errors = r->errors,
                      .total_ns = r->total_ns,
                      .copy_calls = r->copy_calls,
                      .copy_bytes = r->copy_bytes,
                      .begin_ns = r->begin_ns,
                      .end_ns = r->end_ns,
                      .wall_begin_ns = r->wall_begin_ns,
                      .wall_end_ns = r->wall_end_ns,
                      .failures_others = r->failures.others,
                      .ooms = r->signs.ooms,
                      .threads = rec->thread_count,
                      .own_threads = rec->own_thread_count,
                      .unread_files = rec->unread_files,
                      .missing = find_missing(r),
                      .is_estimated = r->is_estimated,
                      .has_dropped = r->walk.kernels.dropped || r->walk.texts.dropped,
                      .has_few_times = !r->histogram_rows};
    uint32_t count = rec->count;
    p->is_written = true;
    part_count(p, &count, PROCESS_PART_BYTES);
    for (uint32_t i = 0; i < rec->count; i++)
        put_process(p, r, rec->processes[i]);
    idle_part_put_devices(r->idle, p);
    carry_whole(p, &w);
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        if (analyses[i]->table.by == BY_NAME)
            sums_put(&r->sums[i], p); /* without rows, where nobody asked for it */
    part_count(p, &r->failures.count, FAILURE_BYTES);
    for (uint32_t i = 0; i < r->failures.count; i++) {
        struct failure *row = &r->failures.rows[i];
        struct function f = *row->function;
        struct thread thread = *row->thread;
        carry_failure(p, &f, row, &(uint32_t){row->process->index}, &thread);
    }
    gpu_report_put(r->gpu, p, r->libraries);
    step_part_put(r->marks, p);
    op_part_put(r->ops, p);
    collective_part_put(&r->hang.collectives, p);
    int error = library_part_put(r->libraries, p);
    if (error == 0)
        error = idle_part_put(r->idle, p);
    if (error == 0)
        error = finding_part_put(r->findings, p);
    return error == 0 && p->has_failed ? GPUPROF_NO_MEMORY : error;
}

/* ---- a combination --------------------------------------------------------------------------- */

/* New memory of so many bytes that the list keeps. */
static void *keep(void ***list, uint32_t *count, uint32_t *capacity, size_t bytes)
{
    void **grown = array_room(*list, *count, capacity, sizeof *grown, 64);
    if (!grown)
        return NULL;
    *list = grown;
    grown[*count] = calloc(1, bytes);
    return grown[*count] ? grown[(*count)++] : NULL;
}

static int add_processes(struct combination *c, struct part *p, uint64_t bytes)
{
    uint32_t count = 0;
    int error = 0;
    part_count(p, &count, PROCESS_PART_BYTES);
    for (uint32_t i = 0; i < count && error == 0 && !p->has_failed; i++) {
        struct recording *rec = &c->rec;
        struct process **list =
            array_room(rec->processes, rec->count, &rec->capacity, sizeof *list, 64);
        struct process *process = list ? calloc(1, sizeof *process) : NULL;
        struct process_told *told =
            array_room(c->told, rec->count, &c->told_capacity, sizeof *told, 64);
        rec->processes = list ? list : rec->processes;
        c->told = told ? told : c->told;
        if (!process || !told) {
            free(process);
            return GPUPROF_NO_MEMORY;
        }
        told[rec->count] = (struct process_told){0};
        *process = (struct process){.number = rec->count,
                                    .index = rec->count,
                                    .min_ns = UINT64_MAX,
                                    .file = {.fd = -1, .size = bytes / count}};
        list[rec->count++] = process;
        error = process_part_get(p, process, &c->told[process->index]);
    }
    return error;
}

static int add_failure(struct combination *c, struct part *p, struct process *const *processes,
                       uint32_t process_count)
{
    struct failure got = {0};
    uint32_t process = 0;
    struct thread *thread =
        keep(&c->threads, &c->thread_count, &c->thread_capacity, sizeof *thread);
    struct function *f = keep(&c->functions, &c->function_count, &c->function_capacity, sizeof *f);
    struct failure *list =
        array_room(c->failures, c->failure_count, &c->failure_capacity, sizeof *list, 64);
    c->failures = list ? list : c->failures;
    if (!thread || !f || !list)
        return GPUPROF_NO_MEMORY;
    carry_failure(p, f, &got, &process, thread);
    p->has_failed |= process >= process_count;
    if (p->has_failed)
        return 0;
    got.function = f;
    got.process = processes[process];
    got.thread = thread;
    got.place = c->failure_count;
    list[c->failure_count++] = got;
    return 0;
}

/* 0: there is none. */
static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a && (!b || a < b) ? a : b;
}

static int add_sums(struct combination *c, uint32_t of, struct process *const *processes,
                    uint32_t process_count)
{
    struct part *p = &c->parts[of];
    struct report *r = &c->report;
    struct whole w = {0};
    uint32_t count = 0;
    int error = 0;
    carry_whole(p, &w);
    uint64_t *origin_ns = &r->walk.survey.origin_ns;
    *origin_ns = earliest(*origin_ns, w.origin_ns);
    r->begin_ns = w.calls && (!r->calls || w.begin_ns < r->begin_ns) ? w.begin_ns : r->begin_ns;
    r->end_ns = w.end_ns > r->end_ns ? w.end_ns : r->end_ns;
    r->wall_begin_ns = earliest(r->wall_begin_ns, w.wall_begin_ns);
    r->wall_end_ns = w.wall_end_ns > r->wall_end_ns ? w.wall_end_ns : r->wall_end_ns;
    r->calls += w.calls;
    r->errors += w.errors;
    r->total_ns += w.total_ns;
    r->copy_calls += w.copy_calls;
    r->copy_bytes += w.copy_bytes;
    r->failures.others += w.failures_others;
    r->signs.ooms += w.ooms;
    r->missing |= w.missing;
    r->is_estimated |= w.is_estimated;
    c->rec.thread_count += w.threads;
    c->rec.own_thread_count += w.own_threads;
    c->rec.unread_files += w.unread_files;
    r->walk.kernels.dropped += w.has_dropped;
    c->has_few_times |= w.has_few_times;
    for (unsigned i = 0; i < ANALYSES_COUNT && error == 0 && !p->has_failed; i++)
        if (r->sums[i].info)
            error = sums_add(&r->sums[i], p, processes, process_count);
    part_count(p, &count, FAILURE_BYTES);
    for (uint32_t i = 0; i < count && error == 0 && !p->has_failed; i++)
        error = add_failure(c, p, processes, process_count);
    if (error == 0)
        error = gpu_report_add(r->gpu, p, processes, process_count);
    if (error == 0)
        error = step_part_add(r->marks, p, processes, process_count, &c->idle.has_more);
    if (error == 0 && !p->has_failed)
        error = op_part_add(r->ops, p, processes, process_count, &c->idle.has_more);
    if (error == 0)
        error = collective_part_add(&c->called, p);
    if (error == 0)
        error = library_part_add(r->libraries, &c->waits, p, processes, process_count,
                                 &c->idle.has_more);
    if (error == 0)
        error = idle_part_add(&c->idle, r->idle, of, processes, process_count);
    return error < 0 || p->has_failed ? error
                                      : finding_part_add(&c->found, r->findings, &c->idle, of, p);
}

/* As one walk meets them; those of one process are in one part, in their order. */
static int compare_firsts(const void *left, const void *right)
{
    const struct failure *a = left, *b = right;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    if (a->process != b->process)
        return a->process->index < b->process->index ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int compare_kinds(const void *left, const void *right)
{
    const struct failure *a = left, *b = right;
    int order =
        (a->function->domain > b->function->domain) - (a->function->domain < b->function->domain);
    if (order == 0)
        order = strcmp(a->function->name, b->function->name);
    if (order)
        return order;
    if (a->result != b->result)
        return a->result < b->result ? -1 : 1;
    return compare_firsts(left, right);
}

/* Those of one error and function become the first of them. */
static void join_failures(struct combination *c)
{
    struct failures *f = &c->report.failures;
    struct failure *list = c->failures;
    uint32_t count = 0;
    if (c->failure_count)
        qsort(list, c->failure_count, sizeof *list, compare_kinds);
    for (uint32_t i = 0; i < c->failure_count; i++) {
        if (count && failures_are_one(&list[count - 1], &list[i]))
            list[count - 1].count += list[i].count;
        else
            list[count++] = list[i];
    }
    if (count)
        qsort(list, count, sizeof *list, compare_firsts);
    for (uint32_t i = 0; i < count; i++) {
        if (i < FAILURES_MAX)
            f->rows[f->count++] = list[i];
        else
            f->others += list[i].count;
    }
}

/* The parts of one set, each once; they are put in the order of their numbers. */
static enum exit_code check_set(struct combination *c)
{
    const struct part *first = &c->parts[0];
    struct part *sorted = calloc(first->count, sizeof *sorted);
    uint32_t missing = 0;
    if (!sorted)
        return say_error("report", GPUPROF_NO_MEMORY);
    for (uint32_t i = 0; i < c->part_count; i++) {
        struct part *p = &c->parts[i];
        enum exit_code code = EXIT_OK;
        if (strcmp(p->set, first->set) != 0)
            code = usage_error("report: %s: is of another recording or job than %s, or files have "
                               "come since: parts that add up are made of the same files",
                               p->path, first->path);
        else if (p->count != first->count)
            code = usage_error("report: %s: is one of %u parts, %s one of %u", p->path, p->count,
                               first->path, first->count);
        else if (sorted[p->index].path)
            code = usage_error("report: %s: is part %u of %u, as %s is", p->path, p->index,
                               p->count, sorted[p->index].path);
        if (code != EXIT_OK) {
            free(sorted);
            return code;
        }
        sorted[p->index] = *p;
    }
    for (uint32_t i = 0; i < first->count && !missing; i++)
        missing = sorted[i].path ? 0 : i + 1;
    enum exit_code code = EXIT_OK;
    if (missing)
        code = usage_error("report: part %u of %u (they count from 0 on) is missing: %u of them "
                           "are there; name all of them",
                           missing - 1, first->count, c->part_count);
    else
        memcpy(c->parts, sorted, c->part_count * sizeof *sorted);
    free(sorted);
    return code;
}

/* What parts add to, and what none has anything of. */
static int start_tables(struct report *r, bool groups)
{
    r->ops = calloc(1, sizeof *r->ops);
    r->libraries = calloc(1, sizeof *r->libraries);
    r->marks = calloc(1, sizeof *r->marks);
    r->devices = calloc(1, sizeof *r->devices);
    r->energy = calloc(1, sizeof *r->energy);
    if (!r->ops || !r->libraries || !r->marks || !r->devices || !r->energy)
        return GPUPROF_NO_MEMORY;
    library_report_init(r->libraries, &r->walk);
    energy_report_init(r->energy, r->devices, true);
    int error = steps_init(r->marks, &r->walk, NULL, NULL);
    if (error == 0)
        error = device_report_init(r->devices, &r->walk, r->idle);
    if (error == 0)
        error = op_report_init(r->ops, &r->walk, BY_NAME, groups);
    return error < 0 ? error : cost_report_init(&r->cost, r->rec);
}

static int start(struct combination *c, uint64_t bytes)
{
    struct report *r = &c->report;
    struct recording *rec = &c->rec;
    *r = (struct report){.rec = rec,
                         .is_combined = true,
                         .histogram_rows = histogram_rows_max(0) + bytes / PART_HISTOGRAM_ROW};
    uint64_t *calls = r->process_calls = calloc(rec->count + 1u, sizeof *r->process_calls);
    int error = rec->count ? recording_find_jobs(rec) : 0;
    if (error == 0 && rec->count) {
        if (!c->is_quiet)
            recording_say_jobs(rec, "'gpuprof report --job=N' of the recordings shows one of them");
        error = recording_arrange(rec);
    }
    if (error == 0)
        error = walk_init(&r->walk, rec);
    if (error == 0)
        report_start_sums(r, BY_NAME, 0);
    if (error == 0)
        error = hang_init(&r->hang, &r->walk);
    if (error == 0)
        error = memory_signs_init(&r->signs, &r->walk);
    r->idle = error == 0 ? calloc(1, sizeof *r->idle) : NULL;
    if (error == 0)
        error = r->idle ? idle_init(r->idle, &r->walk, NULL) : GPUPROF_NO_MEMORY;
    r->findings = error == 0 ? calloc(1, sizeof *r->findings) : NULL;
    if (error == 0)
        error = r->findings ? findings_init(r->findings, &r->walk, r->idle) : GPUPROF_NO_MEMORY;
    if (error == 0)
        error = start_tables(r, c->groups);
    r->gpu = gpu_report_create(&r->walk, BY_NAME, c->groups, false, &r->histogram_rows);
    for (uint32_t i = 0; error == 0 && calls && i < rec->count; i++) {
        const struct process_told *told = &c->told[rec->processes[i]->number];
        calls[i] = told->calls;
        r->walk.recorded[i].window = told->window;
    }
    return !calls || !r->gpu ? GPUPROF_NO_MEMORY : error;
}

static int add_up(struct combination *c)
{
    struct process **loaded;
    uint32_t *firsts = calloc(c->part_count + 1u, sizeof *firsts);
    uint64_t bytes = 0;
    int error = firsts ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; error == 0 && i < c->part_count; i++) {
        bytes += c->parts[i].length;
        error = add_processes(c, &c->parts[i], c->parts[i].length);
        firsts[i + 1] = c->rec.count;
    }
    if (error == 0)
        error = start(c, bytes);
    loaded = c->rec.loaded; /* in the order of the parts; none if there are none */
    for (uint32_t i = 0; error == 0 && i < c->part_count; i++)
        error =
            idle_part_add_devices(&c->idle, c->report.idle, &c->parts[i],
                                  loaded ? loaded + firsts[i] : NULL, firsts[i + 1] - firsts[i]);
    if (error == 0)
        error = idle_parts_order(&c->idle, c->report.idle);
    if (error == 0)
        error = finding_gpu_devices(&c->report.findings->gpu, c->report.idle);
    for (uint32_t i = 0; error == 0 && i < c->part_count; i++)
        error = add_sums(c, i, loaded ? loaded + firsts[i] : NULL, firsts[i + 1] - firsts[i]);
    free(firsts);
    if (error < 0)
        return error;
    join_failures(c);
    c->report.missing |= collective_part_add_end(&c->called) ? 0 : PART_COLLECTIVES;
    library_part_add_end(c->report.libraries, &c->waits);
    for (unsigned i = 0; i < ANALYSES_COUNT; i++)
        if (c->report.sums[i].info)
            sums_finish(&c->report.sums[i]);
    report_sum_up(&c->report);
    step_part_add_end(c->report.marks);
    error = rank_report_init(&c->report.ranks, &c->rec, c->report.marks);
    if (error == 0)
        error = op_none_complete(&c->report.ops->none);
    if (error == 0)
        error = op_report_complete(c->report.ops);
    if (error < 0)
        return error;
    error = idle_part_add_end(&c->idle, c->report.idle);
    if (error == 0)
        error = idle_finish(c->report.idle);
    if (error == 0)
        error = finding_parts_end(&c->found, c->report.findings, &c->idle);
    if (error == 0)
        error = findings_finish(c->report.findings, &c->report.hang, SYMBOLS_OFF);
    if (error < 0)
        return error;
    rank_report_make(&c->report.ranks, &c->rec, c->report.idle);
    return gpu_report_add_end(c->report.gpu);
}

enum exit_code combination_make(struct combination *c, char **paths, int path_count, bool quiet,
                                bool groups)
{
    *c = (struct combination){
        .is_quiet = quiet, .groups = groups, .parts = calloc((size_t)path_count, sizeof *c->parts)};
    enum exit_code code = EXIT_OK;
    int error = c->parts ? reader_init(&c->rec.reader) : GPUPROF_NO_MEMORY;
    for (int i = 0; error == 0 && code == EXIT_OK && i < path_count; i++)
        code = part_read(&c->parts[c->part_count++], paths[i]);
    if (error == 0 && code == EXIT_OK)
        code = check_set(c);
    if (code != EXIT_OK)
        return code;
    error = error == 0 ? add_up(c) : error;
    for (uint32_t i = 0; i < c->part_count; i++)
        if (error == 0 && (c->parts[i].has_failed || c->parts[i].at != c->parts[i].length))
            return usage_error("report: %s: is damaged: it does not hold what it says",
                               c->parts[i].path);
    return say_error("report", error);
}

void combination_release(struct combination *c)
{
    idle_parts_release(&c->idle);
    finding_parts_release(&c->found);
    free(c->called.list);
    free(c->waits.list);
    c->rec.thread_count = 0; /* those of the parts; nothing here was made for them */
    if (c->report.rec)
        report_release(&c->report);
    recording_release(&c->rec);
    for (uint32_t i = 0; i < c->part_count; i++)
        part_release(&c->parts[i]);
    for (uint32_t i = 0; i < c->function_count; i++)
        free(c->functions[i]);
    for (uint32_t i = 0; i < c->thread_count; i++)
        free(c->threads[i]);
    free(c->functions);
    free(c->threads);
    free(c->failures);
    free(c->told);
    free(c->parts);
}
