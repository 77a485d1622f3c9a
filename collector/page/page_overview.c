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

static void put_losses(const struct report *r, struct page_data *d)
{
    const char *separator = "";
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        struct loss_info info = loss_info(i);
        if (!loss_value(&r->losses, i))
            continue;
        fputs(separator, d->stream);
        page_printf(d, "[%s, %" PRIu64 ", %d, %d, %s, %d]", info.key, loss_value(&r->losses, i),
                    info.weight, info.is_count, info.text, info.leaves_out);
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
        r->wall_end_ns - r->wall_begin_ns, overview_start_up_ns(r), overview_start_up_end(&o),
        r->rec->count, r->rec->left_out, r->calls, r->errors, overview_held_back(r), o.devices,
        r->sums[ANALYSIS_kernels_sums].whole[SUMS_COUNT],
        r->rec->left_out_ranks && r->idle && idle_lacks_ranks(r->idle), r->is_estimated,
        recording_gpu_rows(r->rec));
    page_put_owned(d, ", \"piece\": ", r->selection ? selection_text(r->selection) : NULL);
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
                    r->process_calls[process->index], process_gpu_rows(process));
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
