/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows that idle time of devices is charged to: one for each process, device, thread, cause and
 * place. Memory: 168 bytes a row, 8 to 16 for its number and its texts, up to IDLE_ROWS_MAX rows.
 * Beyond that a new place is dropped: its time goes to one row for each device and cause.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_ROWS_H
#define GPUPROF_COLLECTOR_IDLE_ROWS_H

#include "analyse/place_lines.h"
#include "base/key_map.h"
#include "resolve/event_walk.h"

#define IDLE_ROWS_MAX (1u << 16)
#define IDLE_NONE     UINT32_MAX /* no thread, no function */

enum idle_cause {
#define CAUSE(NAME, word, key) IDLE_##NAME,
#include "analyse/idle_causes.def"
    IDLE_CAUSES
};

extern const char *const idle_cause_words[IDLE_CAUSES];

/* Is all of it divided by what the thread did, if that was recorded? */
static inline bool idle_cause_is_split(enum idle_cause cause)
{
    return cause == IDLE_HOST || cause == IDLE_WAITING || cause == IDLE_PREEMPTED ||
           cause == IDLE_LOADER;
}

/* What `word` of a place is. The word names the place if no stack with a line does. */
enum idle_word {
    IDLE_WORD_NONE,
    IDLE_WORD_NAME,   /* a view of a struct kernel_name: an operator's, a label's, a range's */
    IDLE_WORD_OURS,   /* a view of a fixed text, shown alone */
    IDLE_WORD_DEVICE, /* the device waited for: process index, and the device above 32 bits */
    IDLE_WORD_HOLDER, /* tid of the thread that held what was waited for; 0: not known */
};

/* Where idle time lies relative to the thread's call. */
enum idle_side {
    IDLE_AT,      /* in the call or around it, or not known */
    IDLE_TOWARDS, /* before the call, in its operator or range */
    IDLE_BEFORE,  /* before that operator or range, too */
    IDLE_AFTER,   /* after the call, which waited */
    IDLE_SIDES
};

#define IDLE_LATE UINT16_MAX /* an epoch that is never start-up */

struct idle_place {
    uint64_t word;
    uint32_t stack;    /* number of a STACK record; 0: none */
    uint32_t function; /* struct function index, or IDLE_NONE */
    uint32_t kind;     /* enum idle_word */
    uint8_t is_open;   /* 1: a call that never returned; its time has a row of its own */
    uint8_t side;      /* enum idle_side */
    uint16_t epoch;    /* from idle_epoch; 0 after idle_finish */
    /* For time before a call: where the thread came from, likewise. */
    uint64_t from_word;
    uint32_t from_stack;
    uint32_t from_function; /* function index + 1; 0: not known */
    uint64_t from_kind;     /* 64 bits, since places are compared as bytes */
};

_Static_assert(sizeof(struct idle_place) == 48, "no byte of a place is left out");

/* True if both are the same call in the same place. */
static inline bool idle_place_same(const struct idle_place *a, const struct idle_place *b)
{
    return a->word == b->word && a->stack == b->stack && a->function == b->function &&
           a->kind == b->kind;
}

/* The gaps that a row has parts of. */
struct idle_row_gaps {
    uint64_t gap;       /* number of the last one, ... */
    uint64_t gap_ns;    /* ... the row's part of it, ... */
    uint64_t gap_at_ns; /* ... and its begin */
    uint64_t first_gap; /* number of the first one */
    uint64_t first_ns;
};

struct idle_row {
    struct idle_place place;
    uint32_t process; /* index */
    uint32_t device;  /* place in struct idle's devices */
    uint32_t thread;  /* index, or IDLE_NONE */
    uint32_t cause;   /* enum idle_cause */
    uint32_t
        did; /* enum thread_did (idle_host.c); 0: all of it. Members up to here are the row's key */
    uint64_t ns;
    uint64_t count;         /* gaps that it has a part of */
    uint64_t longest_ns;    /* largest part of one gap, ... */
    uint64_t longest_at_ns; /* ... and the begin of that part */
    struct idle_row_gaps its;
    /* From here on: once named (idle_name), or from a part; the texts are owned. */
    char *text;          /* NULL: not named yet */
    char *where;         /* the same if it is a line, operator or range; else NULL */
    uint32_t tid;        /* of the thread; 0: none, or not known */
    uint32_t work_share; /* of its process's device work that the thread launched, in millionths;
                            IDLE_NONE: not known */
};

/* The longest gap since the owner reset it to 0, and the row with the largest part of it. */
struct idle_rest {
    uint64_t ns;
    uint32_t row;
};

struct idle_rows {
    struct idle_row *list; /* owned */
    uint32_t count;
    uint32_t last; /* index of the row added to last */
    struct number_set numbers;
    uint64_t gap;           /* number of the gap being charged, from 1 on */
    uint64_t host_ns;       /* so far: time in which the program's own code ran, or could have */
    struct idle_rest *rest; /* updated with each gap; NULL: none */
};

void idle_rows_release(struct idle_rows *r);

/* Add to the row with the key of `what`: `ns` from `at_ns` on; `count` gaps with a known longest
 * one (returns the row, a view); or later gaps, numbered by the same owner, of which the first may
 * be one that began in the row here. */
void idle_rows_add(struct idle_rows *r, const struct idle_row *what, uint64_t at_ns, uint64_t ns);
struct idle_row *idle_rows_add_sum(struct idle_rows *r, const struct idle_row *sum);
void idle_rows_join(struct idle_rows *r, const struct idle_row *later);

/* The places of a device's own idle time: queued work that has not begun, and a gap that no work
 * ends. */
extern const char idle_on_device[], idle_behind_all[];

static inline struct idle_place idle_text(const char *ours)
{
    return (struct idle_place){
        .word = (uintptr_t)ours, .function = IDLE_NONE, .kind = IDLE_WORD_OURS};
}

/* ---- texts of places ------------------------------------------------------------------------ */

/* Requests the source lines of a place. */
void idle_place_want(struct place_lines *lines, uint32_t process, const struct idle_place *place);

/* Names a row, once lines have been looked up: "train (train.py:17)", an operator, a range, a
 * function, "after" or "before" one of these, or "between" two; or what the thread did there. */
void idle_row_name(const struct walk *walk, struct place_lines *lines, struct idle_row *row);

/* A named row of what a thread did (idle_host.c) as new text with that in front, unless it ran:
 * "lock: put (data.py:12)". Other rows' own text. */
char *idle_did_text(const struct idle_row *row);

/* The preposition for such a text in a sentence: "at ", or "" if the text has its own. */
const char *idle_at(const char *place);

/*
 * Numbered places in the program: where device work was launched (the innermost line of the
 * launching call that is the user's own, else its operator, else its range), or where a device was
 * idle. Numbers start at 1; 0 is not known. Memory: 80 to 96 bytes a place and its text,
 * WORK_PLACES_MAX at most; later places are not known.
 */
#define WORK_PLACES_MAX (1u << 16)

struct work_place {
    struct idle_place place;
    uint32_t process; /* index */
    uint32_t cause;   /* 0, or for arrivals; the key ends here */
    bool is_wanted;   /* its text is requested */
    char *text;       /* owned; NULL: not known */
};

struct work_places {
    struct walk *walk;       /* a view */
    struct work_place *list; /* owned */
    uint32_t count;
    struct number_set numbers;
    bool has_all_texts;          /* texts of all places are requested, however little they say */
    struct correlated_call last; /* call of the last lookup */
    uint32_t last_number;
};

/* Zeroed, with `walk` set, at first. */
void work_places_release(struct work_places *p);

/* Call from a consumer with WALK_WORK for each slice with device work. Returns the place's number.
 */
uint32_t work_places_find(struct work_places *p, const struct slice *s);
static inline uint32_t work_places_take(struct work_places *p, const struct slice *s)
{
    /* Most calls have no place. */
    return s->is_called && s->call.stack | s->call.span ? work_places_find(p, s) : 0;
}

/* The call's stack, and its operator or else its range. */
struct idle_place work_place_of(struct walk *w, const struct correlated_call *call);

uint32_t work_places_number(struct work_places *p, const struct work_place *place);

/* Requests the text of a place. */
static inline void work_places_want(struct work_places *p, uint32_t number)
{
    if (number && number <= p->count)
        p->list[number - 1].is_wanted = true;
}

/* Then: request the lines of these places and, once they are looked up, make the texts. */
void work_places_add_lines(const struct work_places *p, struct place_lines *lines);
void work_places_name(struct work_places *p, struct place_lines *lines);

/* NULL: not known. */
static inline const struct work_place *work_places_at(const struct work_places *p, uint32_t number)
{
    return number && number <= p->count ? &p->list[number - 1] : NULL;
}

#endif
