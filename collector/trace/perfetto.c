/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perfetto's own format: converts each event of the Chrome trace to packets as it is made. So both
 * formats agree row by row and argument by argument, with one writer. Times are ns since the
 * trace's origin, which a clock snapshot places in real time; names are interned; packets are
 * compressed, unless the whole file is.
 * Beyond Perfetto's documentation of track events: arrows use legacy fields, which bind two slices
 * at 8 bytes each. (flow_ids take 10, and chain all work of a call.) Other arrows go to the slice
 * open at their time, as in a Chrome trace. Perfetto itself has the row order (sort_index).
 * Device work uses ordinary track slices, not GPU render stages. Those are hardly smaller, have no
 * arrows from calls, and only the newest readers show their kernel arguments. Queries would also
 * need other places and names than for JSON. CPU samples do use Perfetto's own format
 * (track_packets.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"
#include "resolve/selection.h"
#include "trace/trace_writer.h"
#include "trace/track_packets.h"

#define DEPTH_MAX 16

enum texts { CATEGORIES, NAMES, KEYS, STRINGS, TEXTS };

struct trace_writer {
    struct trace_writer *chrome;
    struct output chrome_out; /* whose text goes to take_text */
    struct packet text;       /* not taken yet */
    struct track_packets packets;
    struct kernel_names texts[TEXTS];
    uint64_t origin_ns;      /* origin of all times */
    uint64_t from_ns, to_ns; /* of a selected time; else 0 */
};

/* ---- texts ----------------------------------------------------------------------------------- */

/* Field numbers for a text: its interned table, and the event's fields for its number and for the
 * text itself. */
struct text_fields {
    unsigned table, as_number, as_text;
};
static const struct text_fields text_fields[TEXTS] = {
    [CATEGORIES] = {INTERNED_CATEGORY, EVENT_CATEGORY, EVENT_CATEGORY_TEXT},
    [NAMES] = {INTERNED_NAME, EVENT_NAME, EVENT_NAME_TEXT},
    [KEYS] = {INTERNED_KEY, ANNOTATION_KEY, ANNOTATION_KEY_TEXT},
    [STRINGS] = {INTERNED_STRING, ANNOTATION_STRING, ANNOTATION_TEXT},
};

static void put_interned(struct trace_writer *w, enum texts kind, struct json_piece string)
{
    const struct text_fields *fields = &text_fields[kind];
    uint32_t before = w->texts[kind].count;
    const struct kernel_name *text = kernel_name_intern(&w->texts[kind], string.at, string.length);
    if (w->texts[kind].count > before) {
        size_t opened = packet_open(&w->packets.interned, fields->table);
        packet_number(&w->packets.interned, INTERNED_NUMBER, text->number);
        packet_string(&w->packets.interned, INTERNED_TEXT, string);
        packet_close(&w->packets.interned, opened);
    }
    if (text)
        packet_number(&w->packets.event, fields->as_number, text->number);
    else
        packet_string(&w->packets.event, fields->as_text, string);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void put_items(struct trace_writer *w, unsigned field, struct json_piece items,
                      unsigned depth);

static void perfetto_put_value(struct trace_writer *w, struct json_piece value, unsigned depth)
{
    struct packet *p = &w->packets.event;
    int64_t number;
    if (json_is(value, '"'))
        put_interned(w, STRINGS, value);
    else if (json_is(value, 't') || json_is(value, 'f'))
        packet_number(p, ANNOTATION_BOOL, *value.at == 't');
    else if (json_is(value, '{'))
        put_items(w, ANNOTATION_ENTRY, value, depth);
    else if (json_is(value, '['))
        put_items(w, ANNOTATION_ITEM, value, depth);
    else if (json_whole(value, &number))
        packet_number(p, ANNOTATION_INT, (uint64_t)number);
    else if (!json_is(value, 'n'))
        packet_double(p, ANNOTATION_DOUBLE, json_double(value));
}

/* Writes each item of an object or array (empty: none) as that field. */
static void put_items(struct trace_writer *w, unsigned field, struct json_piece items,
                      unsigned depth)
{
    const char *at = items.at + 1;
    struct json_piece key, value;
    while (items.length && depth <= DEPTH_MAX &&
           json_next(&at, items.at + items.length, &key, &value)) {
        size_t opened = packet_open(&w->packets.event, field);
        if (key.length)
            put_interned(w, KEYS, key);
        perfetto_put_value(w, value, depth + 1);
        packet_close(&w->packets.event, opened);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

enum member { PH, CAT, NAME, PID, TID, TS, DUR, ID, SCOPE, BIND_ID, FLOW_OUT_OF, ARGS, MEMBERS };

/* Members after `args` are only for Chrome's viewers. */
static void read_members(struct json_piece event, struct json_piece *members)
{
    static const char *const keys[ARGS] = {"\"ph\"",  "\"cat\"",     "\"name\"",    "\"pid\"",
                                           "\"tid\"", "\"ts\"",      "\"dur\"",     "\"id\"",
                                           "\"s\"",   "\"bind_id\"", "\"flow_out\""};
    static const char args[] = ",\"args\":";
    const char *at = event.at + 1, *end = event.at + event.length;
    struct json_piece key, value;
    memset(members, 0, MEMBERS * sizeof *members);
    while (!members[ARGS].length && json_next(&at, end, &key, &value)) {
        for (unsigned i = 0; i < ARGS; i++)
            if (key.at[1] == keys[i][1] && strncmp(key.at, keys[i], key.length) == 0)
                members[i] = value;
        if ((size_t)(end - at) > sizeof args && memcmp(at, args, sizeof args - 1) == 0)
            members[ARGS] =
                (struct json_piece){at + sizeof args - 1, (size_t)(end - at) - sizeof args + 1};
    }
}

/* Begins an event for a slice, instant or arrow end; arguments follow. */
static void begin_event(struct trace_writer *w, const struct json_piece *m, uint64_t track)
{
    packet_number(&w->packets.event, EVENT_TRACK, track);
    if (m[CAT].length)
        put_interned(w, CATEGORIES, m[CAT]);
    put_interned(w, NAMES, m[NAME]);
}

static void put_arrow(struct trace_writer *w, const struct json_piece *m, uint64_t track,
                      char phase)
{
    int64_t id;
    if (!json_whole(m[ID], &id))
        return;
    begin_event(w, m, track);
    size_t opened = packet_open(&w->packets.event, EVENT_LEGACY);
    packet_number(&w->packets.event, LEGACY_PHASE, (uint64_t)phase);
    packet_number(&w->packets.event, LEGACY_ID, (uint64_t)id);
    if (phase == 'f')
        packet_number(&w->packets.event, LEGACY_ENCLOSING, 1);
    packet_close(&w->packets.event, opened);
    track_packets_event(&w->packets, json_ns(m[TS]), PACKET_TRACK_EVENT, false);
}

static void put_counters(struct trace_writer *w, const struct json_piece *m, int64_t pid)
{
    const char *at = m[ARGS].at + 1;
    struct json_piece key, value;
    int64_t whole;
    while (m[ARGS].length && json_next(&at, m[ARGS].at + m[ARGS].length, &key, &value)) {
        uint64_t track = perfetto_counter(&w->packets, pid, m[NAME], key);
        packet_number(&w->packets.event, EVENT_TYPE, TYPE_COUNTER);
        packet_number(&w->packets.event, EVENT_TRACK, track);
        if (json_whole(value, &whole))
            packet_number(&w->packets.event, EVENT_WHOLE_COUNTER, (uint64_t)whole);
        else
            packet_double(&w->packets.event, EVENT_COUNTER, json_double(value));
        track_packets_event(&w->packets, json_ns(m[TS]), PACKET_TRACK_EVENT, false);
    }
}

static void put_name(struct trace_writer *w, const struct json_piece *m, int64_t pid, int64_t tid)
{
    static const struct {
        const char *name, *key;
        enum track kind;
        unsigned field;
    } names[] = {
        {"\"process_name\"", "name", TRACK_OF_PROCESS, PROCESS_NAME},
        {"\"process_labels\"", "labels", TRACK_OF_PROCESS, PROCESS_LABEL},
        {"\"thread_name\"", "name", TRACK_OF_THREAD, THREAD_DESCRIPTOR_NAME},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (word_is(m[NAME].at, m[NAME].length, names[i].name))
            perfetto_track(&w->packets, names[i].kind, pid,
                           names[i].kind == TRACK_OF_THREAD ? tid : 0, names[i].field,
                           json_member(m[ARGS], names[i].key));
}

/* Writes a slice begin or instant of `type` on a track, with its arguments. */
static void put_slice(struct trace_writer *w, const struct json_piece *m, uint64_t track,
                      unsigned type)
{
    uint64_t begin_ns = json_ns(m[TS]);
    int64_t bind_id;
    packet_number(&w->packets.event, EVENT_TYPE, type);
    begin_event(w, m, track);
    put_items(w, EVENT_ANNOTATION, m[ARGS], 0);
    if (json_whole(m[BIND_ID], &bind_id)) {
        size_t opened = packet_open(&w->packets.event, EVENT_LEGACY);
        packet_number(&w->packets.event, LEGACY_BIND_ID, (uint64_t)bind_id);
        packet_number(&w->packets.event, LEGACY_DIRECTION,
                      m[FLOW_OUT_OF].length ? FLOW_OUT : FLOW_IN);
        packet_close(&w->packets.event, opened);
    }
    track_packets_event(&w->packets, begin_ns, PACKET_TRACK_EVENT, false);
    if (type != TYPE_BEGIN)
        return;
    packet_number(&w->packets.event, EVENT_TYPE, TYPE_END);
    packet_number(&w->packets.event, EVENT_TRACK, track);
    track_packets_event(&w->packets, begin_ns + json_ns(m[DUR]), PACKET_TRACK_EVENT, true);
}

static void take_event(struct trace_writer *w, struct json_piece event)
{
    struct json_piece m[MEMBERS];
    int64_t pid, tid;
    read_members(event, m);
    if (m[PH].length != 3 || !json_whole(m[PID], &pid) || !json_whole(m[TID], &tid))
        return;
    char phase = m[PH].at[1], scope = m[SCOPE].length == 3 ? m[SCOPE].at[1] : 't';
    if (phase == 'C') {
        put_counters(w, m, pid);
        return;
    }
    if (phase == 'M') {
        put_name(w, m, pid, tid);
        return;
    }
    bool is_thread = scope != 'p';
    uint64_t track =
        scope == 'g' ? 0
                     : perfetto_track(&w->packets, is_thread ? TRACK_OF_THREAD : TRACK_OF_PROCESS,
                                      pid, is_thread ? tid : 0, 0, (struct json_piece){0});
    if (phase == 's' || phase == 'f')
        put_arrow(w, m, track, phase);
    else
        put_slice(w, m, track, phase == 'X' ? TYPE_BEGIN : TYPE_INSTANT);
}

/* ---- what stands around the events ----------------------------------------------------------- */

/* Writes the head or tail as one instant at the trace's begin with all its members. */
static void perfetto_put_around(struct trace_writer *w, struct json_piece object, const char *name)
{
    const struct json_piece m[MEMBERS] = {
        [CAT] = {"\"gpuprof\"", 9}, [NAME] = {name, strlen(name)}, [ARGS] = object};
    put_slice(w, m, 0, TYPE_INSTANT);
}

static void take_head(struct trace_writer *w, struct json_piece head)
{
    static const char end[] = "\"traceEvents\":[";
    const char *events = memmem(head.at, head.length, end, sizeof end - 1);
    head.length = events ? (size_t)(events - head.at) : head.length;
    track_packets_begin(&w->packets, w->origin_ns, w->from_ns, w->to_ns);
    perfetto_put_around(w, head, "\"trace\"");
}

/* ---- the text -------------------------------------------------------------------------------- */

/* Takes a line: the head, an event, or a part of the tail. */
static void perfetto_take_line(struct trace_writer *w, struct json_piece line)
{
    static const char head[] = "{\"schemaVersion\"", key[] = "\"otherData\":";
    if (line.length > sizeof head && memcmp(line.at, head, sizeof head - 1) == 0) {
        take_head(w, line);
    } else if (json_is(line, '{')) {
        take_event(w, line);
    } else if (json_is(line, ']')) {
        const char *other = memmem(line.at, line.length, key, sizeof key - 1);
        struct json_piece name, value;
        if (other && json_next(&other, line.at + line.length, &name, &value))
            perfetto_put_around(w, value, "\"recording\"");
    }
}

/* Takes complete lines and stores the rest. */
static int take_text(void *context, const char *data, size_t length)
{
    struct trace_writer *w = context;
    struct packet *text = &w->text;
    packet_append(text, data, length);
    const char *at = (const char *)text->bytes, *end = at + text->used, *newline;
    for (; (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
        perfetto_take_line(w, (struct json_piece){at, (size_t)(newline - at)});
    text->used = (size_t)(end - at);
    memmove(text->bytes, at, text->used);
    return w->packets.out->error;
}

/* Called when an event, and so its text, is complete. */
static void drain(struct trace_writer *w)
{
    struct packet *text = &w->text;
    output_drain(&w->chrome_out);
    perfetto_take_line(w, (struct json_piece){(const char *)text->bytes, text->used});
    text->used = 0;
    if (w->chrome_out.error && !w->packets.out->error)
        w->packets.out->error = w->chrome_out.error;
}

static void perfetto_free(struct trace_writer *w)
{
    chrome_format.free(w->chrome);
    output_finish(&w->chrome_out, 0);
    packet_release(&w->text);
    track_packets_release(&w->packets);
    for (unsigned i = 0; i < TEXTS; i++)
        kernel_names_release(&w->texts[i]);
    free(w);
}

static struct trace_writer *perfetto_create(struct output *out, struct walk *walk,
                                            const struct trace_scope *scope)
{
    struct trace_writer *w = memory_new(1, sizeof *w);
    w->origin_ns = walk->survey.origin_ns;
    if (scope->selection && !selection_time(scope->selection, &w->from_ns, &w->to_ns))
        w->to_ns = 0;
    w->packets = (struct track_packets){.out = out, .is_plain = out->zstream, .tree = scope->tree};
    output_open_sink(&w->chrome_out, take_text, w);
    w->chrome_out.room = out->room; /* a hostile file makes the text long, so the text has the
                                     * limit */
    out->room = NULL;
    struct trace_scope bound = *scope;
    bound.for_perfetto = true;
    bound.name = NULL; /* viewers show the file's name; this keeps the bytes independent of it */
    for (unsigned i = 0; i < TEXTS; i++)
        w->texts[i] = (struct kernel_names){.plain = true, .text_max = STRING_TABLE_BYTES};
    w->chrome = chrome_format.create(&w->chrome_out, walk, &bound);
    drain(w);
    return w;
}

static void perfetto_take(struct trace_writer *w, const struct slice *s)
{
    uint64_t at_ns = s->event.begin_ns, origin_ns = w->origin_ns;
    chrome_format.take(w->chrome, s);
    drain(w);
    if (!s->is_filtered)
        perfetto_sample(&w->packets, s, at_ns > origin_ns ? at_ns - origin_ns : 0);
}

static uint64_t perfetto_bytes(const struct trace_writer *w)
{
    return w->packets.written + w->packets.part.used;
}

static void perfetto_end(struct trace_writer *w)
{
    chrome_format.end(w->chrome);
    drain(w);
    track_packets_flush(&w->packets);
}

const struct trace_format perfetto_format = {
    .file = {"perfetto", "pftrace"},
    .create = perfetto_create,
    .take = perfetto_take,
    .bytes = perfetto_bytes,
    .end = perfetto_end,
    .free = perfetto_free,
};
