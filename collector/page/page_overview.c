/* SPDX-License-Identifier: Apache-2.0 */
/* Data on the recording: its processes, their metadata, and what is missing. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/gpu_report.h"
#include "analyse/idle.h"
#include "page/page.h"
#include "read/process.h"
#include "report/overview.h"
#include "resolve/selection.h"

#define PROCESSES_MAX 4096
#define TITLE_BYTES   512
#define KEYS_BYTES    (64u << 10) /* of the settings */

static void put_count(const char *key, uint64_t count, struct page_data *d)
{
    fprintf(d->stream, "\"%s\": %" PRIu64 ", ", key, count);
}

/* Writes a process: [title, rank or null, calls, GPU rows]. */
static void page_overview_put_process(const struct page *p, const struct process *process,
                                      struct page_data *d)
{
    char title[TITLE_BYTES];
    page_put_text(d, "[", process_title(process, true, title, sizeof title));
    page_put_text(d, ", ", process_rank(process));
    fprintf(d->stream, ", %" PRIu64 ", ", p->report->process_calls[process->index]);
    page_put_text(d, "", process_gpu_rows(process));
    fputc(']', d->stream);
}

static void put_losses(const struct report *r, struct page_data *d)
{
    const char *separator = "";
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        struct loss_info info = loss_info(i);
        if (!loss_value(&r->losses, i))
            continue;
        fprintf(d->stream, "%s[\"%s\", %" PRIu64 ", %d, %d, ", separator, info.key,
                loss_value(&r->losses, i), info.weight, info.is_count);
        page_put_text(d, "", info.text);
        fprintf(d->stream, ", %d]", info.leaves_out);
        separator = ", ";
    }
    if (r->rec->unread_files)
        fprintf(d->stream,
                "%s[\"unread_files\", %u, %d, 1, \"files that could not be read at all\"]",
                separator, r->rec->unread_files, LOSS_DAMAGE);
}

int page_put_overview(const struct page *p, struct page_data *d)
{
    const struct report *r = p->report;
    struct overview o;
    uint32_t shown = r->rec->count < PROCESSES_MAX ? r->rec->count : PROCESSES_MAX;
    int error = overview_init(&o, r);
    if (error < 0)
        return error;
    fputs("{", d->stream);
    put_count("wall_ns", r->wall_end_ns - r->wall_begin_ns, d);
    put_count("start_up_ns", overview_start_up_ns(r), d);
    page_put_text(d, "\"start_up_end\": ", overview_start_up_end(&o));
    fputs(", ", d->stream);
    put_count("process_count", r->rec->count, d);
    put_count("left_out", r->rec->left_out, d);
    put_count("calls", r->calls, d);
    put_count("errors", r->errors, d);
    put_count("held_back", overview_held_back(r), d);
    put_count("devices", o.devices, d);
    put_count("kernels", r->sums[ANALYSIS_kernels_sums].whole[SUMS_COUNT], d);
    put_count("hides_waits", r->rec->left_out_ranks && r->idle && idle_lacks_ranks(r->idle), d);
    put_count("estimated", r->is_estimated, d);
    page_put_text(d, "\"gpu_rows\": ", recording_gpu_rows(r->rec));
    page_put_owned(d, ", \"piece\": ", r->selection ? selection_text(r->selection) : NULL);
    page_put_owned(d, ", \"missing_ranks\": ", overview_missing_text(r));
    page_put_owned(d, ", \"collective\": ", collectives_text(&r->hang.collectives));
    fputs(",\n\"losses\": [", d->stream);
    put_losses(r, d);
    fputs("],\n\"processes\": [", d->stream);
    for (uint32_t i = 0; i < shown; i++) {
        fputs(i ? ",\n" : "\n", d->stream);
        page_overview_put_process(p, r->rec->processes[i], d);
    }
    fputs("]}", d->stream);
    return 0;
}

/* ---- settings and versions ------------------------------------------------------------------- */

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
int page_put_settings(const struct page *p, struct page_data *d)
{
    const struct recording *rec = p->report->rec;
    const struct process *first = rec->count ? rec->processes[0] : NULL;
    uint64_t before = page_data_written(d);
    const char *separator = "\n[";
    fputs("{\"release\": \"" GPUPROF_RELEASE "\", \"meta\": [", d->stream);
    for (uint32_t i = 0; first && i < first->meta_count; i++) {
        const char *text = first->meta[i].text, *is = strchr(text, '=');
        char *key = is ? strndup(text, (size_t)(is - text)) : NULL;
        const char *value = key ? process_meta(first, key) : NULL;
        /* Of several values for a key, the last is valid. */
        if (value == is + 1 && page_data_written(d) - before < KEYS_BYTES) {
            page_put_text(d, separator, key);
            page_put_text(d, ", ", value);
            fprintf(d->stream, ", %u]", agreeing(rec, key, value));
            separator = ",\n[";
        }
        free(key);
    }
    fputs("]}", d->stream);
    return 0;
}
