/* SPDX-License-Identifier: Apache-2.0 */
#include "open_calls.h"

#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "argument_text.h"
#include "csv_kind.h"
#include "json_text.h"
#include "process.h"
#include "process_title.h"
#include "unit_text.h"

/* A name is known only while its handle means it: as the events go by. */
static const struct kernel_name *kernel_of(const struct event *e)
{
    for (unsigned i = 0; i < e->record->arg_count && i < e->function->arg_count; i++)
        if (e->function->args[i].kind == API_KERNEL)
            return kernel_name_of(&e->process->kernels, e->record->args[i]);
    return NULL;
}

void open_calls_take(struct open_calls *o, const struct event *e)
{
    uint64_t duration_ns = e->end_ns - e->begin_ns;
    uint32_t place = o->count;
    if (!(e->record->flags & RECORD_OPEN))
        return;
    o->total++;
    while (place > 0 && o->calls[place - 1].duration_ns < duration_ns)
        place--;
    if (place == OPEN_CALLS_MAX)
        return;
    if (o->count < OPEN_CALLS_MAX)
        o->count++;
    memmove(&o->calls[place + 1], &o->calls[place], (o->count - place - 1) * sizeof *o->calls);
    o->calls[place] = (struct open_call){.function = e->function,
                                         .process = e->process,
                                         .thread = e->thread,
                                         .kernel = kernel_of(e),
                                         .duration_ns = duration_ns,
                                         .arg_count = e->record->arg_count};
    memcpy(o->calls[place].args, e->record->args, sizeof o->calls[place].args);
}

static void print_line(const char *before, const char *text, const char *behind, FILE *out)
{
    char *clean = json_line(text);
    fprintf(out, "%s%s%s", before, clean ? clean : "?", behind);
    free(clean);
}

void open_calls_print_text(const struct open_calls *o, FILE *out)
{
    char title[1200], text[UNIT_TEXT_BYTES];
    if (o->total)
        fprintf(out, "\ncalls that had not returned when their process ended or was looked at\n"
                     "       lasted  call, thread and process\n");
    for (uint32_t i = 0; i < o->count; i++) {
        const struct open_call *c = &o->calls[i];
        fprintf(out, " %12s  ", c->duration_ns ? time_text(text, c->duration_ns) : "just begun");
        print_line("", c->function->name, "", out);
        for (unsigned k = 0; k < c->arg_count && k < c->function->arg_count; k++) {
            unsigned kind = c->function->args[k].kind;
            uint64_t value;
            if (!function_value(c->args, c->arg_count, k, &kind, &value))
                continue;
            print_line(" ", c->function->args[k].label, "=", out);
            if (c->kernel && kind == API_KERNEL)
                print_line("", c->kernel->shown, "", out);
            else
                argument_print(kind, value, out);
        }
        print_line(", in ", thread_title(c->process, c->thread, title, sizeof title), "\n", out);
    }
    if (o->total > o->count)
        fprintf(out, "               ... and %s more\n", count_text(text, o->total - o->count));
}

/* Its time is among its function's already, so that here it is not to be added up. */
void open_calls_print_csv(const struct open_calls *o, FILE *out)
{
    for (uint32_t i = 0; i < o->count; i++) {
        const struct open_call *c = &o->calls[i];
        report_csv_begin(CSV_OPEN_CALL, c->function->name, out);
        fprintf(out, ",%s,0,0,0,0,0,%llu,0,0,1\n", api_domain_name(c->function->domain),
                (unsigned long long)c->duration_ns);
    }
}

static void print_json_text(const char *key, const char *text, FILE *out)
{
    char *quoted = json_string(text, strlen(text));
    fprintf(out, ", \"%s\": %s", key, quoted ? quoted : "null");
    free(quoted);
}

void open_calls_print_json(const struct open_calls *o, FILE *out)
{
    fprintf(out, ",\n\"open_calls\": [");
    for (uint32_t i = 0; i < o->count; i++) {
        const struct open_call *c = &o->calls[i];
        fprintf(out, "%s\n{\"lasted_ns\": %llu", i ? "," : "", (unsigned long long)c->duration_ns);
        print_json_text("function", c->function->name, out);
        print_json_text("domain", api_domain_name(c->function->domain), out);
        if (c->kernel)
            print_json_text("kernel", c->kernel->shown, out);
        print_json_text("host", c->process->header.host, out);
        fprintf(out, ", \"pid\": %u, \"tid\": %u", c->process->header.pid, c->thread->tid);
        print_json_text("thread", c->thread->name, out);
        fprintf(out, "}");
    }
    fprintf(out, o->count ? "\n]" : "]");
}

void open_calls_print_summary(const struct open_calls *o, FILE *out)
{
    char text[UNIT_TEXT_BYTES];
    if (!o->total)
        return;
    const struct open_call *c = &o->calls[0];
    fprintf(out, "  open       %s ", c->function->name);
    /* Nothing later is known of the process: it was killed in its work, and did not hang. */
    if (c->duration_ns)
        fprintf(out, "had not returned after %s, in", time_text(text, c->duration_ns));
    else
        fprintf(out, "had just begun at the end of");
    fprintf(out, " process %u", c->process->header.pid);
    if (o->total > 1)
        fprintf(out, "; nor had %s more", count_text(text, o->total - 1));
    fprintf(out, "\n");
}
