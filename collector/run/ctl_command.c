/* SPDX-License-Identifier: Apache-2.0 */
#include "run/ctl_command.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/message.h"
#include "base/moment.h"
#include "base/unit_text.h"

/* ---- what is asked for ------------------------------------------------------------------------
 */

static enum exit_code parse_step(const char *text, struct control_command *c, bool *is_ahead)
{
    char *end;
    errno = 0;
    *is_ahead = *text == '+';
    text += *is_ahead;
    c->when = CONTROL_AT_STEP;
    c->at = strtoull(text, &end, 10);
    return isdigit((unsigned char)*text) && !*end && !errno && c->at <= SCHEDULE_STEPS_MAX
               ? EXIT_OK
               : usage_error("ctl: --at-step: '%s' is neither a step's number nor +N, steps ahead",
                             text);
}

static enum exit_code parse_time(const char *text, struct control_command *c)
{
    struct timespec now;
    uint64_t now_ns, ahead_ns;
    clock_gettime(CLOCK_REALTIME, &now);
    now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    c->when = CONTROL_AT_TIME;
    if (*text == '+' && duration_parse(text + 1, &ahead_ns))
        c->at = now_ns + ahead_ns;
    else if (!moment_parse(text, &c->at))
        return usage_error(moment_has_form(text)
                               ? "ctl: --at: '%s' is no day and time that there is"
                               : "ctl: --at: '%s' is neither 2026-11-23T18:00:00, 18:00, +30s nor "
                                 "@SECONDS",
                           text);
    return c->at >= now_ns ? EXIT_OK : usage_error("ctl: --at: '%s' is over", text);
}

static enum exit_code parse_schedule(const struct options *o, struct control_command *c)
{
    const char *text = o->path_count > 2 ? o->paths[2] : "";
    if (o->at)
        return usage_error("ctl: a schedule begins at a step: --at-step");
    if (strcmp(text, "off") == 0 && o->at_step)
        return usage_error("ctl: 'schedule off' holds at once; it goes with no --at-step");
    if (strcmp(text, "off") == 0)
        return EXIT_OK;
    if (!schedule_parse(text, &c->schedule))
        return usage_error("ctl: schedule: '%s' is neither 'wait=1,warmup=1,active=3,repeat=2', "
                           "'100-110' nor 'off'",
                           text);
    if (!isdigit((unsigned char)*text))
        return EXIT_OK;
    c->when = CONTROL_AT_STEP; /* these steps, by their numbers */
    c->at = 0;
    return o->at_step ? usage_error("ctl: '%s' says its steps; it goes with no --at-step", text)
                      : EXIT_OK;
}

/* The command that a word is; CONTROL_WATCH: none. */
static unsigned command_of(const char *word)
{
    unsigned what = 0;
    while (what < CONTROL_WATCH && strcmp(control_word(what), word) != 0)
        what++;
    return what;
}

enum exit_code ctl_command_parse(const struct options *o, struct control_command *c, bool *is_ahead)
{
    enum exit_code code = EXIT_OK;
    *c = (struct control_command){0};
    *is_ahead = false;
    if (o->path_count < 2)
        return usage_error("ctl: a data folder and start, stop, status, dump or schedule are "
                           "needed; try 'gpuprof help ctl'");
    unsigned what = command_of(o->paths[1]);
    if (what == CONTROL_WATCH && command_of(o->paths[0]) != CONTROL_WATCH)
        return usage_error("ctl: the folder comes first: gpuprof ctl %s %s", o->paths[1],
                           o->paths[0]);
    if (what == CONTROL_WATCH)
        return usage_error("ctl: '%s' is none of start, stop, status, dump and schedule",
                           o->paths[1]);
    c->what = (enum control_what)what;
    if (o->path_count != 2 + (c->what == CONTROL_SCHEDULE))
        return usage_error(c->what == CONTROL_SCHEDULE
                               ? "ctl: schedule needs one, such as 'wait=1,active=3' or 100-110"
                               : "ctl: one command at a time; try 'gpuprof help ctl'");
    if (c->what == CONTROL_STATUS && (o->at || o->at_step))
        return usage_error("ctl: status is of now; --at and --at-step go with the others");
    if (o->at && o->at_step)
        return usage_error("ctl: --at and --at-step exclude each other");
    if (c->what == CONTROL_SCHEDULE)
        code = parse_schedule(o, c);
    if (code == EXIT_OK && o->at)
        code = parse_time(o->at, c);
    if (code == EXIT_OK && o->at_step)
        code = parse_step(o->at_step, c, is_ahead);
    return code;
}

/* ---- what is answered -------------------------------------------------------------------------
 */

enum control_answer ctl_answer(const struct control_status *s, uint64_t id)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->answered[i] == id)
            return s->answers[i];
    return ANSWER_DONE;
}

static void print_waits(const struct control_status *s)
{
    for (unsigned i = 0; i < s->wait_count; i++) {
        const struct control_wait *w = &s->waits[i];
        const char *word = control_word(w->what);
        time_t seconds = (time_t)(w->at / 1000000000u);
        struct tm when;
        char text[32] = "?";
        if (w->when == CONTROL_AT_TIME && localtime_r(&seconds, &when))
            strftime(text, sizeof text, "%H:%M:%S", &when);
        if (w->when == CONTROL_AT_TIME)
            printf("; %s at %s", word, text);
        else
            printf("; %s at step %" PRIu64, word, w->at);
    }
}

static void print_answer(const struct control_status *s, const struct control_command *asked)
{
    enum control_answer answer = ctl_answer(s, asked->id);
    if (answer == ANSWER_LATE && asked->what == CONTROL_SCHEDULE)
        fputs("; that step is over: of the first window it has what is left", stdout);
    else if (answer == ANSWER_LATE)
        fputs("; that step is over: it does so with the next one", stdout);
    else if (answer == ANSWER_REFUSED && asked->what == CONTROL_DUMP)
        fputs("; it has no flight recorder: gpuprof run --flight=30s", stdout);
    else if (answer == ANSWER_REFUSED && asked->what == CONTROL_SCHEDULE && s->has_flight)
        fputs("; its flight recorder keeps all: it takes no schedule", stdout);
    else if (answer == ANSWER_REFUSED)
        fputs("; it can take no more of them now", stdout);
}

void ctl_status_print(const struct control_status *s, const struct control_command *asked)
{
    static const char *const who[] = {"the program", "gpuprof ctl", "its windows"};
    const char *between = ": stopped by ";
    if (!s->stopped)
        fputs(": recording", stdout);
    for (unsigned i = 0; i < sizeof who / sizeof who[0]; i++)
        if (s->stopped >> i & 1) {
            printf("%s%s", between, who[i]);
            between = " and ";
        }
    if (s->figures[FIGURE_STEP] != CONTROL_UNKNOWN)
        printf("; step %" PRIu64, s->figures[FIGURE_STEP]);
    print_waits(s);
    if (s->has_flight)
        printf("; its flight recorder has written %" PRIu64 " dump%s", s->dumps,
               plural_end(s->dumps));
    print_answer(s, asked);
    putchar('\n');
}
