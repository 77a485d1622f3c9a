/* SPDX-License-Identifier: Apache-2.0 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "table/screen.h"

#define ESCAPED "\\u003c"

/* ---- data ------------------------------------------------------------------------------------ */

static ssize_t filter(void *cookie, const char *bytes, size_t length)
{
    struct page_data *d = cookie;
    for (size_t i = 0; i < length; i++)
        if (bytes[i] == '<')
            d->written += fwrite(ESCAPED, 1, sizeof ESCAPED - 1, d->out);
        else
            d->written += fwrite(&bytes[i], 1, 1, d->out);
    return ferror(d->out) ? 0 : (ssize_t)length;
}

void page_put_text(const char *text, FILE *out)
{
    size_t length = text ? strlen(text) : 0;
    char *cut = length > PAGE_TEXT_BYTES ? text_cut(text, length, PAGE_TEXT_BYTES) : NULL;
    json_printf(out, "%s", cut ? cut : text);
    free(cut);
}

void page_printf(struct page_data *d, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    json_vprintf(d->stream, page_put_text, format, list);
    va_end(list);
}

void page_put_owned(struct page_data *d, const char *before, char *text)
{
    fputs(before, d->stream);
    page_put_text(text, d->stream);
    free(text);
}

uint64_t page_data_written(struct page_data *d)
{
    fflush(d->stream);
    return d->written;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static void page_start(struct page *p, const struct options *options)
{
    const struct report *r = p->report;
    uint64_t begin_ns = r->time.is_selection ? r->time.wall_begin_ns : r->walk.survey.origin_ns;
    uint64_t end_ns = r->time.is_selection ? r->time.wall_end_ns : r->total.end_ns;
    for (uint32_t i = 0; r->idle && i < r->idle->device_count; i++)
        end_ns = max_of(end_ns, r->idle->devices[i].end_ns);
    p->name = options->paths[0];
    page_use_init(&p->use, &p->report->walk, r->idle, begin_ns, end_ns,
                  r->steps ? step_report_quantile(r->steps, 0.5) : 0);
    page_steps_init(&p->steps, r);
    if (!recording_any(r->rec, process_has_stacks))
        return;
    p->flame.is_there = true;
    stack_costs_init(&p->flame.costs, &p->report->walk);
    p->flame.costs.split_work = p->flame.costs.has_samples = p->flame.costs.has_waits = true;
}

/* Gathers the data without changing the losses, which an earlier walk has found. */
static int page_gather(struct page *p)
{
    struct walk *walk = &p->report->walk;
    struct consumer consumers[3] = {page_use_consumer(&p->use)};
    unsigned count = 1;
    struct losses *losses = walk->losses;
    if (p->steps.detail_count)
        consumers[count++] = page_steps_consumer(&p->steps);
    if (p->flame.is_there)
        consumers[count++] = stack_costs_consumer(&p->flame.costs);
    walk->losses = memory_new(walk->rec->count + 1u, sizeof *losses);
    int error = walk_run(walk, NULL, consumers, count);
    free(walk->losses);
    walk->losses = losses;
    return error;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int page_put_data(const struct page *p, FILE *out)
{
    struct page_data d = {.out = out};
    d.stream = memory_from(fopencookie(&d, "w", (cookie_io_functions_t){.write = filter}));
    page_printf(&d, "{\"name\": %s, \"sections\": [", p->name);
    for (const struct page_section *s = p->sections; s->id; s++)
        page_printf(&d, s == p->sections ? "[%s, %s]" : ", [%s, %s]", s->id, s->title);
    fputs("]", d.stream);
    for (const struct page_section *s = p->sections; !d.error && s->id; s++)
        if (s->put) {
            page_printf(&d, ",\n%s: ", s->id);
            s->put(p, &d);
        }
    fputs("}\n", d.stream);
    fclose(d.stream);
    return d.error;
}

/* Its policy allows only its own style and script, whose hashes the Makefile makes. */
static int page_put(const struct page *p, FILE *out)
{
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
            "'sha256-" STYLE_HASH "'; script-src 'sha256-%s'; base-uri 'none'; form-action "
            "'none'\">\n<style>%s</style>\n%s<script type=\"application/json\" id=\"data\">\n",
            p->comparison ? COMPARE_HASH : SCRIPT_HASH, page_style, page_head);
    int error = page_put_data(p, out);
    fprintf(out, "</script>\n<script>%s", page_script);
    for (const struct page_section *s = p->sections; s->id; s++)
        fputs(s->script, out);
    fputs("</script>\n</body>\n</html>\n", out);
    return error;
}

int page_write(struct report *r, const struct report_view *v, const struct options *options,
               FILE *out)
{
    struct page p = {.sections = page_sections,
                     .report = r,
                     .view = v,
                     .symbols = options->symbols,
                     .memory = {.by = MEMORY_BY_BEST,
                                .selected = r->walk.filter,
                                .at_seconds = -1,
                                .step_by = options->step_by,
                                .step_pattern = options->step_range}};
    page_start(&p, options);
    int error = page_gather(&p);
    if (error == 0 && p.flame.is_there) {
        stack_costs_finish(&p.flame.costs, options->symbols);
        stack_costs_show_stackless(&p.flame.costs);
    }
    if (error == 0 && (error = page_put(&p, out)) < 0) /* a walk prints its own errors */
        say_error("report", error);
    page_use_release(&p.use);
    page_steps_release(&p.steps);
    if (p.flame.is_there)
        stack_costs_release(&p.flame.costs);
    return error;
}

/* ---- a comparison: draws the output of `gpuprof diff --format=json` -------------------------- */

static void put_comparison(const struct page *p, struct page_data *d)
{
    diff_print_json(p->comparison, p->kernels, d->stream);
}

void page_write_comparison(const struct comparison *c, const struct kernel_match *kernels,
                           FILE *out)
{
    /* Names the first run of each side. */
    char *name = memory_from(
        text_printf("%s against %s", c->sides[0]->runs[0].name, c->sides[1]->runs[0].name));
    const struct page_section sections[] = {
        {"compare", "Did it get worse?", section_compare, put_comparison}, {0}};
    const struct page p = {.sections = sections, .name = name, .comparison = c, .kernels = kernels};
    page_put(&p, out);
    free(name);
}

/* ---- the verbs `report`, `memory` and `diff`, which can also write a page ---- */

static bool is_page(const struct table_options *table, const char *output)
{
    return table->format == FORMAT_HTML ||
           (table->format == FORMAT_BY_NAME &&
            (verb_output_is(output, "html") || verb_output_is(output, "htm")));
}

/* Returns whether an option restricts tables: sections of a page need all rows. */
static bool wants_some(const struct table_options *table)
{
    return table->names || table->sort || table->limit != ROWS_UNLIMITED;
}

static enum exit_code report(const struct options *options)
{
    const struct report_options *own = options->own;
    if (is_page(&own->table, options->output) && wants_some(&own->table))
        return usage_error("report: a page has all tables, and sorts and filters them itself; "
                           "leave out --table, --sort and --limit");
    return report_run(options, page_write);
}

static enum exit_code memory(const struct options *options)
{
    const struct memory_options *own = options->own;
    const struct report_options of_page = {.table = own->table};
    struct options of_report = *options;
    if (!is_page(&own->table, options->output))
        return memory_run(options);
    if (wants_some(&own->table) || own->table.is_full || own->at != MEMORY_AT_PEAK ||
        own->by != MEMORY_BY_BEST)
        return usage_error("memory: %s: a page has all tables, and sorts and filters them itself; "
                           "leave out --table, --sort, --limit, --full, --by and --at",
                           options->output);
    of_report.own = &of_page;
    return report_run(&of_report, page_write);
}

static enum exit_code diff(const struct options *options)
{
    return diff_run(options, page_write_comparison);
}

VERB_IS(report, report, report_options,
        VERB_OWN(struct report_options, .table = TABLE_OPTIONS_USUAL),
        TAKES_RECORDINGS | TAKES_PARTS, "DIR|FILE...",
        "show where the time went, what to change first, and tables",
        {PART_EXAMPLE, "gpuprof report data",
         "show where the time went, then the most important tables"},
        {PART_EXAMPLE, "gpuprof report data --table=cuda_gpu_kern_sum --sort=max --limit=10",
         "show the ten kernels with the slowest single launch"},
        {PART_EXAMPLE, "gpuprof report data --by=python-line",
         "show the Python lines that made the slow calls"},
        {PART_EXAMPLE, "gpuprof report data -o page.html", "write a page for a browser"});

VERB_IS(memory, memory, memory_options, VERB_OWN(struct memory_options, MEMORY_OPTIONS_USUAL),
        TAKES_RECORDINGS, "DIR|FILE...", "show who held device memory, and what grows",
        {PART_EXAMPLE, "gpuprof memory data --by=python-line",
         "show the Python lines that held memory at each device's peak"},
        {PART_EXAMPLE, "gpuprof memory data -o memory.html",
         "write a page with memory over time and its owners at the peak"},
        {PART_EXAMPLE, "gpuprof memory data -o snapshot.pickle",
         "write a snapshot for pytorch.org/memory_viz"},
        {PART_EXAMPLE, "gpuprof memory data --at=end --table=owners",
         "show memory that was never released"});

VERB_IS(diff, diff, diff_options, VERB_OWN(struct diff_options, DIFF_OPTIONS_USUAL),
        TAKES_RECORDINGS | TAKES_PARTS, "NEW... --against OLD...",
        "compare runs, and fail if they became slower or use more",
        {PART_EXAMPLE, "gpuprof diff new? --against old? --gate=3%",
         "compare recordings; exit with status 1 if the new ones are worse by 3 %"},
        {PART_EXAMPLE, "gpuprof diff new? --against main -o diff.txt -o diff.xml -o diff.json",
         "compare with the baseline 'main', and write a text, a JUnit file and JSON"},
        {PART_EXAMPLE, "gpuprof diff --save main run?",
         "save runs as the baseline 'main', in .gpuprof/baselines/main.json"},
        {PART_VARIABLE, "GITHUB_SHA, CI_COMMIT_SHA, GIT_COMMIT",
         "the commit to save with a baseline"},
        {PART_STATUS, "0",
         "no regression found, and one of the gate's size would have been; or --inconclusive=pass"},
        {PART_STATUS, "1", "a regression"},
        {PART_STATUS, "2", "a wrong option, nothing to read, or input or output failed"},
        {PART_STATUS, "3",
         "inconclusive: too few runs, too much noise; or not comparable: other machines, losses"});
