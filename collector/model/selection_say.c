/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a piece: which one it is, and that nothing is in it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/message.h"
#include "base/number_spans.h"
#include "base/unit_text.h"
#include "model/selection.h"

static uint64_t since_origin(const struct selection *s, uint64_t ns)
{
    uint64_t origin_ns = s->walk->survey.origin_ns;
    ns = ns > origin_ns ? ns - origin_ns : 0;
    return ns < s->length_ns ? ns : s->length_ns;
}

bool selection_time(const struct selection *s, uint64_t *from_ns, uint64_t *to_ns)
{
    const struct time_spans *const spans[] = {s->steps, s->ranges, s->cycle};
    uint64_t begin_ns = s->from_ns, end_ns = s->to_ns;
    for (unsigned i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        uint64_t first_ns = UINT64_MAX, last_ns = 0;
        for (uint32_t p = 0; spans[i] && p < s->walk->rec->count; p++) {
            const struct time_spans *own = &spans[i][p];
            if (own->count && own->list[0].begin_ns < first_ns)
                first_ns = own->list[0].begin_ns;
            if (own->count && own->list[own->count - 1].end_ns > last_ns)
                last_ns = own->list[own->count - 1].end_ns;
        }
        if (spans[i] && first_ns > begin_ns)
            begin_ns = first_ns;
        if (spans[i] && last_ns < end_ns)
            end_ns = last_ns;
    }
    *from_ns = since_origin(s, begin_ns);
    *to_ns = since_origin(s, end_ns);
    return s->filter.is_of_time;
}

static char *text_of(const struct selection *s, bool has_time)
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
        fprintf(out, "%s to %s after the first event, of %s: ", time_text(from, from_ns),
                time_text(to, to_ns), time_text(of, s->length_ns));
    for (unsigned i = 0; i < SELECT_OPTIONS; i++)
        if (s->wish->said[i]) {
            fprintf(out, "%s--%s=%s", before, select_option_name(i), s->wish->said[i]);
            before = " ";
        }
    return fclose(out) == 0 ? text : NULL;
}

char *selection_text(const struct selection *s)
{
    return text_of(s, true);
}

char *selection_begun_text(const struct selection *s)
{
    uint64_t ns = s->begun_ns - s->walk->survey.origin_ns;
    char devices[40] = "", threads[40] = "", time[32], *text = NULL;
    if (s->begun_devices == 1)
        snprintf(devices, sizeof devices, "a GPU was in work");
    else if (s->begun_devices)
        snprintf(devices, sizeof devices, "%u GPUs were in work", s->begun_devices);
    if (s->begun_threads == 1)
        snprintf(threads, sizeof threads, "a thread %sin a call", s->begun_devices ? "" : "was ");
    else if (s->begun_threads)
        snprintf(threads, sizeof threads, "%u threads %sin calls", s->begun_threads,
                 s->begun_devices ? "" : "were ");
    if (!s->begun_devices && !s->begun_threads)
        return NULL;
    int length = snprintf(time, sizeof time, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
                          (unsigned long long)(ns % 1000000000u));
    while (time[length - 1] == '0')
        time[--length] = '\0';
    time[length - (time[length - 1] == '.')] = '\0';
    length =
        asprintf(&text, "%s%s%s%s that began before: --from=%s shows %s", devices,
                 *devices && *threads ? ", and " : "", threads, *devices && *threads ? "," : "",
                 time, s->begun_devices + s->begun_threads > 1 ? "them" : "it");
    return length < 0 ? NULL : text;
}

/* Where devices are described, and none of them is wanted: which there are. False: it is not so. */
static bool name_devices(const struct selection *s, char *text)
{
    const struct survey *survey = &s->walk->survey;
    uint64_t *numbers = calloc(survey->device_count + 1u, sizeof *numbers);
    bool has_any = !survey->device_count || !numbers;
    for (uint32_t i = 0; numbers && i < survey->device_count; i++) {
        numbers[i] = survey->devices[i].limits.device;
        has_any |= number_list_has(&s->wish->devices, numbers[i]);
    }
    if (!has_any)
        number_spans_text(numbers, survey->device_count, text);
    free(numbers);
    return !has_any;
}

enum exit_code selection_empty(const struct selection *s, const char *verb)
{
    char time[UNIT_TEXT_BYTES], devices[NUMBER_SPANS_BYTES] = "", moment[32] = "";
    uint64_t origin_ns = s->walk->survey.origin_ns;
    bool has_devices = !name_devices(s, devices);
    bool is_moment = s->wish->from.is_absolute || s->wish->to.is_absolute;
    bool is_of_time = s->wish->from.is_given || s->wish->to.is_given;
    time_t seconds = (time_t)(origin_ns / 1000000000u);
    struct tm when;
    char *text = text_of(s, false), *begun = selection_begun_text(s);
    if (is_moment && localtime_r(&seconds, &when))
        strftime(moment, sizeof moment, " (%Y-%m-%dT%H:%M:%S)", &when);
    if (!origin_ns)
        usage_error("%s: no event is in the piece that was asked for, %s: there is none in the "
                    "recording",
                    verb, text ? text : "?");
    else
        usage_error("%s: no event is in the piece that was asked for, %s: the recording lasts %s "
                    "from its first event%s on, from which --from and --to count; %s%s%s",
                    verb, text ? text : "?", time_text(time, s->length_ns), moment,
                    begun        ? begun
                    : is_of_time ? "name a time in it that has such events"
                                 : "ask for less of this at once",
                    has_devices ? "" : "; its devices are ", devices);
    free(text);
    free(begun);
    return EXIT_USAGE;
}

enum exit_code selection_check(const struct selection *s, const char *verb)
{
    char devices[NUMBER_SPANS_BYTES];
    if (!s->filter.context)
        return EXIT_OK;
    if (!s->shown)
        return selection_empty(s, verb);
    if (name_devices(s, devices))
        message("%s: --device: no device of that number is in the recording; there are %s", verb,
                devices);
    return EXIT_OK;
}
