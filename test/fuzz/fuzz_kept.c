/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_kept.h"

#include <stdio.h>

#include "analyse/report_make.h"
#include "column_hostile.h"
#include "fuzz_outputs.h"
#include "report/report.h"
#include "report/report_tables.h"
#include "resolve/kept_rows.h"
#include "resolve/symbols.h"

static const struct report_view views[] = {
    {.tables = "functions,cuda_gpu_kern_sum,cuda_kern_exec_sum,gpu_time_util,cuda_gpu_mem_time_sum,"
               "cuda_gpu_graph_sum,cuda_sync_sum,overhead_sum,host_mem_sum,host_kernel_sum",
     .how.limit = ROWS_UNLIMITED},
    {.by = BY_THREAD, .tables = "calls_by_thread", .how.limit = ROWS_UNLIMITED}};

static void print(struct recording *rec, struct kept_rows *kept, const struct select_wish *piece,
                  const struct report_view *view)
{
    struct report report;
    const struct report_wish wish = {.by = view->by,
                                     .symbols = SYMBOLS_OFF,
                                     .kept = kept,
                                     .only = report_only(view, FORMAT_TEXT)};
    FILE *out = fopen("/dev/null", "w");
    if (report_make_kept(&report, rec, &wish, piece) > 0 && out)
        report_print_text(&report, view, out);
    report_release(&report);
    if (out)
        fclose(out);
}

void fuzz_kept(const char *folder, uint8_t *data, size_t size, unsigned how)
{
    char stream[128], rows[160], prefix[128];
    char *paths[] = {stream};
    struct kept_rows kept = {.path = prefix, .count = 1};
    struct recording rec;
    size_t length = size < 4 ? 0 : load_u32(data);
    if (size < 4 || length > size - 4)
        return;
    snprintf(stream, sizeof stream, "%s/rows.gpuprof", folder);
    snprintf(prefix, sizeof prefix, "%s/rows", folder);
    snprintf(rows, sizeof rows, "%s.0", prefix);
    fuzz_write(stream, data + 4, length);
    column_repair(data + 4 + length, size - 4 - length, &kept.key);
    fuzz_write(rows, data + 4 + length, size - 4 - length);
    const struct recording_options options = {.keep_live = true, .quiet = true};
    const struct select_wish piece = {.is_given = true,
                                      .from = {.is_given = true, .ns = 3000},
                                      .to = {.is_given = true, .ns = 30000}};
    if (recording_open(&rec, paths, 1, &options) == EXIT_OK)
        print(&rec, &kept, how & 1 ? &piece : NULL, &views[how >> 1 & 1]);
    recording_release(&rec);
}
