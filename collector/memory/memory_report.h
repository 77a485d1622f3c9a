/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who held the memory, and when: of each place (a process's memory on a device, or of the host) its
 * curve, its peak and what was live then by owner, what is left at the end, and how that grew from
 * step to step. All of it in one walk: what an owner had at the peak is kept when it changes for
 * the first time after that.
 *
 * Memory: MEMORY_PLACE_BYTES a place, 160 bytes for each owner in each place, as many as the files
 * bear out (what is beyond has one owner together), and 16 for each step in each place.
 */
#ifndef GPUPROF_COLLECTOR_MEMORY_REPORT_H
#define GPUPROF_COLLECTOR_MEMORY_REPORT_H

#include "base/key_map.h"
#include "memory/ledger.h"
#include "resolve/steps.h"

#define MEMORY_CURVE       240  /* pieces that the time of the recording is cut into */
#define MEMORY_PLACES_MAX  4096 /* of more nothing is kept, and it is said */
#define MEMORY_PLACE_BYTES 6000
#define MEMORY_OWNERS_FREE (1u << 16)
#define MEMORY_OWNERS_MAX  (1u << 21)
#define MEMORY_FILE_BYTES  16         /* that bear out one more owner */
#define MEMORY_MARKS_MAX   (1u << 22) /* steps in all places together */
#define MEMORY_SLICES      32         /* of a process that has no steps */
#define MEMORY_STEPS_MIN   4          /* whole ones: of fewer nothing grows */
#define MEMORY_OOMS_MAX    16
#define MEMORY_OOM_OWNERS  10
#define MEMORY_JUMPS_MAX   1000

#define MEMORY_RANGES_OPEN    64 /* of a process, that are followed at a time: a word has bits */
#define MEMORY_RANGE_ROWS_MAX (1u << 16)

/* Tensors lie in blocks that are the device's: the two are never added up. */
enum memory_where { MEMORY_OF_TENSORS, MEMORY_OF_DEVICE, MEMORY_OF_HOST, MEMORY_WHERES };

/* What the owner of a block of memory is, in the order of --by; and at which moment. */
enum memory_by {
    MEMORY_BY_LINE,
    MEMORY_BY_STACK,
    MEMORY_BY_OPERATOR,
    MEMORY_BY_FUNCTION,
    MEMORY_BY_KIND,
    MEMORY_BY_LIBRARY,
    MEMORY_BY_BEST
};
enum memory_at { MEMORY_AT_PEAK, MEMORY_AT_END, MEMORY_AT_TIME };

/* What an owner is. Of Python the innermost line of the user's own (own_line.h), or, where all are
 * of libraries, of these; a call without such lines has its operator's name, or its function's. */
struct memory_origin {
    enum memory_by by;
    uint32_t process; /* of a stack */
    uint32_t stack;
    uint32_t line;
    const struct kernel_name *file; /* of a line of Python */
    const struct kernel_name *name; /* its function; or of an operator, or a variable */
    const struct function *function;
    unsigned kind; /* enum ledger_kind, --by=kind */
};

/* Bytes and blocks. */
struct memory_amount {
    uint64_t bytes;
    uint64_t blocks;
};

/* What was there at the peak is known without a second walk: `live`, if nothing has changed since,
 * or what it was before the first change after that. */
struct memory_level {
    struct memory_amount live;
    struct memory_amount at_peak;
    uint64_t changed; /* number of the last change */
};

/* Sums over the ends of steps so far, for a straight line through them. */
struct memory_growth {
    double y, xy, yy;
    double neighbours;            /* of products of one with the next */
    uint64_t first, middle, last; /* at the end of the first step, of that in the middle ... */
    uint32_t steps;               /* that are in it */
};

struct memory_owner {
    uint32_t origin; /* in `origins` */
    uint32_t place;
    struct memory_level level;
    struct memory_amount got;
    struct memory_amount temporary; /* got and released within a step */
    struct memory_amount asked;     /* at the moment that was asked for */
    struct memory_growth growth;
};

struct memory_mark {
    uint64_t peak; /* bytes, within the step */
    uint64_t end;  /* at its end */
};

/* Of a device, what of it was in no book when somebody was asked last, each + 1; 0: nobody was. */
struct memory_said {
    uint64_t hidden[2]; /* by the program's answer, and by the lower one of two readings */
    uint64_t read;      /* by the last reading */
    uint64_t free;      /* by the program's answer: all that nobody uses */
};

struct memory_place {
    const struct process *process;
    uint32_t device; /* LEDGER_NO_DEVICE: not known */
    enum memory_where where;
    struct memory_amount live;
    struct memory_amount peak;
    struct {
        uint64_t ns;
        uint64_t change;   /* its number */
        uint64_t reserved; /* by the allocator of tensors */
    } peak_at;
    struct memory_amount got;
    struct memory_amount temporary;
    struct memory_amount asked;
    struct {
        struct memory_level level;
        struct memory_amount got;
    } kinds[LEDGER_KINDS];
    struct {
        uint64_t bytes; /* of one block, and whose */
        uint32_t origin;
    } largest;
    uint64_t reserved; /* of tensors: the most that their allocator had */
    uint64_t total;    /* bytes that the device has; 0: not known */
    struct {
        uint64_t max[MEMORY_CURVE];
        uint64_t end[MEMORY_CURVE];
        uint32_t at;
    } curve;
    struct {
        struct memory_mark *list; /* owned; a step each */
        uint32_t count;           /* that it will have */
        uint32_t done;            /* that have ended */
        uint64_t peak;            /* since the last one's end */
        struct memory_growth growth;
    } marks;
    struct memory_said said;
};

/* The host's memory of a process, as its kernel said now and then. */
struct memory_resident {
    uint64_t peak;
    uint64_t peak_ns;
    uint64_t last;
    uint64_t samples;
};

/* An allocation that failed since there was not enough, as it stood then. */
struct memory_oom {
    uint32_t place; /* UINT32_MAX: a place with nothing */
    const struct process *process;
    uint32_t device;
    enum memory_where where;
    uint64_t at_ns;
    uint64_t wanted;
    uint64_t live;
    uint64_t reserved; /* by the allocator of tensors */
    uint64_t free;     /* of the device, when the program last asked; UINT64_MAX: it did not */
    struct layout_holes holes; /* of `reserved`; `free` UINT64_MAX: not asked for */
    uint64_t tensors;          /* blocks that PyTorch's allocator had got there so far */
    uint64_t total;            /* bytes that the device has; 0: not known */
    uint64_t on_device;        /* that the process had there, by CUDA */
    uint32_t origin;
    uint32_t owner_count;
    struct {
        uint32_t origin;
        struct memory_amount live;
    } owners[MEMORY_OOM_OWNERS]; /* the largest first */
};

/* What the device has used beyond the ledger has grown between two answers to the program, or
 * between two readings of what the driver says (run --device). */
#define OTHERS_UNKNOWN UINT64_MAX
struct memory_jump {
    const struct process *process;
    uint32_t device;
    uint64_t at_ns;
    uint64_t used;
    uint64_t hidden;               /* of it, beyond the process's own ledger */
    uint64_t others;               /* of that, what other processes use; OTHERS_UNKNOWN */
    bool is_drivers;               /* it was read, not asked for */
    uint64_t before;               /* as much, at the answer before; the first: 0 */
    const struct function *blamed; /* the longest call between the two; NULL: none */
    uint64_t blamed_ns;
};

struct memory_longest {
    const struct function *function;
    uint64_t ns;
};

/*
 * How much memory there was while ranges (NVTX) and labels of PyTorch's were open, by their names:
 * of each place the most that there was in any of them, and by how much it rose. Memory: 56 bytes a
 * name and place. (memory_ranges.c)
 */
struct memory_range_row {
    const struct kernel_name *name;
    uint32_t place;
    uint64_t count; /* of such ranges that have ended, or were open at the end */
    uint64_t peak;  /* bytes */
    uint64_t rise;  /* the most that the peak was above what there was at the begin */
    double kept;    /* bytes more at the ends than at the begins, of all */
};

/* Of a place: what there is; at the begin of each that is open; and the most since. */
struct memory_in_ranges {
    uint64_t live;
    uint32_t process;
    uint32_t next; /* place of its process + 1; 0: none */
    uint64_t begin[MEMORY_RANGES_OPEN];
    uint64_t peak[MEMORY_RANGES_OPEN];
};

struct memory_open_ranges {
    uint64_t open;        /* bits of those that are */
    uint32_t first_place; /* + 1; the others follow by their `next` */
    const struct kernel_name *names[MEMORY_RANGES_OPEN];
};

struct memory_ranges {
    struct memory_open_ranges *processes; /* owned, by process index */
    struct memory_in_ranges *places;      /* owned, in the order in which they were added */
    uint32_t place_count;
    struct memory_range_row *rows; /* owned; at the end the largest peak first */
    uint32_t count;
    struct number_set numbers;
    uint64_t beyond; /* ranges that were not followed */
};

/* Which steps are whole, when each process began and ended, and of which time the books are. */
struct memory_times {
    uint32_t *wholes;  /* owned: places of whole steps in steps.list */
    uint32_t *firsts;  /* owned, by process index, and one more: where its own begin */
    uint64_t *spans;   /* owned: of each process, its first moment and its last */
    uint64_t begin_ns; /* of the curves, and their end */
    uint64_t end_ns;
    uint64_t until_ns; /* what changes then and later is in no book */
    bool is_before;    /* the piece of time that was asked for has not begun */
    uint64_t asked_ns; /* --at; UINT64_MAX: no moment is asked for */
    bool is_past_asked;
};

struct memory_report {
    struct walk walk;
    struct recording *rec;
    enum memory_by by;
    const struct walk_filter *selected; /* as memory_request */
    struct steps steps;
    bool *gets_memory; /* owned, by process index: a call or PyTorch's allocator has got some */
    struct ledger ledger;
    struct memory_times times;
    uint64_t change; /* number of the last one */
    struct {
        struct memory_origin *list; /* owned; the first is "everything else" */
        uint32_t count;
        struct number_set numbers;
        struct key_map of_stacks; /* (process, stack) -> number + 1 */
    } origins;
    struct {
        struct memory_owner *list; /* owned */
        uint32_t count;
        uint32_t most;
        struct number_set numbers;
        uint64_t beyond; /* changes of owners for which there was no room */
    } owners;
    struct {
        struct memory_place *list; /* owned */
        uint32_t count;
        struct key_map numbers; /* (process, device, where) -> place + 1 */
        uint64_t beyond;        /* blocks for whose place there was no room */
        uint32_t marks_left;    /* that places may still have */
    } places;
    struct memory_ranges ranges;
    struct memory_resident *resident; /* owned, by process index */
    struct {
        struct memory_oom list[MEMORY_OOMS_MAX];
        uint32_t count;
        uint64_t all;
    } ooms;
    struct {
        struct memory_jump *list; /* owned */
        uint32_t count;
        uint64_t all;
        struct memory_longest *longest; /* owned, by process index: call since it asked last */
    } jumps;
};

struct memory_request {
    enum memory_by by; /* MEMORY_BY_BEST: what is recorded */
    double at_seconds; /* since the first event; less than 0: the peak */
    const char *step_by;
    const char *step_pattern;
    const struct walk_filter *selected; /* only of failures in it something is said; NULL: of all */
    /* Curves, peaks and ends are those of this time; who holds what follows from all before. 0 and
     * 0: of all. Steps, growth and sums of what was got are not kept apart. */
    uint64_t from_ns;
    uint64_t to_ns;
    enum memory_at at; /* of what the rows are (memory_rows.h) */
};

/* What MEMORY_BY_BEST is. */
enum memory_by memory_best_by(const struct recording *rec);

/*
 * Reads all events of `rec`, which must stay. 0, or an error after one line on stderr;
 * memory_report_release in both cases.
 */
int memory_report_make(struct memory_report *m, struct recording *rec,
                       const struct memory_request *request);

/* Its first half alone, for who keeps other books: steps, stacks and operators are known then, and
 * origins are found. */
int memory_report_learn(struct memory_report *m, struct recording *rec,
                        const struct memory_request *request);
void memory_report_release(struct memory_report *m);

/* (memory_growth.c) Until the end of step `steps` - 1 there was so much; `middle` is one of them.
 */
void memory_growth_pass(struct memory_growth *g, uint32_t steps, uint32_t middle, uint64_t bytes);

/* How many bytes come a step (or a slice), and with which error. False: there are too few steps. */
struct memory_slope {
    double bytes;
    double error;
};
bool memory_slope(const struct memory_growth *g, struct memory_slope *slope);

/* Does it grow from step to step, all the time, and by more than chance? */
bool memory_leaks(const struct memory_growth *g);

/* The whole steps of a process that has some, from 0 on. */
const struct step *memory_step(const struct memory_report *m, const struct process *p,
                               uint32_t mark);

/* The end of step `mark` of a process, or of a slice of its time. */
uint64_t memory_mark_end(const struct memory_report *m, const struct process *p, uint32_t mark);

/* How many there are; and what is known after the first walk: when each process began and ended,
 * which steps are whole. 0 or GPUPROF_NO_MEMORY. */
uint32_t memory_whole_count(const struct memory_report *m, const struct process *p);
int memory_note_times(struct memory_report *m);

/* Have the process's marks been steps? Otherwise they are slices of so many ns. */
bool memory_has_steps(const struct memory_report *m, const struct process *p);
uint64_t memory_slice_ns(const struct memory_report *m, const struct process *p);

/* (memory_trouble.c) There was not enough memory; the program was told of the free memory of a
 * device, which is `p`; and a DEVICE_USE record, of which the slice has the source. 0 or
 * GPUPROF_NO_MEMORY. */
int memory_failed(struct memory_report *m, const struct ledger_block *wanted);
int memory_hidden_left(struct memory_report *m, struct memory_place *p,
                       const struct ledger_free *f);
int memory_hidden_read(struct memory_report *m, const struct slice *s);

/* Where the block is; and the place of that, from 1 on; 0: nothing is known of it. */
enum memory_where memory_where_of(const struct ledger_block *b);
uint32_t memory_place_number(const struct memory_report *m, const struct process *p,
                             uint32_t device, enum memory_where where);

/* What a place had at its own peak. */
struct memory_amount memory_at_peak(const struct memory_place *p, const struct memory_level *l);

/* (memory_origin.c) Who gets a block of that kind, by what is open around `s`. 0 or
 * GPUPROF_NO_MEMORY. */
int memory_origin_of(struct memory_report *m, const struct slice *s, unsigned kind,
                     uint32_t *number);

/* Is it a line to which several stacks of a process lead? */
bool memory_has_stacks(const struct memory_report *m, uint32_t origin);

/* What it is called, as recorded, a stack as `tree` has it; malloc'ed, NULL: no memory. */
struct call_tree;
char *memory_origin_text(const struct memory_report *m, uint32_t origin, struct call_tree *tree);

/* Is the moment that is asked for one of the recording, whose end is known? Of a
 * recording without events nobody knows. An error was said. */
enum exit_code memory_check_moment(const struct memory_report *m);

/* ---- ranges ---- */

/* 0 or GPUPROF_NO_MEMORY; memory_ranges_release in both cases. */
int memory_ranges_init(struct memory_ranges *r, uint32_t process_count);
void memory_ranges_release(struct memory_ranges *r);

/* One more place, of the process of that index. 0 or GPUPROF_NO_MEMORY. */
int memory_ranges_add_place(struct memory_ranges *r, uint32_t process);

/* There are so many bytes in that place now. */
static inline void memory_ranges_change(struct memory_ranges *r, uint32_t place, uint64_t bytes)
{
    struct memory_in_ranges *in = &r->places[place];
    in->live = bytes;
    for (uint64_t open = r->processes[in->process].open; open; open &= open - 1) {
        unsigned slot = (unsigned)__builtin_ctzll(open);
        if (bytes > in->peak[slot])
            in->peak[slot] = bytes;
    }
}

/* Any slice, behind the ledger. 0 or GPUPROF_NO_MEMORY. */
int memory_ranges_take(struct memory_ranges *r, const struct slice *s);
void memory_ranges_sort(struct memory_ranges *r);

/*
 * Is there anything to be said of a recording's memory? Found in books that others keep anyway, so
 * that who did nothing wrong pays for no more: whether there was not enough, and roughly, of each
 * process, how much it had over time. Only where that looks like a fault the books are kept by
 * owner and step (memory_report.h), which takes walks of its own.
 *
 * Memory: SIGNS_BYTES a process.
 */
#define SIGNS_PIECES 240 /* that the time of a process is cut into */
#define SIGNS_BYTES  4000
#define SIGNS_STEPS  8 /* of fewer nothing is said to grow */

#define SIGNS_GROWN_MIN  (16ull << 20) /* bytes: less is no leak that matters, ... */
#define SIGNS_GROWN_PART 50            /* ... nor is less than so much of the peak */
#define SIGNS_FULL       0.7           /* of a device: it is worth to need less of it */
#define SIGNS_BLOCK      0.25          /* of a peak: it is one block that makes it */
#define SIGNS_IDLE       0.3           /* of what is reserved: that much is in no tensor */

/* What a process has, on all devices together. */
struct signs_book {
    uint64_t live;
    uint64_t peak;
    uint64_t last_block;          /* that made the peak: its bytes */
    uint64_t reserved;            /* by PyTorch's allocator, at that moment */
    uint32_t device;              /* on which it is */
    uint32_t at;                  /* piece that it is */
    uint64_t least[SIGNS_PIECES]; /* that it had in each */
};

struct memory_signs {
    struct walk *walk;
    struct signs_process {
        uint64_t begin_ns; /* by the headers of its blocks */
        uint64_t end_ns;
        struct signs_book books[2]; /* of CUDA, and of PyTorch's allocator */
        uint64_t total;             /* of a device, as the program was told; 0: it was not */
    } * processes;                  /* owned, by process index */
    uint64_t ooms;
    bool any; /* memory was got, or failed to be, or somebody asked for it */
};

/* `walk` must stay. 0 or GPUPROF_NO_MEMORY; memory_signs_release in both cases. */
int memory_signs_init(struct memory_signs *s, struct walk *walk);
void memory_signs_release(struct memory_signs *s);

/* For a ledger of that walk; `s` must stay where it is. */
struct ledger_user memory_signs_user(struct memory_signs *s);

/* After the walk. Does it look as if the program's memory grew from step to step, or as if its peak
 * could be lower where that matters? */
bool memory_signs_of_fault(const struct memory_signs *s, const struct steps *steps);

#endif
