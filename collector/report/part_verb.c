/* SPDX-License-Identifier: Apache-2.0 */
#include "report/part_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "error.h"
#include "output/output.h"
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

const char *part_verb_other(const struct options *all, bool is_part)
{
    const struct report_options *o = all->own;
    for (unsigned i = 0; i < SELECT_OPTIONS; i++)
        if (all->select.said[i])
            return select_option_name(i);
    const char *chosen = o->by != BY_NAME             ? "by"
                         : o->is_mine                 ? "mine"
                         : o->source                  ? "source"
                         : o->groups == GROUPS_ALWAYS ? "group"
                         : all->step_range            ? "step-range"
                         : all->step_by               ? "step-by"
                         : o->step_samples > 0        ? "samples-per-step"
                                                      : NULL;
    if (chosen || !is_part)
        return chosen;
    return o->table.format != FORMAT_BY_NAME  ? "format" /* a part has all tables */
           : o->groups == GROUPS_NEVER        ? "no-group"
           : o->table.names                   ? "table"
           : o->table.sort                    ? "sort"
           : o->table.limit != ROWS_UNLIMITED ? "limit"
           : o->table.is_full                 ? "full"
                                              : NULL;
}

enum exit_code part_verb_check(const struct options *all, const struct report_view *view)
{
    const struct report_options *o = all->own;
    const char *other = part_verb_other(all, o->is_partial);
    if (o->is_partial && o->is_combined)
        return usage_error("report: --partial and --combine cannot be combined: the first makes a "
                           "part, the second reads all parts");
    if (o->share && !o->is_partial)
        return usage_error("report: --share needs --partial");
    if (other)
        return usage_error("report: --%s cannot be combined with --%s, which covers everything "
                           "recorded",
                           other, o->is_partial ? "partial" : "combine");
    if (o->is_partial)
        return all->output
                   ? EXIT_OK
                   : usage_error("report: --partial needs a file for the part; name it with -o");
    if (view->format == FORMAT_HTML)
        return usage_error("report: parts cannot make a page; use --format=text, json or csv, or "
                           "run it on the recordings");
    const struct table_info *lacks = report_not_in_parts(view);
    return lacks ? usage_error("report: the table %s is not in parts, since it needs all events at "
                               "once; run 'gpuprof report' on the recordings",
                               lacks->name)
                 : EXIT_OK;
}

/* Finds the share from the option or else the launcher. *by is the source; NULL: none. */
static enum exit_code find_share(const struct report_options *o, struct share *share,
                                 const char **by)
{
    char text[64] = "0/1", rest;
    *share = (struct share){0};
    *by = o->share ? "--share" : NULL;
    if (o->share)
        snprintf(text, sizeof text, "%s", o->share);
    for (unsigned i = 0; !*by && i < sizeof launchers / sizeof launchers[0]; i++) {
        const char *index = getenv(launchers[i].index), *count = getenv(launchers[i].count);
        if (!index || !count)
            continue;
        *by = launchers[i].index;
        snprintf(text, sizeof text, "%s/%s", index, count);
    }
    if (sscanf(text, "%9u/%9u%c", &share->index, &share->count, &rest) != 2 ||
        share->index >= share->count || share->count > SHARES_MAX)
        return usage_error("report: %s: '%s' is not I/N, such as 0/4: shares count from 0, and "
                           "there are at most %u; give --share=I/N",
                           *by, text, SHARES_MAX);
    return EXIT_OK;
}

static enum exit_code write_part(const struct part *part, const char *path)
{
    struct output out;
    uint64_t room = UINT64_MAX, at = 0;
    uint8_t buffer[16384];
    ssize_t got = 0;
    enum exit_code code = verb_output_open(&out, path, &room);
    if (code != EXIT_OK)
        return code;
    while ((got = file_read_at(part->fd, at, buffer, sizeof buffer)) > 0)
        at += fwrite(buffer, 1, (size_t)got, out.stream);
    if (got < 0)
        file_unnamed_failed();
    return verb_output_close(&out, path, 0);
}

enum exit_code part_make(struct part *part, int fd, struct report *report, struct recording *rec,
                         const struct report_request *request)
{
    part_begin(part, fd, 0);
    part->index = rec->share->index;
    part->count = rec->share->count;
    part->set = rec->share->set;
    int error = report_make(report, rec, request); /* it prints its own errors */
    if (error < 0)
        return EXIT_ENVIRONMENT;
    error = part_report_put(report, part);
    error = error < 0 ? error : part_end(part);
    if (error == GPUPROF_IO)
        file_unnamed_failed();
    if (error < 0)
        return say_error("report", error);
    if (part->file_bytes > PART_BYTES_MAX)
        return usage_error("report: share %u of %u is too large for a part; make more shares",
                           part->index, part->count);
    return EXIT_OK;
}

enum exit_code part_verb(const struct options *options)
{
    const struct report_options *own = options->own;
    struct recording rec;
    struct report report;
    struct part part;
    struct share share;
    const char *by;
    int fd;
    enum exit_code code = find_share(own, &share, &by);
    if (code != EXIT_OK)
        return code;
    /* A launcher starts the same command everywhere, so each part needs a name of its own. */
    char *path = own->share || !by ? memory_text(options->output)
                                   : text_printf("%s.%u", options->output, share.index);
    /* Other processes may read the same file at the same time, so none is changed. */
    struct recording_options how = {
        .keep_live = true, .processors = options->jobs, .all_jobs = true, .share = &share};
    code = recording_open(&rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK) {
        recording_share(&rec, &share);
        message("report: part %u of %u (%s), %u of %u file%s: %s", share.index, share.count,
                by ? by : "no --share, no launcher", rec.count + rec.unread_files, share.file_count,
                plural_end(share.file_count), path);
        if (share.host_count > 1)
            message("report: times of the %u hosts are on their own clocks, as with --clock=wall: "
                    "a part cannot align them",
                    share.host_count);
        rec.progress = progress_begin("report", recording_bytes(&rec));
        if ((fd = file_unnamed()) < 0)
            file_unnamed_failed();
        const struct report_request request = {
            .by = BY_NAME, .is_part = true, .symbols = options->symbols};
        code = part_make(&part, fd, &report, &rec, &request);
        if (code == EXIT_OK)
            code = write_part(&part, path);
        if (code == EXIT_OK)
            code = walk_verdict(&report.walk, options->strict);
        part_release(&part);
        report_release(&report);
        close(fd);
    }
    recording_release(&rec);
    free(path);
    return code;
}
