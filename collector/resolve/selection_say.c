/* SPDX-License-Identifier: Apache-2.0 */
/* Texts about a selection: a description, and why it is empty. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/api.h"
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
    uint64_t begin_ns = s->from_ns, end_ns = s->to_ns;
    for (unsigned i = 0; i < SELECTION_SPANS; i++) {
        uint64_t first_ns = UINT64_MAX, last_ns = 0;
        for (uint32_t p = 0; s->spans[i] && p < s->walk->rec->count; p++) {
            const struct time_spans *own = &s->spans[i][p];
            if (own->count && own->list[0].begin_ns < first_ns)
                first_ns = own->list[0].begin_ns;
            if (own->count && own->list[own->count - 1].end_ns > last_ns)
                last_ns = own->list[own->count - 1].end_ns;
        }
        if (s->spans[i] && first_ns > begin_ns)
            begin_ns = first_ns;
        if (s->spans[i] && last_ns < end_ns)
            end_ns = last_ns;
    }
    *from_ns = since_origin(s, begin_ns);
    *to_ns = since_origin(s, end_ns > begin_ns ? end_ns : begin_ns);
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
    uint64_t *numbers = calloc(survey->device_count + 1u, sizeof *numbers);
    bool has_any = !s->request->devices.count || s->found.met[MET_DEVICE] || !numbers;
    uint32_t count = 0;
    for (uint32_t i = 0; numbers && i < survey->device_count; i++)
        numbers[count++] = survey->devices[i].limits.device;
    for (uint32_t i = 0; i < count; i++)
        has_any |= number_list_has(&s->request->devices, numbers[i]);
    if (!has_any)
        number_spans_text(numbers, count, text);
    free(numbers);
    return !has_any;
}

/* Prints that no event is in the selected time; `begun`: what began earlier, or NULL. */
static void say_time(const struct selection *s, const char *begun, FILE *out)
{
    char length[UNIT_TEXT_BYTES], moment[32] = "";
    uint64_t origin_ns = s->walk->survey.origin_ns;
    bool is_moment = s->request->from.is_absolute || s->request->to.is_absolute;
    time_t seconds = (time_t)(origin_ns / 1000000000u);
    struct tm when;
    if (is_moment && localtime_r(&seconds, &when))
        strftime(moment, sizeof moment, " (%Y-%m-%dT%H:%M:%S)", &when);
    if (s->request->from.is_given || s->request->to.is_given)
        fprintf(out,
                "the recording lasts %s after its first event%s, and --from and --to count from "
                "that; %s",
                time_text(length, s->length_ns), moment,
                begun ? begun : "name a time with such events");
    else
        fprintf(out, "nothing was recorded in that %s",
                s->spans[SPANS_STEPS]    ? "step"
                : s->spans[SPANS_RANGES] ? "range"
                                         : "window");
}

/* Prints the first option that leaves none of the events that passed the options before it. */
static void say_why(const struct selection *s, const char *begun, FILE *out)
{
    const struct select_request *w = s->request;
    unsigned options = s->filter.is_of_time + !!w->devices.count + !!w->kinds + !!w->tids.count +
                       !!w->min_ns + !!w->name;
    const char *none =
        options == 1 ? "no event of the recording" : "no event that the other options select";
    char devices[NUMBER_SPANS_BYTES] = "";
    if (!s->walk->survey.origin_ns)
        fputs("the recording has no event", out);
    else if (lacks_devices(s, devices))
        fprintf(out, *devices ? "its devices are %s" : "the recording has no device", devices);
    else if (!s->found.met[MET_TIME] || begun)
        say_time(s, begun, out);
    else if (!s->found.met[MET_KIND])
        fprintf(out, "--kind: %s has that kind", none);
    else if (!s->found.met[MET_TID])
        fprintf(out, "--tid: %s is of that thread; 'gpuprof report --by=thread' lists the threads",
                none);
    else if (!s->found.met[MET_DURATION])
        fprintf(out, "--min-duration: %s took that long", none);
    else
        fprintf(out, "--name: %s has a name that matches '%s'; case counts", none, w->name);
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
    if (!s->found.met[MET_ALL])
        return selection_empty(s, verb);
    if (lacks_devices(s, devices))
        return usage_error("%s: --device: the recording has no %sdevice%s%s", verb,
                           *devices ? "such " : "", *devices ? "; its devices are " : "", devices);
    return EXIT_OK;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* The kinds of events for --kind. */

enum select_kind selection_kind_of_call(const struct function *f)
{
    switch (f->class) {
    case API_LAUNCH: return SELECT_LAUNCH;
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
    switch (r->type) {
    case RECORD_CALL: return f ? selection_kind_of_call(f) : SELECT_OTHER;
    case RECORD_KERNEL: return SELECT_KERNEL;
    case RECORD_COPY: return SELECT_MEMCPY;
    case RECORD_SET: return SELECT_MEMSET;
    case RECORD_GRAPH: return SELECT_GRAPH_RUN;
    case RECORD_SYNC: return SELECT_WAIT;
    case RECORD_OVERHEAD: return SELECT_OVERHEAD;
    case RECORD_MEMORY:
    case RECORD_TENSOR:
    case RECORD_TENSOR_OOM: return SELECT_MEMORY;
    case RECORD_PUSH:
    case RECORD_POP:
    case RECORD_RANGE_START:
    case RECORD_RANGE_END: return SELECT_RANGE;
    case RECORD_OP_BEGIN:
    case RECORD_OP_END: return SELECT_OPERATOR;
    case RECORD_LIBRARY_BEGIN:
    case RECORD_LIBRARY_END: return SELECT_LIBRARY;
    case RECORD_SAMPLE: return SELECT_SAMPLE;
    case RECORD_OS_CALL: return SELECT_OS;
    case RECORD_GIL:
    case RECORD_GIL_REST: return SELECT_GIL;
    case RECORD_GC: return SELECT_GC;
    case RECORD_MARK:
    case RECORD_STEP:
    case RECORD_PAUSE:
    case RECORD_WINDOW:
    case RECORD_DUMP: return SELECT_MARK;
    default: return SELECT_KINDS;
    }
}
