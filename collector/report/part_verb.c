/* SPDX-License-Identifier: Apache-2.0 */
#include "report/part_verb.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/message.h"
#include "base/unit_text.h"
#include "error.h"
#include "output/verb_output.h"
#include "report/part_report.h"
#include "report/report_options.h"
#include "report/report_tables.h"
#include "resolve/symbols.h"

/* Variables in which job launchers number their processes, the most reliable first (rank.h). */
static const struct {
    const char *index, *count;
} launchers[] = {{"RANK", "WORLD_SIZE"},
                 {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                 {"PMI_RANK", "PMI_SIZE"},
                 {"HOROVOD_RANK", "HOROVOD_SIZE"},
                 {"SLURM_PROCID", "SLURM_NTASKS"},
                 {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

/* Returns the first option that a part cannot apply, without "--"; NULL: none. */
static const char *chosen_option(const struct options *all, const struct report_options *o)
{
    for (unsigned i = 0; i < SELECT_OPTIONS; i++)
        if (all->select.said[i])
            return select_option_name(i);
    return o->by != BY_NAME             ? "by"
           : o->is_mine                 ? "mine"
           : o->source                  ? "source"
           : o->groups == GROUPS_ALWAYS ? "group"
           : all->step_range            ? "step-range"
           : all->step_by               ? "step-by"
           : o->step_samples > 0        ? "samples-per-step"
                                        : NULL;
}

static const char *shown_option(const struct report_options *o)
{
    return o->table.format != FORMAT_BY_NAME  ? "format"
           : o->groups == GROUPS_NEVER        ? "no-group"
           : o->table.names                   ? "table"
           : o->table.sort                    ? "sort"
           : o->table.limit != ROWS_UNLIMITED ? "limit"
           : o->table.is_full                 ? "full"
                                              : NULL;
}

enum exit_code part_verb_check(const struct options *all, const struct report_view *view,
                               enum report_format format)
{
    const struct report_options *o = all->own;
    const char *chosen = chosen_option(all, o), *shown = shown_option(o);
    if (o->is_partial && o->is_combined)
        return usage_error("report: --partial and --combine cannot be combined: the first makes a "
                           "part, the second reads all parts");
    if (o->share && !o->is_partial)
        return usage_error("report: --share needs --partial");
    if (chosen)
        return usage_error("report: --%s cannot be combined with --%s, which covers everything "
                           "recorded; leave it out, or run it on the recordings",
                           chosen, o->is_partial ? "partial" : "combine");
    if (o->is_partial && shown)
        return usage_error("report: --%s cannot be combined with --partial, which writes all "
                           "tables; give it with --combine",
                           shown);
    if (o->is_partial && !all->output)
        return usage_error("report: --partial needs a file for the part; name it with -o");
    struct stat status;
    size_t length = o->is_partial ? strlen(all->output) : 0;
    if (o->is_partial && (all->output[length - 1] == '/' ||
                          (stat(all->output, &status) == 0 && S_ISDIR(status.st_mode))))
        return usage_error("report: --partial: %s: not a file; name a file in an existing folder",
                           all->output);
    if (o->is_partial)
        return verb_output_is(all->output, "gz") || strstr(all->output, ".gz") ||
                       strstr(all->output, ".zst")
                   ? usage_error(
                         "report: %s: parts cannot be compressed; name a file without .gz or .zst",
                         all->output)
                   : EXIT_OK;
    if (format == FORMAT_HTML)
        return usage_error("report: parts cannot make a page; use --format=text, json or csv, or "
                           "run it on the recordings");
    static const struct report nothing;
    struct table tables[REPORT_TABLES_MAX];
    unsigned count = report_tables(&nothing, tables);
    for (unsigned i = 0; i < count; i++)
        if (report_names(view, tables[i].info, 1) && !part_report_has(tables[i].info))
            return usage_error("report: the table %s is not in parts, since it needs all events at "
                               "once; run 'gpuprof report' on the recordings",
                               tables[i].info->name);
    return EXIT_OK;
}

/* Reads a number of at most SHARES_MAX + 1; *rest is the text after it. False: no digit. */
static bool part_verb_read_number(const char *text, uint32_t *number, const char **rest)
{
    char *end;
    unsigned long read = strtoul(text, &end, 10);
    *number = read <= SHARES_MAX ? (uint32_t)read : SHARES_MAX + 1;
    *rest = end;
    return isdigit((unsigned char)text[0]);
}

static bool is_share(const struct share *share)
{
    return share->count <= SHARES_MAX && share->index < share->count;
}

/* Finds the share from the option or else the launcher. *by is the source; NULL: none. */
static enum exit_code find_share(const struct report_options *o, struct share *share,
                                 const char **by)
{
    const char *rest;
    unsigned half = 0; /* 1 + index of the first launcher that gives no count; 0: none */
    *share = (struct share){.count = 1};
    *by = o->share ? "--share" : NULL;
    if (o->share && (!part_verb_read_number(o->share, &share->index, &rest) || *rest != '/' ||
                     !part_verb_read_number(rest + 1, &share->count, &rest) || *rest))
        return usage_error("report: --share: '%s' is not I/N, such as 0/4", o->share);
    for (unsigned i = 0; !*by && i < sizeof launchers / sizeof launchers[0]; i++) {
        const char *index = getenv(launchers[i].index), *count = getenv(launchers[i].count);
        if (index && !count && !half)
            half = i + 1;
        if (!index || !count)
            continue;
        *by = launchers[i].index;
        if (!part_verb_read_number(index, &share->index, &rest) || *rest ||
            !part_verb_read_number(count, &share->count, &rest) || *rest)
            return usage_error("report: %s=%s and %s=%s do not name a share; give --share=I/N",
                               launchers[i].index, index, launchers[i].count, count);
        if (!is_share(share))
            return usage_error("report: %s=%s and %s=%s: share %s of %s does not exist: shares "
                               "count from 0, and there are at most %u; give --share=I/N",
                               launchers[i].index, index, launchers[i].count, count, index, count,
                               SHARES_MAX);
    }
    if (!*by && half)
        return usage_error("report: %s=%s is set, but %s, the number of processes, is not; set it, "
                           "or give --share=I/N",
                           launchers[half - 1].index, getenv(launchers[half - 1].index),
                           launchers[half - 1].count);
    if (!is_share(share))
        return usage_error(
            "report: share %u of %u does not exist: shares count from 0, and there are at most %u",
            share->index, share->count, SHARES_MAX);
    return EXIT_OK;
}

static enum exit_code write_part(const struct part *part, const char *path)
{
    struct output out;
    uint64_t room = UINT64_MAX, at = 0;
    uint8_t buffer[PACKED_PIECE_BYTES];
    ssize_t got = 0;
    enum exit_code code = verb_output_open(&out, path, &room);
    if (code != EXIT_OK)
        return code;
    out.stays_plain = true;
    while ((got = file_read_at(part->fd, at, buffer, sizeof buffer)) > 0)
        at += fwrite(buffer, 1, (size_t)got, out.stream);
    return verb_output_close(&out, path, got < 0 ? GPUPROF_SPOOL : 0);
}

enum exit_code part_make(struct part *part, int fd, struct report *report, struct recording *rec,
                         const struct share *share, const struct report_request *request)
{
    int begun = part_begin(part, fd, 0);
    part->index = share->index;
    part->count = share->count;
    memcpy(part->set, share->set, sizeof part->set);
    int error = report_make(report, rec, request); /* it prints its own errors */
    if (error < 0)
        return EXIT_ENVIRONMENT;
    error = begun < 0 ? begun : part_report_put(report, part);
    error = error < 0 ? error : part_end(part);
    if (error < 0)
        return error == GPUPROF_IO ? verb_output_failed(NULL, GPUPROF_SPOOL)
                                   : say_error("report", error);
    if (part->file_bytes > PART_BYTES_MAX)
        return usage_error("report: share %u of %u is too large for a part; make more shares",
                           share->index, share->count);
    return EXIT_OK;
}

static enum exit_code make_part(struct recording *rec, const struct share *share,
                                const struct options *options, const char *path)
{
    struct report report;
    struct part part;
    struct report_request request = {.by = BY_NAME, .is_part = true, .symbols = options->symbols};
    int fd = file_unnamed();
    if (fd < 0)
        return verb_output_failed(NULL, GPUPROF_SPOOL);
    enum exit_code code = part_make(&part, fd, &report, rec, share, &request);
    if (code == EXIT_OK)
        code = write_part(&part, path);
    if (code == EXIT_OK)
        code = walk_verdict(&report.walk, options->strict);
    part_release(&part);
    report_release(&report);
    close(fd);
    return code;
}

enum exit_code part_verb(const struct options *options)
{
    const struct report_options *own = options->own;
    struct recording rec;
    struct share share;
    struct progress progress;
    const char *by;
    char *path = NULL;
    enum exit_code code = find_share(own, &share, &by);
    if (code != EXIT_OK)
        return code;
    /* A launcher starts the same command everywhere, so each part needs a name of its own. */
    if (asprintf(&path, own->share || !by ? "%s" : "%s.%u", options->output, share.index) < 0)
        return say_error("report", GPUPROF_NO_MEMORY);
    /* Other processes may read the same file at the same time, so none is changed. */
    struct recording_options how = {
        .keep_live = true, .processors = options->jobs, .share = &share};
    code = recording_open(&rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK) {
        message("report: part %u of %u (%s), %u of %u file%s: %s", share.index, share.count,
                by ? by : "no --share, no launcher", rec.count + rec.unread_files, share.file_count,
                plural_end(share.file_count), path);
        if (share.host_count > 1)
            message("report: times of the %u hosts are on their own clocks, as with --clock=wall: "
                    "a part cannot align them",
                    share.host_count);
        rec.progress = progress_begin(&progress, "report");
        progress.total = recording_bytes(&rec);
        code = make_part(&rec, &share, options, path);
    }
    recording_release(&rec);
    share_release(&share);
    free(path);
    return code;
}
