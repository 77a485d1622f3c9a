/* SPDX-License-Identifier: Apache-2.0 */
#include "control_text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_HEAD   "gpuprof-control 1\n"
#define STATUS_HEAD "gpuprof-status 1\n"
#define END         "end\n" /* without it the file is incomplete */
#define ID_DIGITS   16

static const char *const words[CONTROL_WHATS] = {
    [CONTROL_START] = "start", [CONTROL_STOP] = "stop",         [CONTROL_STATUS] = "status",
    [CONTROL_DUMP] = "dump",   [CONTROL_SCHEDULE] = "schedule", [CONTROL_WATCH] = "watch",
};
static const char *const moments[] = {
    [CONTROL_AT_ONCE] = "", [CONTROL_AT_STEP] = " step ", [CONTROL_AT_TIME] = " time "};
static const char *const answers[CONTROL_ANSWERS] = {
    [ANSWER_DONE] = "answered ", [ANSWER_LATE] = "late ", [ANSWER_REFUSED] = "refused "};
static const char *const figures[CONTROL_FIGURES] = {
    [FIGURE_RANK] = "rank ",
    [FIGURE_NOW_NS] = "now_ns ",
    [FIGURE_CALLS] = "calls ",
    [FIGURE_LAUNCHES] = "launches ",
    [FIGURE_BUSY_NS] = "busy_ns ",
    [FIGURE_DEVICES] = "devices ",
    [FIGURE_HELD_BYTES] = "held_bytes ",
    [FIGURE_TENSOR_BYTES] = "tensor_bytes ",
    [FIGURE_RESERVED_BYTES] = "reserved_bytes ",
    [FIGURE_STEPS] = "steps ",
    [FIGURE_STEP] = "step ",
    [FIGURE_STEP_BEGIN_NS] = "step_begin_ns ",
    [FIGURE_STEP_NS] = "step_ns ",
    [FIGURE_STEP_MEDIAN_NS] = "step_median_ns ",
    [FIGURE_OPEN_NS] = "open_ns ",
    [FIGURE_WINDOW] = "window ",
    [FIGURE_QUIET_NS] = "quiet_ns ",
};

const char *control_word(unsigned what)
{
    return what < CONTROL_WHATS ? words[what] : NULL;
}

/* The rest of a file; nothing is read beyond `end`. */
struct rest {
    const char *at, *end;
};

static bool control_text_take(struct rest *r, const char *text)
{
    size_t length = strlen(text);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, text, length) != 0)
        return false;
    r->at += length;
    return true;
}

static bool take_hex(struct rest *r, uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    if ((size_t)(r->end - r->at) < 2 * count)
        return false;
    for (size_t i = 0; i < 2 * count; i++) {
        const char *digit = memchr(digits, r->at[i], 16);
        if (!digit)
            return false;
        bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (digit - digits));
    }
    r->at += 2 * count;
    return true;
}

static bool take_id(struct rest *r, uint64_t *id)
{
    uint8_t bytes[ID_DIGITS / 2] = {0};
    if (!take_hex(r, bytes, sizeof bytes))
        return false;
    *id = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        *id = *id << 8 | bytes[i];
    return true;
}

/* Returns the index of the next text; `count`: none of them. */
static unsigned take_one(struct rest *r, const char *const *texts, unsigned count)
{
    unsigned i = 0;
    while (i < count && !control_text_take(r, texts[i]))
        i++;
    return i;
}

static bool take_what(struct rest *r, enum control_what *what)
{
    *what = (enum control_what)take_one(r, words, CONTROL_WHATS);
    return *what < CONTROL_WHATS;
}

static bool take_when(struct rest *r, enum control_when *when, uint64_t *at)
{
    *when = control_text_take(r, moments[CONTROL_AT_STEP])   ? CONTROL_AT_STEP
            : control_text_take(r, moments[CONTROL_AT_TIME]) ? CONTROL_AT_TIME
                                                             : CONTROL_AT_ONCE;
    return *when == CONTROL_AT_ONCE || take_id(r, at);
}

/* Reads its numbers, within the limits of --schedule. */
static bool take_schedule(struct rest *r, struct schedule *s)
{
    uint64_t *numbers[] = {&s->skip_first, &s->wait,   &s->warmup,
                           &s->active,     &s->repeat, &s->skip_first_wait};
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!control_text_take(r, " ") || !take_id(r, numbers[i]) ||
            *numbers[i] > SCHEDULE_STEPS_MAX)
            return false;
    return true;
}

static bool take_command(struct rest *r, struct control_command *c)
{
    memset(c, 0, sizeof *c);
    if (!take_id(r, &c->id) || !control_text_take(r, " "))
        return false;
    c->is_for_all = control_text_take(r, "all");
    if (!c->is_for_all && !take_hex(r, c->process_id, sizeof c->process_id))
        return false;
    return control_text_take(r, " ") && take_what(r, &c->what) &&
           (c->what != CONTROL_SCHEDULE || take_schedule(r, &c->schedule)) &&
           take_when(r, &c->when, &c->at) && control_text_take(r, "\n");
}

bool control_text_parse(struct control_text *text, const char *data, size_t bytes)
{
    struct rest r = {data, data + bytes};
    text->count = 0;
    if (bytes > CONTROL_BYTES_MAX || !control_text_take(&r, TEXT_HEAD))
        return false;
    while (!control_text_take(&r, END))
        if (text->count == CONTROL_COMMANDS_MAX ||
            !take_command(&r, &text->commands[text->count++]))
            return false;
    return r.at == r.end;
}

void control_status_init(struct control_status *s)
{
    memset(s, 0, sizeof *s);
    for (unsigned i = 0; i < CONTROL_FIGURES; i++)
        s->figures[i] = CONTROL_UNKNOWN;
}

static bool take_name(struct rest *r, char *name)
{
    unsigned length = 0;
    for (; r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_'); r->at++)
        if (length < CONTROL_NAME_BYTES_MAX - 1)
            name[length++] = *r->at;
    name[length] = '\0';
    return length && control_text_take(r, "\n");
}

static bool control_text_take_wait(struct rest *r, struct control_status *s)
{
    if (s->wait_count == CONTROL_WAITS_MAX)
        return false;
    struct control_wait *w = &s->waits[s->wait_count++];
    return take_what(r, &w->what) && take_when(r, &w->when, &w->at) && control_text_take(r, "\n");
}

static bool control_text_take_answer(struct rest *r, struct control_status *s)
{
    unsigned which = take_one(r, answers, CONTROL_ANSWERS);
    if (s->count == CONTROL_COMMANDS_MAX || which == CONTROL_ANSWERS)
        return false;
    s->answers[s->count] = (enum control_answer)which;
    return take_id(r, &s->answered[s->count++]) && control_text_take(r, "\n");
}

bool control_status_parse(struct control_status *s, const char *data, size_t bytes)
{
    struct rest r = {data, data + bytes};
    control_status_init(s);
    if (bytes > CONTROL_BYTES_MAX || !control_text_take(&r, STATUS_HEAD) ||
        !control_text_take(&r, "process ") || !take_hex(&r, s->process_id, sizeof s->process_id) ||
        !control_text_take(&r, "\nstopped ") || r.at == r.end || *r.at < '0' || *r.at > '7')
        return false;
    s->stopped = (uint32_t)(*r.at++ - '0');
    if (!control_text_take(&r, "\n"))
        return false;
    s->has_flight = control_text_take(&r, "dumps ");
    if (s->has_flight && (!take_id(&r, &s->dumps) || !control_text_take(&r, "\n")))
        return false;
    for (unsigned i = 0; i < CONTROL_FIGURES; i++)
        if (control_text_take(&r, figures[i]) &&
            (!take_id(&r, &s->figures[i]) || !control_text_take(&r, "\n")))
            return false;
    if (control_text_take(&r, "open_call ") && !take_name(&r, s->open_call))
        return false;
    while (control_text_take(&r, "waits "))
        if (!control_text_take_wait(&r, s))
            return false;
    while (!control_text_take(&r, END))
        if (!control_text_take_answer(&r, s))
            return false;
    return r.at == r.end;
}

__attribute__((format(printf, 3, 4))) static void control_text_put(char *out, size_t *at,
                                                                   const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(out + *at, CONTROL_BYTES_MAX - *at, format, list);
    va_end(list);
    *at += length > 0 ? (size_t)length : 0; /* there is space: see below */
}

static void control_text_put_process(char *out, size_t *at, const uint8_t id[16])
{
    for (unsigned i = 0; i < 16; i++)
        control_text_put(out, at, "%02x", id[i]);
}

/* The longest file has 32 schedules of less than 200 bytes each; the longest status has 32 lines of
 * each kind, of less than 60 bytes. */
_Static_assert(CONTROL_COMMANDS_MAX * 200 + 100 < CONTROL_BYTES_MAX, "commands fit");
_Static_assert((CONTROL_COMMANDS_MAX + CONTROL_WAITS_MAX + CONTROL_FIGURES) * 60 + 200 <
                   CONTROL_BYTES_MAX,
               "answers fit");

static void put_id(char *out, size_t *at, const char *before, uint64_t id, const char *behind)
{
    control_text_put(out, at, "%s%016llx%s", before, (unsigned long long)id, behind);
}

static void put_when(char *out, size_t *at, enum control_when when, uint64_t moment)
{
    if (when != CONTROL_AT_ONCE)
        put_id(out, at, moments[when], moment, "");
    control_text_put(out, at, "\n");
}

size_t control_text_write(const struct control_text *text, char *out)
{
    size_t at = 0;
    control_text_put(out, &at, TEXT_HEAD);
    for (unsigned i = 0; i < text->count; i++) {
        const struct control_command *c = &text->commands[i];
        const struct schedule *s = &c->schedule;
        const uint64_t numbers[] = {s->skip_first, s->wait,   s->warmup,
                                    s->active,     s->repeat, s->skip_first_wait};
        put_id(out, &at, "", c->id, " ");
        if (c->is_for_all)
            control_text_put(out, &at, "all");
        else
            control_text_put_process(out, &at, c->process_id);
        control_text_put(out, &at, " %s", words[c->what]);
        for (unsigned k = 0; c->what == CONTROL_SCHEDULE && k < sizeof numbers / sizeof *numbers;
             k++)
            put_id(out, &at, " ", numbers[k], "");
        put_when(out, &at, c->when, c->at);
    }
    control_text_put(out, &at, END);
    return at;
}

size_t control_status_write(const struct control_status *s, char *out)
{
    size_t at = 0;
    control_text_put(out, &at, STATUS_HEAD "process ");
    control_text_put_process(out, &at, s->process_id);
    control_text_put(out, &at, "\nstopped %u\n", s->stopped & 7);
    if (s->has_flight)
        put_id(out, &at, "dumps ", s->dumps, "\n");
    for (unsigned i = 0; i < CONTROL_FIGURES; i++)
        if (s->figures[i] != CONTROL_UNKNOWN)
            put_id(out, &at, figures[i], s->figures[i], "\n");
    if (*s->open_call)
        control_text_put(out, &at, "open_call %s\n", s->open_call);
    for (unsigned i = 0; i < s->wait_count; i++) {
        control_text_put(out, &at, "waits %s", words[s->waits[i].what]);
        put_when(out, &at, s->waits[i].when, s->waits[i].at);
    }
    for (unsigned i = 0; i < s->count; i++)
        put_id(out, &at, answers[s->answers[i]], s->answered[i], "\n");
    control_text_put(out, &at, END);
    return at;
}

/* Do later commands leave anything of this one for processes that start later? */
static bool is_needed(const struct control_text *text, unsigned index)
{
    const struct control_command *c = &text->commands[index];
    if (!c->is_for_all || !control_lasts(c->what))
        return false;
    for (unsigned i = index + 1; i < text->count; i++) {
        const struct control_command *later = &text->commands[i];
        bool is_alike = (later->what == CONTROL_SCHEDULE) == (c->what == CONTROL_SCHEDULE);
        if (later->is_for_all && control_lasts(later->what) && is_alike &&
            (later->when == CONTROL_AT_ONCE || c->what == CONTROL_SCHEDULE))
            return false;
    }
    return true;
}

static void control_text_take_out(struct control_text *text, unsigned index)
{
    memmove(&text->commands[index], &text->commands[index + 1],
            (--text->count - index) * sizeof text->commands[0]);
}

void control_text_add(struct control_text *text, const struct control_command *command)
{
    unsigned index = 0;
    for (unsigned i = text->count; command->what == CONTROL_WATCH && i-- > 0;)
        if (text->commands[i].what == CONTROL_WATCH)
            control_text_take_out(text, i);
    if (text->count == CONTROL_COMMANDS_MAX) {
        while (index < text->count && is_needed(text, index))
            index++;
        control_text_take_out(text, index < text->count ? index : 0);
    }
    text->commands[text->count++] = *command;
}

bool control_text_has(const struct control_text *text, uint64_t id)
{
    for (unsigned i = 0; i < text->count; i++)
        if (text->commands[i].id == id)
            return true;
    return false;
}
