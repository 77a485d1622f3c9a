/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `ctl`: makes running processes start or stop recording, or report their state, through
 * the control file of their data folder (formats/control_text.h), and waits for answers. Returns
 * EXIT_ENVIRONMENT if some did not answer, and names them.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "base/text.h"
#include "file/live_file.h"
#include "output/output.h"
#include "rank.h"
#include "run/ctl_folder.h"

#define LOOK_US       50000 /* interval for reading answers; they arrive once a second */
#define NAMED_MAX     16    /* commands to single processes; and processes with a line each */
#define SECONDS_USUAL 10.0

/* Options of the verb. */
struct ctl_words {
    struct ctl_options which;
    const char *at;      /* time as given; NULL: now */
    const char *at_step; /* step as given, likewise */
};

/* ---- command --------------------------------------------------------------------------------- */

static enum exit_code parse_step(const char *text, struct control_command *c, bool *is_ahead)
{
    *is_ahead = *text == '+';
    c->when = CONTROL_AT_STEP;
    return number_parse(text + *is_ahead, 0, SCHEDULE_STEPS_MAX, &c->at)
               ? EXIT_OK
               : usage_error("ctl: --at-step: '%s' is not a step's number or +N (N steps ahead)",
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
        return usage_error("ctl: --at: '%s' is not a time such as 2026-11-23T18:00:00, 18:00, +30s "
                           "or @SECONDS",
                           text);
    return c->at >= now_ns ? EXIT_OK : usage_error("ctl: --at: '%s' is in the past", text);
}

static enum exit_code parse_schedule(const struct options *o, struct control_command *c)
{
    const struct ctl_words *own = o->own;
    const char *text = o->paths[2];
    bool is_off = strcmp(text, "off") == 0, has_numbers = isdigit((unsigned char)*text);
    if (!is_off && !schedule_parse(text, &c->schedule))
        return usage_error("ctl: schedule: '%s' is not a schedule such as "
                           "'wait=1,warmup=1,active=3,repeat=2', '100-110' or 'off'",
                           text);
    if (own->at || (own->at_step && (is_off || has_numbers)))
        return usage_error("ctl: 'schedule %s' cannot be combined with --at or --at-step; leave it "
                           "out",
                           text);
    if (has_numbers)
        c->when = CONTROL_AT_STEP; /* these steps, from step 0 on */
    return EXIT_OK;
}

/* Fills the command, except its target. *is_ahead: `at` counts from the farthest process. */
static enum exit_code parse_command(const struct options *o, struct control_command *c,
                                    bool *is_ahead)
{
    const struct ctl_words *own = o->own;
    enum exit_code code = EXIT_OK;
    *c = (struct control_command){0};
    *is_ahead = false;
    unsigned what = o->path_count < 2 ? CONTROL_WATCH : 0; /* WATCH: none of the words */
    while (what < CONTROL_WATCH && strcmp(control_word(what), o->paths[1]) != 0)
        what++;
    if (what == CONTROL_WATCH || o->path_count != 2 + (what == CONTROL_SCHEDULE))
        return usage_error("ctl: name a data folder and one of start, stop, status, dump and "
                           "'schedule STEPS'; try 'gpuprof help ctl'");
    c->what = (enum control_what)what;
    if (c->what == CONTROL_STATUS && (own->at || own->at_step))
        return usage_error(
            "ctl: status shows the present; --at and --at-step need another command");
    if (own->at && own->at_step)
        return usage_error("ctl: --at and --at-step cannot be combined; give one of them");
    if (c->what == CONTROL_SCHEDULE)
        code = parse_schedule(o, c);
    if (code == EXIT_OK && own->at)
        code = parse_time(own->at, c);
    if (code == EXIT_OK && own->at_step)
        code = parse_step(own->at_step, c, is_ahead);
    return code;
}

/* ---- the processes --------------------------------------------------------------------------- */

struct ctl {
    struct ctl_folder folder;
    struct ctl_options which;
    struct control_command asked; /* the command for all, or for each selected process */
    struct control_command commands[NAMED_MAX];
    size_t command_count;
};

/* Makes one command for all, or one for each selected process. */
static enum exit_code make_commands(struct ctl *c)
{
    bool is_for_all = !c->which.pid && c->which.rank == RANK_NONE;
    size_t meant = 0;
    c->command_count = 0;
    for (size_t i = 0; i < c->folder.count; i++) {
        struct ctl_process *p = &c->folder.processes[i];
        p->is_meant = !p->has_ended && ctl_process_is_named(p, &c->which);
        p->has_answered = false;
        meant += p->is_meant;
        if (!p->is_meant || (is_for_all && c->command_count))
            continue;
        if (c->command_count == NAMED_MAX)
            return usage_error("ctl: more than %d processes match", NAMED_MAX);
        struct control_command *command = &c->commands[c->command_count++];
        *command = c->asked;
        command->is_for_all = is_for_all;
        memcpy(command->process_id, p->header.process_id, sizeof command->process_id);
        if (getrandom(&command->id, sizeof command->id, 0) != sizeof command->id)
            return EXIT_ENVIRONMENT;
        p->command = command->id;
    }
    return meant ? EXIT_OK
                 : usage_error("ctl: no matching process records into '%s' now", c->folder.path);
}

/* Adds processes that appeared meanwhile to a command for all. */
static void enrol(struct ctl *c)
{
    for (size_t i = 0; i < c->folder.count && c->commands[0].is_for_all; i++) {
        struct ctl_process *p = &c->folder.processes[i];
        p->is_meant |= !p->has_ended;
        p->command = c->commands[0].id;
    }
}

/* Looks for answers. Returns whether all have answered or ended. */
static bool look_at_all(struct ctl *c)
{
    bool is_all = true;
    for (size_t i = 0; i < c->folder.count; i++) {
        struct ctl_process *p = &c->folder.processes[i];
        if (!p->is_meant || p->has_answered || p->has_ended)
            continue;
        bool is_read = ctl_process_read(p);
        for (unsigned k = 0; is_read && k < p->status.count; k++)
            p->has_answered |= p->status.answered[k] == p->command;
        p->has_ended = !p->has_answered && live_owner(&p->header) == LIVE_OWNER_ENDED;
        is_all &= p->has_answered || p->has_ended;
    }
    return is_all;
}

static int wait_for_all(struct ctl *c)
{
    double seconds = c->which.timeout < 0 ? SECONDS_USUAL : c->which.timeout;
    double end = monotonic_seconds() + seconds, next = 0;
    for (;;) {
        if (monotonic_seconds() >= next) {
            int error = ctl_folder_look(&c->folder);
            enrol(c);
            if (error == 0 && !look_at_all(c))
                error = ctl_folder_report(&c->folder, c->commands, c->command_count);
            if (error < 0)
                return error;
            next = monotonic_seconds() + 1;
        }
        if (look_at_all(c) || monotonic_seconds() >= end)
            return 0;
        usleep(LOOK_US);
    }
}

/* Sends the command to the selected processes and waits for their answers. */
static enum exit_code send_command(struct ctl *c)
{
    enum exit_code code = make_commands(c);
    int error = code == EXIT_OK ? wait_for_all(c) : 0;
    return error < 0 ? ctl_folder_failed(&c->folder, "ctl", error) : code;
}

/* Asks all processes for their status first. */
static enum exit_code ask_status(struct ctl *c)
{
    struct control_command asked = c->asked;
    c->asked = (struct control_command){.what = CONTROL_STATUS};
    enum exit_code code = send_command(c);
    c->asked = asked;
    return code;
}

/* Asks processes for their rank if their files lack it (a flight recorder's are empty). */
static enum exit_code find_ranks(struct ctl *c)
{
    const uint64_t rank = c->which.rank;
    bool is_known = true;
    for (size_t i = 0; i < c->folder.count; i++)
        is_known &= c->folder.processes[i].has_ended || c->folder.processes[i].rank != RANK_NONE;
    if (rank == RANK_NONE || is_known)
        return EXIT_OK;
    c->which.rank = RANK_NONE;
    enum exit_code code = ask_status(c);
    c->which.rank = rank;
    return code;
}

/* Counts the requested step from the process that is farthest. */
static enum exit_code find_step(struct ctl *c)
{
    uint64_t farthest = CONTROL_UNKNOWN;
    enum exit_code code = ask_status(c);
    for (size_t i = 0; i < c->folder.count; i++) {
        const struct ctl_process *p = &c->folder.processes[i];
        uint64_t step =
            p->is_meant && p->has_answered ? p->status.figures[FIGURE_STEP] : CONTROL_UNKNOWN;
        if (step < SCHEDULE_STEPS_MAX && (farthest == CONTROL_UNKNOWN || step > farthest))
            farthest = step;
    }
    if (code != EXIT_OK || farthest == CONTROL_UNKNOWN)
        return code != EXIT_OK ? code
                               : usage_error("ctl: no process has begun a step yet; give the "
                                             "step's number: --at-step=N");
    c->asked.at += farthest;
    printf("at step %" PRIu64 ":\n", c->asked.at);
    return EXIT_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The answer to its command; ANSWER_DONE if there is none. */
static enum control_answer answer_of(const struct ctl_process *p)
{
    for (unsigned i = 0; i < p->status.count; i++)
        if (p->status.answered[i] == p->command)
            return p->status.answers[i];
    return ANSWER_DONE;
}

/* Whether the process did, or will do, what it was asked to, or has ended. */
static bool is_well(const struct ctl_process *p)
{
    return p->has_answered ? answer_of(p) == ANSWER_DONE : p->has_ended;
}

static void print_wait(const struct control_wait *w)
{
    time_t seconds = (time_t)(w->at / 1000000000u);
    char text[32];
    if (w->when == CONTROL_AT_TIME)
        strftime(text, sizeof text, "%H:%M:%S", localtime(&seconds));
    else
        snprintf(text, sizeof text, "step %" PRIu64, w->at);
    printf("; %s at %s", control_word(w->what), text);
}

/* Says why the process cannot obey, or not at that step. */
static const char *refusal(const struct ctl_process *p, enum control_what asked)
{
    if (answer_of(p) == ANSWER_LATE)
        return asked == CONTROL_SCHEDULE
                   ? "; that step is over: it records the rest of the first window"
                   : "; that step is over, so it takes place at the next step";
    if (asked == CONTROL_DUMP)
        return "; it has no flight recorder; start it with 'gpuprof run --flight=30s'";
    if (asked == CONTROL_SCHEDULE && p->status.has_flight)
        return "; its flight recorder records everything, so it takes no schedule";
    return "; it has too many commands waiting";
}

/* Prints a line: the process, and its status if it answered. */
static void print_process(const struct ctl_process *p, enum control_what asked)
{
    static const char *const who[] = {"the program", "gpuprof ctl", "its windows"};
    const struct control_status *s = &p->status;
    const char *between = ": stopped by ";
    printf("pid %u on %s", p->header.pid, p->header.host);
    if (p->rank != RANK_NONE)
        printf(" (rank %" PRIu64 ")", p->rank);
    if (!p->has_answered) {
        puts(p->has_ended ? ": has ended" : ": did not answer");
        return;
    }
    if (!s->stopped)
        fputs(": recording", stdout);
    for (unsigned i = 0; i < sizeof who / sizeof who[0]; i++)
        if (s->stopped >> i & 1) {
            printf("%s%s", between, who[i]);
            between = " and ";
        }
    if (s->figures[FIGURE_STEP] != CONTROL_UNKNOWN)
        printf("; step %" PRIu64, s->figures[FIGURE_STEP]);
    for (unsigned i = 0; i < s->wait_count; i++)
        print_wait(&s->waits[i]);
    if (s->has_flight)
        printf("; its flight recorder has written %" PRIu64 " dump%s", s->dumps,
               plural_end(s->dumps));
    puts(is_well(p) ? "" : refusal(p, asked));
}

/* Of many processes, prints a sum, and a line for those that are not well. */
static enum exit_code print_answers(const struct ctl *c)
{
    const struct ctl_process *all = c->folder.processes, *end = all + c->folder.count;
    size_t meant = 0, answered = 0, recording = 0, missing = 0, unwell = 0;
    for (const struct ctl_process *p = all; p < end; p++) {
        meant += p->is_meant;
        answered += p->is_meant && p->has_answered;
        recording += p->is_meant && p->has_answered && !p->status.stopped;
        missing += p->is_meant && !p->has_answered && !p->has_ended;
        unwell += p->is_meant && !is_well(p);
    }
    if (meant > NAMED_MAX)
        printf("%zu processes answered: %zu record, %zu do not; %zu did not answer\n", answered,
               recording, answered - recording, missing);
    for (const struct ctl_process *p = all; p < end; p++)
        if (p->is_meant && (meant <= NAMED_MAX || !is_well(p)))
            print_process(p, c->asked.what);
    enum exit_code code = standard_output_end();
    return code != EXIT_OK ? code : unwell ? EXIT_ENVIRONMENT : EXIT_OK;
}

static enum exit_code ctl_run(const struct options *options)
{
    const struct ctl_words *own = options->own;
    struct ctl c = {.which = own->which};
    bool is_ahead;
    enum exit_code code = parse_command(options, &c.asked, &is_ahead);
    if (code != EXIT_OK)
        return code;
    c.folder.path = options->paths[0];
    c.folder.needs_ranks = own->which.rank != RANK_NONE;
    int error = ctl_folder_look(&c.folder);
    if (error < 0)
        code = ctl_folder_failed(&c.folder, "ctl", error);
    if (code == EXIT_OK)
        code = find_ranks(&c);
    if (code == EXIT_OK && is_ahead)
        code = find_step(&c);
    if (code == EXIT_OK)
        code = send_command(&c);
    if (code == EXIT_OK)
        code = print_answers(&c);
    ctl_folder_release(&c.folder);
    return code;
}

static const struct option own_options[] = {
    {OPTIONS_OF(ctl_options, 0), .at = offsetof(struct ctl_words, which)},
    {0, "at", "TIME", OPTION_TEXT(struct ctl_words, at),
     "Do it at this time: 2026-11-23T18:00:00 (local, or with Z or +01:00), 18:00, +30s, or "
     "@SECONDS since 1970; default: now"},
    {0, "at-step", "N|+N", OPTION_TEXT(struct ctl_words, at_step),
     "Do it at this step in all ranks; +N: N steps ahead of the rank that is farthest"},
    {0},
};

VERB_IS(ctl, ctl_run, own_options, VERB_OWN(struct ctl_words, .which = CTL_OPTIONS_USUAL), 0,
        "DIR start|stop|status|dump|schedule STEPS",
        "start or stop recording in running processes, ask for their state, or dump what --flight "
        "keeps",
        {PART_EXAMPLE, "gpuprof ctl data stop",
         "stop recording in all processes of the folder, until 'gpuprof ctl data start'"},
        {PART_EXAMPLE, "gpuprof ctl data dump",
         "write what the flight recorders of all processes keep (run --flight=30s)"},
        {PART_EXAMPLE, "gpuprof ctl data --rank=3 status", "ask whether that rank records"},
        {PART_EXAMPLE, "gpuprof ctl data stop --at-step=+20",
         "stop all ranks at the same step, 20 ahead of the farthest"},
        {PART_EXAMPLE, "gpuprof ctl data schedule 500-510", "record only these steps"},
        {PART_FILE, "DIR/control", "the commands; DIR/*.status: the answers"},
        {PART_STATUS, "0", "all processes answered, or ended"},
        {PART_STATUS, "1",
         "some did not answer, are past that step, or cannot obey; or input or output failed"},
        {PART_STATUS, "2", "a wrong option, or no such process records there now"});
