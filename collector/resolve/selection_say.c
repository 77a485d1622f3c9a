/* SPDX-License-Identifier: Apache-2.0 */
/* Texts about a selection: a description, and why it is empty. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "resolve/selection.h"

static uint64_t since_origin(const struct selection *s, uint64_t ns)
{
    uint64_t origin_ns = s->walk->survey.origin_ns;
    ns = ns > origin_ns ? ns - origin_ns : 0;
    return ns < s->length_ns ? ns : s->length_ns;
}

bool selection_time(const struct selection *s, uint64_t *from_ns, uint64_t *to_ns)
{
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
    for (uint32_t p = 0; p < s->walk->rec->count; p++) {
        const struct time_span its =
            s->filter.bounds(s->filter.context, s->walk->rec->processes[p]);
        begin_ns = min_of(begin_ns, its.begin_ns);
        end_ns = max_of(end_ns, its.end_ns);
    }
    *from_ns = since_origin(s, begin_ns);
    *to_ns = since_origin(s, max_of(begin_ns, end_ns));
    return s->filter.is_of_time;
}

static char *selection_say_text_of(const struct selection *s, bool has_time)
{
    char from[UNIT_TEXT_BYTES], to[UNIT_TEXT_BYTES], of[UNIT_TEXT_BYTES];
    char *text = NULL;
    size_t length = 0;
    uint64_t from_ns, to_ns;
    FILE *out = open_memstream(&text, &length);
    const char *before = "";
    if (!out)
        return NULL;
    if (has_time && selection_time(s, &from_ns, &to_ns))
        fprintf(out, "%s to %s after the first event, of %s recorded: ", time_text(from, from_ns),
                time_text(to, to_ns), time_text(of, s->length_ns));
    for (unsigned i = 0; i < SELECT_OPTIONS; i++)
        if (s->request->said[i]) {
            fprintf(out, "%s--%s=%s", before, select_option_name(i), s->request->said[i]);
            before = " ";
        }
    return fclose(out) == 0 ? text : NULL;
}

char *selection_text(const struct selection *s)
{
    return selection_say_text_of(s, true);
}

char *selection_begun_text(const struct selection *s)
{
    const struct selection_found *f = &s->found;
    uint64_t ns = f->begun_ns - s->walk->survey.origin_ns;
    if (!f->begun_devices && !f->begun_threads)
        return NULL;
    char gpus[32] = "", threads[32] = "";
    if (f->begun_devices)
        snprintf(gpus, sizeof gpus, "%u GPU%s", f->begun_devices, f->begun_devices == 1 ? "" : "s");
    if (f->begun_threads)
        snprintf(threads, sizeof threads, "%u thread%s", f->begun_threads,
                 f->begun_threads == 1 ? "" : "s");
    return text_printf("work of %s%s%s began earlier: --from=%.9f shows it", gpus,
                       *gpus && *threads ? " and " : "", threads, (double)ns / 1e9);
}

/* Whether no selected device is in the recording; then `text` lists those that are. */
static bool lacks_devices(const struct selection *s, char text[static NUMBER_SPANS_BYTES])
{
    const struct survey *survey = &s->walk->survey;
    uint64_t *numbers = memory_new(survey->device_count + 1u, sizeof *numbers);
    bool has_any = !s->request->devices.count || s->found.of_devices;
    uint32_t count = 0;
    for (uint32_t i = 0; i < survey->device_count; i++)
        numbers[count++] = survey->devices[i].limits.device;
    for (uint32_t i = 0; i < count; i++)
        has_any |= number_list_has(&s->request->devices, numbers[i]);
    if (!has_any)
        number_spans_text(numbers, count, text);
    free(numbers);
    return !has_any;
}

/* `begun`: what began earlier, or NULL. */
static void say_why(const struct selection *s, const char *begun, FILE *out)
{
    const struct select_request *w = s->request;
    char devices[NUMBER_SPANS_BYTES] = "", length[UNIT_TEXT_BYTES], moment[32] = "";
    time_t seconds = (time_t)(s->walk->survey.origin_ns / 1000000000u);
    struct tm when;
    if ((w->from.is_absolute || w->to.is_absolute) && localtime_r(&seconds, &when))
        strftime(moment, sizeof moment, " (%Y-%m-%dT%H:%M:%S)", &when);
    if (!s->walk->survey.origin_ns)
        fputs("the recording has no event", out);
    else if (lacks_devices(s, devices))
        fprintf(out, *devices ? "its devices are %s" : "the recording has no device", devices);
    else if (w->from.is_given || w->to.is_given)
        fprintf(out,
                "the recording lasts %s after its first event%s, and --from and --to count from "
                "that; %s",
                time_text(length, s->length_ns), moment,
                begun ? begun : "name a time with such events");
    else
        fputs("no event of the recording matches all of this", out);
}

enum exit_code selection_empty(const struct selection *s, const char *verb)
{
    char *why = NULL, *text = selection_say_text_of(s, false), *begun = selection_begun_text(s);
    size_t length = 0;
    FILE *out = open_memstream(&why, &length);
    if (out) {
        say_why(s, begun, out);
        fclose(out);
    }
    usage_error("%s: no event is in the selection, %s: %s", verb, text ? text : "?",
                why ? why : "?");
    free(text);
    free(why);
    free(begun);
    return EXIT_USAGE;
}

enum exit_code selection_check(const struct selection *s, const char *verb)
{
    char devices[NUMBER_SPANS_BYTES] = "";
    if (!s->filter.context)
        return EXIT_OK;
    if (!s->found.events)
        return selection_empty(s, verb);
    if (lacks_devices(s, devices))
        return usage_error("%s: --device: the recording has no %sdevice%s%s", verb,
                           *devices ? "such " : "", *devices ? "; its devices are " : "", devices);
    return EXIT_OK;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

enum select_kind selection_kind_of_call(const struct function *f)
{
    switch (f->class) {
    case API_LAUNCH:
    case API_GRAPH_LAUNCH: return SELECT_LAUNCH;
    case API_ALLOC: return SELECT_ALLOC;
    case API_COPY: return SELECT_COPY;
    case API_SYNC: return SELECT_SYNC;
    case API_GRAPH: return SELECT_GRAPH;
    default: return SELECT_OTHER;
    }
}

enum select_kind selection_kind_of(const struct record *r, const struct function *f)
{
    static const struct {
        uint8_t type;
        enum select_kind kind;
    } kinds[] = {{RECORD_KERNEL, SELECT_KERNEL},
                 {RECORD_COPY, SELECT_MEMCPY},
                 {RECORD_SET, SELECT_MEMSET},
                 {RECORD_GRAPH, SELECT_GRAPH_RUN},
                 {RECORD_SYNC, SELECT_WAIT},
                 {RECORD_OVERHEAD, SELECT_OVERHEAD},
                 {RECORD_MEMORY, SELECT_MEMORY},
                 {RECORD_TENSOR, SELECT_MEMORY},
                 {RECORD_TENSOR_OOM, SELECT_MEMORY},
                 {RECORD_PUSH, SELECT_RANGE},
                 {RECORD_POP, SELECT_RANGE},
                 {RECORD_RANGE_START, SELECT_RANGE},
                 {RECORD_RANGE_END, SELECT_RANGE},
                 {RECORD_OP_BEGIN, SELECT_OPERATOR},
                 {RECORD_OP_END, SELECT_OPERATOR},
                 {RECORD_LIBRARY_BEGIN, SELECT_LIBRARY},
                 {RECORD_LIBRARY_END, SELECT_LIBRARY},
                 {RECORD_SAMPLE, SELECT_SAMPLE},
                 {RECORD_OS_CALL, SELECT_OS},
                 {RECORD_GIL, SELECT_GIL},
                 {RECORD_GIL_REST, SELECT_GIL},
                 {RECORD_GC, SELECT_GC},
                 {RECORD_MARK, SELECT_MARK},
                 {RECORD_STEP, SELECT_MARK},
                 {RECORD_PAUSE, SELECT_MARK},
                 {RECORD_WINDOW, SELECT_MARK},
                 {RECORD_DUMP, SELECT_MARK}};
    if (r->type == RECORD_CALL)
        return f ? selection_kind_of_call(f) : SELECT_OTHER;
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].type == r->type)
            return kinds[i].kind;
    return SELECT_KINDS;
}
