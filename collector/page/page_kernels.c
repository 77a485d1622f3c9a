/* SPDX-License-Identifier: Apache-2.0 */
/* How long the kernels took that take most: their times in buckets, eight to each power of two. */
#include <inttypes.h>

#include "analyse/gpu_report.h"
#include "page/page.h"

#define KERNELS_MAX 200
#define TOGETHER    8 /* buckets of a histogram that are one here */

/* A list of [from, to, count], the shortest first. */
static void put_durations(const struct histogram *h, FILE *out)
{
    const char *separator = "";
    for (unsigned row = 0; row < HISTOGRAM_ROWS; row++)
        for (unsigned i = 0; h->rows[row] && i < HISTOGRAM_BUCKETS; i += TOGETHER) {
            uint64_t count = 0;
            for (unsigned k = i; k < i + TOGETHER; k++)
                count += h->rows[row][k];
            if (count)
                fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", separator,
                        histogram_bucket_begin(row, i), histogram_bucket_begin(row, i + TOGETHER),
                        count);
            separator = count ? "," : separator;
        }
}

/* A kernel is [name, its durations]. */
int page_put_kernels(const struct page *p, struct page_data *d)
{
    uint32_t count, shown = 0;
    const struct gpu_stat *rows = gpu_report_rows(p->report->gpu, &count);
    fputs("{\"durations\": [", d->stream);
    for (uint32_t i = 0; i < count && shown < KERNELS_MAX; i++) {
        if (rows[i].table != TABLE_KERNELS)
            continue;
        fputs(shown++ ? ",\n[" : "\n[", d->stream);
        page_put_text(d, rows[i].name);
        fputs(", [", d->stream);
        put_durations(&rows[i].durations, d->stream);
        fputs("]]", d->stream);
    }
    fputs("]}", d->stream);
    return 0;
}
