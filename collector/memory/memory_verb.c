/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `memory`: the owners of device memory, and of pinned host memory. */
#include "memory/memory_report.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/next_words.h"
#include "base/text.h"
#include "output/output.h"
#include "rank.h"
#include "read/process.h"
#include "resolve/selection.h"
#include "table/screen.h"

#define SCREEN_ROWS   5 /* of a table, by default */
#define PLACES_SHOWN  4
#define OWNERS_SHOWN  3
#define HOLDERS_SHOWN 2 /* the largest holders when memory ran out */
#define LOSS_BYTES    1000

static bool is_wanted(const struct memory_options *own, const struct table_info *info,
                      enum report_format format)
{
    if (own->table.names)
        return word_in(own->table.names, info->name) != UINT_MAX;
    return format != FORMAT_TEXT || own->table.is_full || info->place != PLACE_ASKED;
}

static const struct table_info *table_at(unsigned index)
{
    return index < MEMORY_TABLES ? memory_tables[index] : NULL;
}

/* EXIT_OK, or EXIT_USAGE after one line: an unknown table or column, or no table for a
 * selection. */
static enum exit_code check_tables(const struct options *options, enum report_format format)
{
    const struct memory_options *own = options->own;
    const char *names = own->table.names;
    const struct table_info *infos[MEMORY_TABLES];
    unsigned words = names != NULL, count = 0;
    for (const char *comma = names; comma && (comma = strchr(comma, ',')); comma++)
        words++;
    for (unsigned i = 0; i < MEMORY_TABLES; i++) {
        const char *name = memory_tables[i]->name;
        if (!is_wanted(own, memory_tables[i], format))
            continue;
        if (options->select.is_given && word_in("places,owners,curve", name) == UINT_MAX)
            return usage_error("memory: --from and --to: the table %s always covers the whole "
                               "recording; name only places, owners and curve",
                               name);
        infos[count++] = memory_tables[i];
    }
    if (names && count < words)
        return usage_error("memory: unknown table in '%s'; 'gpuprof help memory' lists the tables",
                           names);
    return table_sort_check("memory", own->table.sort, infos, count);
}

/* ---- the first screen ------------------------------------------------------------------------ */

/* The owner, with its process if there are several: "rank 3: linear", "2 processes: linear"; new
 * text. */
static char *held_text(const struct memory_report *m, const struct memory_row *row)
{
    char who[RANK_TITLE_BYTES], *owner = memory_owner_text(m, row->origin);
    if (m->rec->count == 1)
        return owner;
    char *text = row->processes == 1 ? text_printf("%s: %s", process_who(row->process, who), owner)
                                     : text_printf("%u processes: %s", row->processes, owner);
    free(owner);
    return text;
}

void memory_print_failure(const struct memory_report *m, const struct next_words *next,
                          struct screen *s)
{
    char wanted[UNIT_TEXT_BYTES], held[UNIT_TEXT_BYTES], of[UNIT_TEXT_BYTES + 8] = "";
    char live[UNIT_TEXT_BYTES];
    const struct memory_oom *oom = &m->ooms.list[m->ooms.count - 1];
    struct memory_advice advice = memory_advise(m, oom);
    bytes_text(wanted, oom->wanted);
    if (oom->total)
        snprintf(of, sizeof of, " of %s", bytes_text(held, oom->total));
    screen_line_freed(s, "no memory", memory_owner_text(m, oom->origin),
                      "%s wanted, %s%s held%s, at ", wanted, bytes_text(live, oom->live), of,
                      oom->where == MEMORY_OF_TENSORS ? " by tensors" : "");
    for (uint32_t i = 0; !s->is_short && i < oom->owner_count && i < HOLDERS_SHOWN; i++)
        screen_line_freed(s, i ? "" : "held by", memory_owner_text(m, oom->owners[i].origin),
                          "%10s  ", bytes_text(held, oom->owners[i].live.bytes));
    char *text = next_line(next, advice.text);
    screen_wrapped(s, "try", text);
    free(text);
    free(advice.text);
}

static bool has_larger_peak(const void *one, const void *other)
{
    const struct memory_place *const *a = one, *const *b = other;
    return (*a)->peak.bytes > (*b)->peak.bytes;
}

static void print_places(struct screen *s, const struct memory_report *m)
{
    char peak[UNIT_TEXT_BYTES], end[UNIT_TEXT_BYTES];
    const struct memory_place *places[PLACES_SHOWN];
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->places.count; i++) {
        const struct memory_place *p = &m->places.list[i];
        ARRAY_KEEP(places, count, PLACES_SHOWN, &p, has_larger_peak);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct memory_place *p = places[i];
        char share[32] = "", who[RANK_TITLE_BYTES], after[RANK_TITLE_BYTES + 4] = "";
        if (p->total)
            snprintf(share, sizeof share, " (%.0f%% of the device)",
                     100.0 * (double)p->peak.bytes / (double)p->total);
        if (m->rec->count > 1)
            snprintf(after, sizeof after, " of %s", process_who(p->process, who));
        char *name = memory_place_text(p->device, p->where, after);
        screen_line(s, i ? "" : "peak", NULL, "%10s: %s%s; %s at the end",
                    bytes_text(peak, p->peak.bytes), name, share,
                    bytes_text(end, p->all.live.bytes));
        free(name);
    }
    if (m->places.count > count)
        screen_line(s, "", NULL, "... and %u more: --table=places", m->places.count - count);
    if (!count)
        screen_line(s, "peak", NULL, "no allocation was read");
}

/* Prints the owners of PyTorch's tensors if any, else of devices, else of the host. */
static void print_owners(struct screen *s, const struct memory_report *m)
{
    static const char *const labels[] = {
        [MEMORY_AT_PEAK] = "held by", [MEMORY_AT_END] = "left by", [MEMORY_AT_TIME] = "held then"};
    char bytes[UNIT_TEXT_BYTES];
    for (uint32_t i = 0; i < m->rows.count && i < OWNERS_SHOWN; i++) {
        const struct memory_row *row = &m->rows.list[i];
        uint64_t held = row->shown.bytes, all = m->rows.shown[row->where];
        if (row->where != m->rows.list[0].where || !held)
            break;
        screen_line_freed(s, i ? "" : labels[m->at], held_text(m, row), "%10s %5.1f%%  ",
                          bytes_text(bytes, held), 100.0 * (double)held / (double)all);
    }
}

static void print_leaks(struct screen *s, const struct memory_report *m)
{
    char grown[UNIT_TEXT_BYTES], step[UNIT_TEXT_BYTES];
    uint32_t leaks = 0;
    for (uint32_t i = 0; i < m->rows.count; i++) {
        const struct memory_row *row = &m->rows.list[i];
        double slope = row->slope > 0 && row->slope < 1e18 ? row->slope : 0;
        if (row->leaks && leaks++ < OWNERS_SHOWN)
            screen_line_freed(s, leaks == 1 ? "grows" : "", held_text(m, row),
                              "%10s, %s a step: ", bytes_text(grown, row->grown),
                              bytes_text(step, (uint64_t)(slope + 0.5)));
    }
    if (leaks > OWNERS_SHOWN)
        screen_line(s, "", NULL, "... and %u more: --table=leaks", leaks - OWNERS_SHOWN);
}

/* Prints the most memory of a device outside the books. */
static void print_hidden(struct screen *s, const struct memory_report *m)
{
    char bytes[UNIT_TEXT_BYTES], others[UNIT_TEXT_BYTES + 32] = "";
    const struct memory_jump *most = NULL;
    for (uint32_t i = 0; i < m->jumps.count; i++)
        if (!most || m->jumps.list[i].hidden > most->hidden)
            most = &m->jumps.list[i];
    if (most && most->others != MEMORY_UNKNOWN && most->others)
        snprintf(others, sizeof others, ", including %s of other processes",
                 bytes_text(bytes, most->others));
    if (most && most->hidden)
        screen_line(s, "hidden", NULL,
                    "%s of device %u used beyond its allocations%s: --table=hidden",
                    bytes_text(bytes, most->hidden), most->device, others);
}

static void print_screen(const struct memory_report *m, const struct table_view *how, FILE *out)
{
    struct screen s = {.out = out, .width = how->width, .has_colour = how->has_colour};
    char time[UNIT_TEXT_BYTES], host[UNIT_TEXT_BYTES], lost[LOSS_BYTES];
    struct losses losses = {0};
    uint64_t resident = 0;
    for (uint32_t i = 0; i < m->rec->count; i++) {
        resident = max_of(resident, m->processes[i].resident.peak);
        losses_add(&losses, &m->walk.losses[i]);
    }
    screen_line(
        &s, "memory", NULL, "of %u process%s, recorded for %s%s%s%s", m->rec->count,
        m->rec->count == 1 ? "" : "es", time_text(time, m->times.end_ns - m->times.begin_ns),
        resident ? "; resident (RSS) at most " : "", resident ? bytes_text(host, resident) : "",
        resident && m->rec->count > 1 ? " in one process" : "");
    /* Without records of allocations and releases the books are wrong. */
    if (losses_weight(&losses) != LOSS_NONE)
        screen_line(&s, "lost", NULL, "%s", losses_text(&losses, lost, sizeof lost));
    if (m->ooms.count)
        memory_print_failure(m, NULL, &s);
    print_places(&s, m);
    print_owners(&s, m);
    print_leaks(&s, m);
    print_hidden(&s, m);
}

/* ---- around the tables ----------------------------------------------------------------------- */

/* What the books may lack; `at` leads to a number of the report. */
static const struct {
    size_t at;
    const char *key;
    const char *text;
} doubts[] = {
    {offsetof(struct memory_report, ledger.doubts.replaced), "replaced",
     "blocks whose release was not recorded"},
    {offsetof(struct memory_report, ledger.doubts.strays), "strays",
     "releases of blocks whose allocation was not recorded"},
    {offsetof(struct memory_report, ledger.doubts.beyond), "beyond",
     "blocks that were too many to follow, left out of all sums"},
    {offsetof(struct memory_report, ledger.doubts.in_graphs), "in_graphs",
     "allocations by graph launches, left out of all sums"},
    {offsetof(struct memory_report, ledger.doubts.sampled), "sampled",
     "calls that stand for unrecorded ones, which are left out of all sums"},
    {offsetof(struct memory_report, ranges.beyond), "ranges_beyond",
     "ranges that were too many to follow"},
    {offsetof(struct memory_report, ooms.beyond), "more_out_of_memory", "more failed allocations"},
};

/* Prints them as notes, or as members of JSON. */
static void print_doubts(const struct memory_report *m, bool is_json, FILE *out)
{
    char text[UNIT_TEXT_BYTES];
    for (unsigned i = 0, shown = 0; i < sizeof doubts / sizeof doubts[0]; i++) {
        uint64_t count = *(const uint64_t *)((const char *)m + doubts[i].at);
        if (count && is_json)
            fprintf(out, "%s\"%s\": %" PRIu64, shown++ ? ", " : "", doubts[i].key, count);
        else if (count)
            fprintf(out, "%s  %12s  %s\n", shown++ ? "" : "\nnotes\n", count_text(text, count),
                    doubts[i].text);
    }
}

static void print_json_head(const struct memory_report *m, FILE *out)
{
    static const char *const by[] = {
        [MEMORY_BY_LINE] = "python-line",  [MEMORY_BY_STACK] = "stack",
        [MEMORY_BY_OPERATOR] = "operator", [MEMORY_BY_FUNCTION] = "function",
        [MEMORY_BY_KIND] = "kind",         [MEMORY_BY_LIBRARY] = "library"};
    static const char *const at[] = {
        [MEMORY_AT_PEAK] = "peak", [MEMORY_AT_END] = "end", [MEMORY_AT_TIME] = "time"};
    fprintf(out, "{\n\"processes\": %u,\n\"wall_ns\": %" PRIu64 ",\n", m->rec->count,
            m->times.end_ns - m->times.begin_ns);
    fprintf(out, "\"by\": \"%s\",\n\"at\": \"%s\",\n\"steps_by\": \"%s\",\n", by[m->by], at[m->at],
            step_kinds[m->steps.count ? m->steps.kind : STEPS_NONE].word);
    fputs("\"doubts\": {", out);
    print_doubts(m, true, out);
    fputs("}", out);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static enum exit_code write_out(const struct memory_report *m, const struct options *options,
                                enum report_format format)
{
    const struct memory_options *own = options->own;
    struct table_view view = table_view_of(&own->table, options->output, SCREEN_ROWS);
    struct output out;
    uint64_t room = verb_output_room(recording_bytes(m->rec));
    struct table tables[MEMORY_TABLES];
    unsigned count = 0;
    for (unsigned i = 0; i < MEMORY_TABLES; i++)
        if (is_wanted(own, memory_tables[i], format))
            tables[count++] = (struct table){.info = memory_tables[i], .source = m};
    if (format == FORMAT_CSV)
        return tables_write_csv(tables, count, &view, options->output, &room);
    enum exit_code code = verb_output_open(&out, options->output, &room);
    if (code != EXIT_OK)
        return code;
    bool is_json = format == FORMAT_JSON;
    if (is_json)
        print_json_head(m, out.stream);
    else if (!own->table.names)
        print_screen(m, &view, out.stream);
    for (unsigned i = 0; i < count; i++) {
        struct table_view how = view;
        if (strcmp(tables[i].info->name, "leaks") == 0)
            how.rows = 0; /* all rows: each is a failure of its own */
        (is_json ? table_print_json : table_print_text)(&tables[i], &how, out.stream);
    }
    if (is_json)
        fputs("\n}\n", out.stream);
    else
        print_doubts(m, false, out.stream);
    return verb_output_close(&out, options->output, 0);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

/* "x.pickle" becomes "x_rank3.pickle", or with the pid if other processes have that rank; new
 * text. Of one process, it stays. */
static char *snapshot_path(const struct memory_report *m, const struct process *p, const char *path,
                           uint32_t count)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *ending = strchr(name + 1, '.');
    int stem = (int)(ending ? ending - path : (long)strlen(path));
    uint32_t alike = 0;
    for (uint32_t i = 0; i < m->process_count; i++)
        alike += m->processes[i].gets_memory && m->processes[i].process->rank == p->rank;
    bool has_rank = p->rank != RANK_NONE && alike == 1;
    return count == 1
               ? memory_text(path)
               : text_printf("%.*s_%s%llu%s", stem, path, has_rank ? "rank" : "pid",
                             has_rank ? (unsigned long long)p->rank : p->shown_pid, path + stem);
}

/* Writes a file for each process that allocated. */
static enum exit_code write_snapshots(struct memory_report *m, const char *output)
{
    uint32_t count = 0;
    enum exit_code code = EXIT_OK;
    for (uint32_t i = 0; i < m->process_count; i++)
        count += m->processes[i].gets_memory;
    if (!count)
        message("memory: no allocation was recorded, so %s is not written", output);
    for (uint32_t i = 0; code == EXIT_OK && i < m->process_count; i++) {
        struct output out;
        uint64_t room = verb_output_room(recording_bytes(m->rec));
        if (!m->processes[i].gets_memory)
            continue;
        char *path = snapshot_path(m, m->processes[i].process, output, count);
        code = verb_output_open(&out, path, &room);
        if (code == EXIT_OK)
            code = verb_output_close(&out, path, snapshot_write(m, m->processes[i].process, &out));
        free(path);
    }
    return count ? code : EXIT_ENVIRONMENT;
}

/* Checks the options of a snapshot, which has no tables. */
static enum exit_code check_snapshot(const struct options *options)
{
    const struct memory_options *own = options->own;
    if (own->table.format != FORMAT_BY_NAME ||
        (!verb_output_is(options->output, "pickle") && !verb_output_is(options->output, "pkl")))
        return usage_error("memory: %s: unknown file type; name it .txt, .csv, .json, .html or "
                           ".pickle, or give --format",
                           options->output);
    if (own->table.names || own->table.sort || own->table.limit != ROWS_UNLIMITED ||
        own->table.is_full || own->by != MEMORY_BY_BEST)
        return usage_error("memory: %s: a snapshot has no tables; leave out --table, --sort, "
                           "--limit, --full and --by",
                           options->output);
    return EXIT_OK;
}

/* Checks that the requested moment lies in the recording, if it has events and a known end. */
static enum exit_code check_moment(const struct memory_report *m)
{
    uint64_t origin_ns = m->walk.survey.origin_ns;
    char whole[UNIT_TEXT_BYTES], asked[UNIT_TEXT_BYTES];
    if (m->times.asked_ns == UINT64_MAX || m->times.asked_ns <= m->times.end_ns ||
        m->times.end_ns <= origin_ns)
        return EXIT_OK;
    return usage_error(
        "memory: --at: nothing was recorded %s after the first event; the last event is at %s",
        time_text(asked, m->times.asked_ns - origin_ns),
        time_text(whole, m->times.end_ns - origin_ns));
}

static enum exit_code memory_recording(struct recording *rec, const struct options *options,
                                       enum report_format format)
{
    const struct memory_options *own = options->own;
    struct selection selected;
    enum exit_code code = selection_make(&selected, rec, NULL, &options->select, NULL, "memory");
    bool has_tables = format != FORMAT_BY_NAME;
    const struct memory_request request = {.by = has_tables ? own->by : MEMORY_BY_STACK,
                                           .at = own->at,
                                           .at_seconds = own->at_seconds,
                                           .step_by = options->step_by,
                                           .step_pattern = options->step_range,
                                           .from_ns = selected.from_ns,
                                           .to_ns = selected.to_ns,
                                           .learns_only = !has_tables};
    int error;
    selection_release(&selected);
    if (code != EXIT_OK)
        return code;
    struct memory_report *m = memory_report_create(rec, &request, options->symbols, &error);
    if (!m)
        return EXIT_ENVIRONMENT;
    code = steps_check(&m->steps, "memory");
    if (code == EXIT_OK)
        code = check_moment(m);
    if (code == EXIT_OK)
        code = has_tables ? write_out(m, options, format) : write_snapshots(m, options->output);
    if (code == EXIT_OK)
        code = walk_verdict(&m->walk, options->strict);
    memory_report_free(m);
    return code;
}

enum exit_code memory_run(const struct options *options)
{
    const struct memory_options *own = options->own;
    struct recording rec;
    struct recording_options how = {
        .keep_live = options->keep_live, .processors = options->jobs, .select = &options->select};
    enum report_format format = verb_output_format(own->table.format, options->output);
    bool has_tables = format != FORMAT_BY_NAME;
    enum exit_code code = has_tables ? EXIT_OK : check_snapshot(options);
    if (code == EXIT_OK && options->select.is_given &&
        (!has_tables || !own->table.names || own->at == MEMORY_AT_TIME))
        code = usage_error("memory: --from and --to need a page (-o page.html) or "
                           "--table=places,owners,curve; for one moment use --at=TIME alone");
    if (code == EXIT_OK)
        code = table_output_check("memory", format, options->output);
    if (code == EXIT_OK && has_tables)
        code = check_tables(options, format);
    if (code != EXIT_OK)
        return code;
    code = recording_open(&rec, options->paths, options->path_count, &how);
    rec.progress = progress_begin("memory", 2 * recording_bytes(&rec));
    if (code == EXIT_OK)
        code = memory_recording(&rec, options, format);
    recording_release(&rec);
    return code;
}

static enum exit_code take_at(const struct given *g)
{
    struct memory_options *own = g->at;
    bool is_end = strcmp(g->value, "end") == 0;
    own->at_seconds = -1;
    own->at = is_end ? MEMORY_AT_END : MEMORY_AT_PEAK;
    if (is_end || strcmp(g->value, "peak") == 0)
        return EXIT_OK;
    own->at = MEMORY_AT_TIME;
    return option_end(g, seconds_parse(g->value, &own->at_seconds),
                      "is neither peak nor end nor a number of seconds, or 500ms");
}

const struct option memory_options[] = {
    {'o', "output", "FILE", OPTION_OUTPUT,
     "Write the tables to this file, compressed if it ends in .gz, or as csv into a folder, DIR/. "
     ".html: the page of 'gpuprof report'; .pickle: a PyTorch snapshot of each process. Default: "
     "standard output.",
     .in = HELP_OUTPUT},
    {0, "format", "text|json|csv", OPTION_OWN(option_choice, struct memory_options, table.format),
     "Write the tables in this format; default: by the end of the file's name: .json, .csv or "
     "DIR/, or else text",
     .in = HELP_OUTPUT},
    {0, "by", "python-line|stack|operator|function|kind|library",
     OPTION_OWN(option_choice, struct memory_options, by),
     "Group memory by the innermost Python line, the stack or the operator that allocated it, the "
     "function called, the kind of memory, or the library. Default: the first of python-line, "
     "stack, operator and function that was recorded.",
     .in = HELP_SHOW},
    {0, "at", "peak|end|SECONDS", .take = take_at, .at = 0,
     "Show the owners at this time: each device's peak, the end, or SECONDS after the first event; "
     "-o x.pickle writes that snapshot; default: peak",
     .in = HELP_SHOW},
    {0, "table", "NAME[,NAME..]", OPTION_OWN(option_once, struct memory_options, table.names),
     "Show only these tables, by the names listed below, which JSON uses too", .table_at = table_at,
     .in = HELP_SHOW},
    {OPTIONS_OF(table_options, 0), .at = offsetof(struct memory_options, table)},
    {OPTIONS_OF(read_options, READ_JOBS | READ_TIME | READ_PROCESSES | READ_STEPS | READ_SYMBOLS |
                                  READ_STRICT | READ_KEEP_LIVE)},
    {0},
};
