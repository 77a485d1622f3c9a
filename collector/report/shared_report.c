/* SPDX-License-Identifier: Apache-2.0 */
#include "report/part_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyse/findings.h"
#include "base/file_at.h"
#include "base/memory.h"
#include "base/workers.h"
#include "memory/memory_report.h"

#define WORKERS_UNASKED 16u

struct shared_report {
    const struct options *options;
    uint32_t count;
    unsigned leaves;
    bool leaves_hangs;
    unsigned refused;          /* a worker that finds one of these stops at once */
    struct progress *progress; /* shared by all workers */
    int files[WORKERS_MAX];
    struct workers workers;
};

/* Returns whether parts can have everything that is shown, with the same result. */
static bool may_be_in_parts(const struct recording *rec, const struct options *o,
                            const struct report_view *view)
{
    const struct report_options *own = o->own;
    const struct select_request *s = &o->select;
    return !(view->by != BY_NAME || own->source || own->groups == GROUPS_ALWAYS || o->step_by ||
             o->step_range || own->step_samples > 0 || s->is_given || s->jobs.count ||
             s->ranks.count || s->pids.count || rec->host_count > 1 ||
             view->format == FORMAT_HTML || report_not_in_parts(view));
}

/* Adds the findings about memory, which need all recordings. Returns false on failure. */
static bool look_at_memory(struct report *r, struct recording *rec, const char *symbols)
{
    const struct memory_request request = {.by = MEMORY_BY_BEST, .at_seconds = -1};
    int error = 0;
    r->memory = memory_report_create(rec, &request, symbols, &error);
    if (r->memory)
        findings_add_memory(r->findings, r->memory);
    r->missing &= ~(unsigned)PART_MEMORY;
    return error == 0;
}

/* Makes one part, and prints nothing: the report made without workers prints the errors. */
static enum exit_code shared_report_work(void *context, uint32_t index, int to)
{
    struct shared_report *s = context;
    struct recording rec;
    struct report report;
    struct share share = {.index = index, .count = s->count};
    struct part part;
    struct recording_options how = {.keep_live = true, .quiet = true, .share = &share};
    struct report_request request = {.by = BY_NAME,
                                     .is_part = true,
                                     .refused = s->refused,
                                     .leaves = s->leaves,
                                     .leaves_hangs = s->leaves_hangs,
                                     .symbols = s->options->symbols};
    enum exit_code code = recording_open(&rec, s->options->paths, s->options->path_count, &how);
    rec.progress = s->progress;
    if (code == EXIT_OK)
        code = part_make(&part, s->files[index], &report, &rec, &share, &request);
    return code == EXIT_OK && workers_write(to, "", 1) ? EXIT_OK : EXIT_ENVIRONMENT;
}

static bool make_parts(struct shared_report *s)
{
    char done;
    for (uint32_t i = 0; i < s->count; i++)
        if ((s->files[i] = file_unnamed()) < 0)
            return false;
    if (!workers_start(&s->workers, s->count, shared_report_work, s))
        return false;
    bool are_there = true;
    for (uint32_t i = 0; are_there && i < s->count; i++)
        are_there = workers_read(&s->workers, i, &done, 1);
    return are_there;
}

static enum exit_code read_made(void *context, uint32_t index, struct part *part)
{
    const struct shared_report *s = context;
    int error;
    const char *wrong = part_open(part, s->files[index], 0, PART_BYTES_MAX, &error);
    part->path = "a part of a share";
    return wrong || error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
}

/* Combines the parts if they have everything but findings about memory, and leaves out tables of
 * the host that were not asked for. Returns false after releasing the combination. */
static bool shared_report_add_up(struct combination *c, uint32_t count, combination_part_fn *read,
                                 void *context, const struct recording *rec,
                                 const struct report_view *view)
{
    bool is_made = combination_make(c, count, read, context, true, view->groups) == EXIT_OK &&
                   !(c->report.missing & report_needs(view) & ~PART_MEMORY) && !c->has_more;
    if (is_made)
        analyses_leave(c->report.sums, report_leaves(view, rec) & REPORT_HOST);
    else
        combination_release(c);
    return is_made;
}

/* Makes the report with workers. `key`: store it; NULL: do not. */
static bool make_shared(struct combination *c, struct recording *rec, const struct options *options,
                        const struct report_view *view, const struct kept_key *key)
{
    struct shared_report *s = memory_new(1, sizeof *s);
    *s =
        (struct shared_report){.options = options,
                               .count = rec->workers ? rec->workers : 1,
                               .leaves = key ? report_parts_missing(rec) : report_leaves(view, rec),
                               .leaves_hangs = !key && report_leaves_hangs(view),
                               .progress = rec->progress,
                               .refused = report_needs(view)};
    for (uint32_t i = 0; i < s->count; i++)
        s->files[i] = -1;
    bool is_made = make_parts(s) && shared_report_add_up(c, s->count, read_made, s, rec, view);
    workers_end(&s->workers, WORKERS_UNWANTED); /* they free their memory meanwhile */
    progress_clear(s->progress);
    if (is_made && c->report.missing & s->refused &&
        !look_at_memory(&c->report, rec, options->symbols)) {
        combination_release(c);
        is_made = false;
    }
    if (is_made && key)
        report_cache_write(options->paths[0], key, c);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->files[i] >= 0)
            close(s->files[i]);
    free(s);
    return is_made;
}

/* Makes the report from what an earlier one stored with that key. */
static bool read_kept(struct combination *c, struct recording *rec, const struct options *options,
                      const struct report_view *view, const struct kept_key *key)
{
    struct report_cache k;
    bool is_made = report_cache_read(&k, options->paths[0], key) &&
                   shared_report_add_up(c, k.count, report_cache_part, &k, rec, view);
    if (is_made && c->report.missing & report_needs(view)) {
        is_made = c->report.peaks.ooms /* the overview has more than findings */
                      ? look_at_memory(&c->report, rec, options->symbols)
                      : report_cache_memory(&k, c) == 0;
        if (!is_made)
            combination_release(c);
    }
    report_cache_release(&k);
    return is_made;
}

bool shared_report_make(struct combination *c, struct recording *rec, const struct options *options,
                        const struct report_view *view)
{
    struct kept_key key;
    kept_key_make(&key, rec, options);
    bool may_be = may_be_in_parts(rec, options, view), may_keep = key.is_made && !options->symbols;
    if (may_be && may_keep && read_kept(c, rec, options, view, &key))
        return true;
    /* A large recording gets a worker per processor, because somebody waits at a terminal. A worker
     * takes some 25 MiB. */
    if (rec->progress && !options->jobs && kept_is_worth_it(rec)) {
        uint32_t most = parallel_processors(0);
        most = most < WORKERS_UNASKED ? most : WORKERS_UNASKED;
        rec->workers = most < rec->count ? most : rec->count;
    }
    /* What is stored must serve every later question. */
    bool keeps = may_keep && !view->tables;
    return may_be && (rec->workers >= 2 || keeps) &&
           make_shared(c, rec, options, view, keeps ? &key : NULL);
}
