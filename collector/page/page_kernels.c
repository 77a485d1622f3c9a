/* SPDX-License-Identifier: Apache-2.0 */
/* Data on kernels, and on the peak performance of the devices. */
#include <inttypes.h>
#include <string.h>

#include "analyse/device_peak.h"
#include "analyse/gpu_report.h"
#include "page/page.h"

#define KERNELS_MAX      200
#define TOGETHER         8 /* histogram buckets that are one bucket here */
#define ROOF_DEVICES_MAX 8 /* different models */

/* ---- durations of the kernels with most time: buckets, eight to each power of two ------------ */

/* Writes a list of [from, to, count], the shortest first. */
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

/* Writes the kernels: [name, durations]. */
void page_put_kernels(const struct page *p, struct page_data *d)
{
    const struct sums *kernels = &p->report->sums[ANALYSIS_kernels_sums];
    char name[SUMS_NAME_BYTES];
    fputs("{\"durations\": [", d->stream);
    for (uint32_t i = 0; i < kernels->count && i < KERNELS_MAX; i++) {
        page_printf(d, i ? ",\n[%s, [" : "\n[%s, [",
                    sums_name(kernels, &kernels->rows[i], 0, name));
        put_durations(kernels->rows[i].durations, d->stream);
        fputs("]]", d->stream);
    }
    fputs("]}", d->stream);
}

/* ---- peak performance of the devices, for the roofline --------------------------------------- */

/* Writes published figures: TFLOP/s by type, and GB/s. */
static void page_kernels_put_device(const struct device_peaks *p, struct page_data *d)
{
    const struct {
        const char *type;
        uint32_t peak;
    } peaks[] = {{"f64", p->double_},   {"f32", p->single}, {"tf32", p->tf32}, {"f16", p->half},
                 {"bf16", p->bfloat16}, {"fp8", p->float8}, {"i8", p->int8}};
    const char *separator = "";
    page_printf(d, "{\"name\": %s, \"bandwidth\": %u, \"peaks\": {", p->name, p->bandwidth);
    for (unsigned i = 0; i < sizeof peaks / sizeof peaks[0]; i++)
        if (peaks[i].peak) {
            fprintf(d->stream, "%s\"%s\": %.1f", separator, peaks[i].type, peaks[i].peak / 1e3);
            separator = ", ";
        }
    fputs("}}", d->stream);
}

void page_put_libraries(const struct page *p, struct page_data *d)
{
    const struct survey *survey = &p->report->walk.survey;
    const struct device_peaks *found[ROOF_DEVICES_MAX];
    unsigned count = 0;
    fputs("{\"devices\": [", d->stream);
    for (uint32_t i = 0; i < survey->device_count && count < ROOF_DEVICES_MAX; i++) {
        const struct device_peaks *peaks = device_peaks_of(survey->devices[i].name);
        unsigned k = 0;
        while (k < count && found[k] != peaks)
            k++;
        if (!peaks || k < count)
            continue;
        found[count++] = peaks;
        fputs(count > 1 ? ",\n" : "\n", d->stream);
        page_kernels_put_device(peaks, d);
    }
    fputs("]}", d->stream);
}
