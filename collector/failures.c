/* SPDX-License-Identifier: Apache-2.0 */
#include "failures.h"

#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "csv_kind.h"
#include "cuda_error.h"
#include "json_text.h"
#include "process.h"
#include "process_title.h"
#include "unit_text.h"

#define ERROR_TEXT_BYTES 96

static const char *error_text(const struct failure *row, char *text)
{
    const char *name = cuda_error_name(row->function->domain, row->result);
    if (name)
        snprintf(text, ERROR_TEXT_BYTES, "%s", name);
    else
        snprintf(text, ERROR_TEXT_BYTES, "error %d", row->result);
    return text;
}

void failures_take(struct failures *f, const struct event *e, const struct function *function,
                   uint64_t weight)
{
    uint32_t i = 0;
    while (i < f->count &&
           (f->rows[i].function != function || f->rows[i].result != e->record->result))
        i++;
    if (i == FAILURES_MAX) {
        f->others += weight;
        return;
    }
    if (i == f->count)
        f->rows[f->count++] = (struct failure){.function = function,
                                               .process = e->process,
                                               .thread = e->thread,
                                               .result = e->record->result,
                                               .first_ns = e->end_ns};
    f->rows[i].count += weight;
}

void failures_print_text(const struct failures *f, uint64_t begin_ns, FILE *out)
{
    char title[1200], error[ERROR_TEXT_BYTES], a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES];
    if (f->count)
        fprintf(out, "\ncalls that returned an error\n"
                     "        count  first after  error and function, where it came first\n");
    for (uint32_t i = 0; i < f->count; i++) {
        const struct failure *row = &f->rows[i];
        thread_title(row->process, row->thread, title, sizeof title);
        char *name = json_line(row->function->name), *where = json_line(title);
        fprintf(out, " %12s %12s  %s of %s, in %s\n", count_text(a, row->count),
                time_text(b, row->first_ns - begin_ns), error_text(row, error), name ? name : "?",
                where ? where : "?");
        free(name);
        free(where);
    }
    if (f->others)
        fprintf(out, " %12s               others\n", count_text(a, f->others));
}

/* They are among their functions' errors already, so that here they are not to be added up. */
void failures_print_csv(const struct failures *f, FILE *out)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const struct failure *row = &f->rows[i];
        char error[ERROR_TEXT_BYTES], text[ERROR_TEXT_BYTES + 512];
        snprintf(text, sizeof text, "%s of %.400s", error_text(row, error), row->function->name);
        report_csv_begin(CSV_ERROR, text, out);
        fprintf(out, ",%s,0,0,0,0,0,0,0,0,%llu\n", api_domain_name(row->function->domain),
                (unsigned long long)row->count);
    }
}

void failures_print_json(const struct failures *f, uint64_t begin_ns, FILE *out)
{
    char error[ERROR_TEXT_BYTES];
    fprintf(out, ",\n\"failures\": [");
    for (uint32_t i = 0; i < f->count; i++) {
        const struct failure *row = &f->rows[i];
        const char *host = row->process->header.host;
        char *name = json_string(row->function->name, strlen(row->function->name));
        char *machine = json_string(host, strlen(host));
        fprintf(out, "%s\n{\"function\": %s, \"domain\": \"%s\", \"result\": %d, ", i ? "," : "",
                name ? name : "null", api_domain_name(row->function->domain), row->result);
        fprintf(out, "\"error\": \"%s\", \"count\": %llu, \"first_ns\": %llu, ",
                error_text(row, error), (unsigned long long)row->count,
                (unsigned long long)(row->first_ns - begin_ns));
        fprintf(out, "\"host\": %s, \"pid\": %u, \"tid\": %u}", machine ? machine : "null",
                row->process->header.pid, row->thread->tid);
        free(name);
        free(machine);
    }
    fprintf(out, f->count ? "\n]" : "]");
}

void failures_print_summary(const struct failures *f, FILE *out)
{
    char error[ERROR_TEXT_BYTES];
    if (f->count)
        fprintf(out, " (first %s of %s)", error_text(&f->rows[0], error),
                f->rows[0].function->name);
}
