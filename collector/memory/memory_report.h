/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who held the memory, and when. For each place (a process's memory on a device, or of the host):
 * its curve, its peak with the owners at that moment, the rest at the end, and the growth from step
 * to step. One walk is enough: an owner's amount at the peak is saved when it first changes
 * afterwards.
 *
 * Memory: 7000 bytes a place, 160 for each owner in each place, as many as the size of the files
 * allows (the others share one owner), and 16 for each step in each place.
 */
#ifndef GPUPROF_COLLECTOR_MEMORY_REPORT_H
#define GPUPROF_COLLECTOR_MEMORY_REPORT_H

#include "base/key_map.h"
#include "base/options.h"
#include "memory/ledger.h"
#include "resolve/call_tree.h"
#include "resolve/steps.h"
#include "table/table.h"

#define MEMORY_CURVE       240  /* slices of the time */
#define MEMORY_PLACES_MAX  4096 /* more are dropped, and the report says so */
#define MEMORY_OWNERS_FREE (1u << 16)
#define MEMORY_OWNERS_MAX  (1u << 21)
#define MEMORY_FILE_BYTES  16         /* of files that allow one more owner */
#define MEMORY_MARKS_MAX   (1u << 22) /* steps in all places together */
#define MEMORY_SLICES      32         /* time slices of a process without steps */
#define MEMORY_STEPS_MIN   4          /* complete steps: fewer show no growth */
#define MEMORY_OOMS_MAX    16
#define MEMORY_OOM_OWNERS  10
#define MEMORY_JUMPS_MAX   1000

#define SNAPSHOT_DEVICES_MAX 32 /* in a snapshot for PyTorch */

#define MEMORY_RANGES_OPEN    64 /* of a process at a time: one bit each in a word */
#define MEMORY_RANGE_ROWS_MAX (1u << 16)

/* Tensors lie in blocks of the device: never add the two up. */
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

/* An owner. For Python the innermost line of the user's own (shown_frame.h), or the innermost line
 * if all are of libraries. A call without such lines is named by its operator, or by its function.
 */
struct memory_origin {
    enum memory_by by;
    uint32_t process; /* for a stack */
    uint32_t stack;
    uint32_t line;
    const struct kernel_name *file; /* for a Python line */
    const struct kernel_name *name; /* its function; or an operator, or a variable */
    const struct function *function;
    unsigned kind; /* enum ledger_kind, --by=kind */
};

/* The slice of that time, 0 to MEMORY_CURVE - 1, in which `ns` is. */
static inline uint32_t memory_slice(uint64_t begin_ns, uint64_t end_ns, uint64_t ns)
{
    if (ns <= begin_ns)
        return 0;
    double part = (double)(ns - begin_ns) / ((double)(end_ns - begin_ns) + 1);
    return part < 1 ? (uint32_t)(part * MEMORY_CURVE) : MEMORY_CURVE - 1;
}

struct memory_amount {
    uint64_t bytes;
    uint64_t blocks;
};

static inline void memory_add(struct memory_amount *to, struct memory_amount more)
{
    to->bytes += more.bytes;
    to->blocks += more.blocks;
}

/* Sums over the ends of steps so far, for a linear fit. */
struct memory_growth {
    double y, xy, yy;
    double neighbours;            /* sum of products of neighbouring values */
    uint64_t first, middle, last; /* at the end of the first step, the middle one ... */
    uint32_t steps;               /* steps in the sums */
};

/* The blocks of a place, of a kind in it, or of an owner in it. */
struct memory_book {
    struct memory_amount live;
    struct memory_amount at_peak; /* of the place, if `live` has changed since: memory_at_peak */
    uint64_t changed;             /* number of the last change */
    struct memory_amount got;
    struct memory_amount temporary; /* allocated and freed within a step */
    struct memory_amount asked;     /* at the requested moment */
    struct memory_growth growth;
};

struct memory_owner {
    uint32_t origin; /* index in `origins` */
    uint32_t place;
    struct memory_book book;
};

/* Bytes in each part of a time. */
struct memory_series {
    struct memory_part {
        uint64_t peak; /* maximum in the part */
        uint64_t end;  /* at its end */
    } * list;          /* owned */
    uint32_t count;
    uint32_t done; /* parts that have ended */
    uint64_t peak; /* since the end of the last */
};

#define MEMORY_UNKNOWN UINT64_MAX /* there was no query */

struct memory_place {
    const struct process *process;
    uint32_t device; /* LEDGER_NO_DEVICE: not known */
    enum memory_where where;
    struct memory_book all;
    struct memory_book kinds[LEDGER_KINDS];
    struct memory_amount peak;
    struct {
        uint64_t ns;
        uint64_t change;   /* number of the change */
        uint64_t reserved; /* by PyTorch's allocator */
    } peak_at;
    struct {
        uint64_t bytes; /* of one block, and its owner */
        uint32_t origin;
    } largest;
    uint64_t reserved;          /* for tensors: maximum of their allocator */
    uint64_t total;             /* bytes of the device; 0: not known */
    struct memory_series curve; /* MEMORY_CURVE slices */
    struct memory_series marks; /* steps, or MEMORY_SLICES of the process's time */
    struct memory_said {
        uint64_t hidden[2]; /* by the program's query, and the lower of two driver readings */
        uint64_t read;      /* at the last reading */
        uint64_t free;      /* by the program's query: unused by anybody */
    } said;                 /* of a device, outside the ledger at the last query */
    struct {
        uint32_t next;                      /* number of the next place of its process; 0: none */
        uint64_t begin[MEMORY_RANGES_OPEN]; /* bytes at the begin of each open range, */
        uint64_t peak[MEMORY_RANGES_OPEN];  /* and the maximum since */
    } in_ranges;
};

struct memory_longest {
    const struct function *function;
    uint64_t ns;
};

struct memory_process {
    const struct process *process;
    uint64_t first_ns; /* of its events */
    uint64_t last_ns;
    const struct step *steps; /* complete ones: a view of the report's */
    uint32_t step_count;
    bool gets_memory; /* a call or PyTorch's allocator has allocated */
    struct {
        uint64_t peak;
        uint64_t peak_ns;
        uint64_t last;
        uint64_t samples;
    } resident;                    /* host memory, as sampled from its kernel */
    struct memory_longest longest; /* call since the last query */
    struct {
        uint64_t open;        /* one bit for each open range */
        uint32_t first_place; /* number of a place; the others follow by their `next` */
        const struct kernel_name *names[MEMORY_RANGES_OPEN];
    } ranges;
};

struct memory_held {
    uint32_t origin;
    uint32_t owner; /* index in `owners` */
    struct memory_amount live;
};

/* An allocation that failed for lack of memory, and the state at that moment. */
struct memory_oom {
    uint32_t place; /* UINT32_MAX: a place without blocks */
    const struct process *process;
    uint32_t device;
    enum memory_where where;
    uint64_t at_ns;
    uint64_t wanted;
    uint64_t live;
    uint64_t reserved;         /* by PyTorch's allocator */
    uint64_t free;             /* of the device at the program's last query; UINT64_MAX: no query */
    struct ledger_holes holes; /* within `reserved`; `free` UINT64_MAX: not computed */
    uint64_t tensors;          /* blocks that PyTorch's allocator had given out there so far */
    uint64_t total;            /* bytes of the device; 0: not known */
    uint64_t on_device;        /* bytes of the process there, by CUDA */
    uint32_t origin;
    uint32_t owner_count;
    struct memory_held owners[MEMORY_OOM_OWNERS]; /* the largest first */
};

/* Growth of the device's use beyond the ledger, between two queries of the program or between two
 * driver readings (run --device). */
struct memory_jump {
    const struct process *process;
    uint32_t device;
    uint64_t at_ns;
    uint64_t used;
    uint64_t hidden;               /* the part beyond the process's own ledger */
    uint64_t others;               /* the part of that in other processes; MEMORY_UNKNOWN */
    bool is_drivers;               /* from a driver reading, not a query */
    uint64_t before;               /* `hidden` at the previous query; 0 for the first */
    struct memory_longest longest; /* call between the two; NULL: none */
};

/* Memory while ranges (NVTX) and labels of PyTorch were open, by name: for each place the peak in
 * any of them, and the largest rise. Memory: 56 bytes a name and place. (memory_times.c) */
struct memory_range_row {
    const struct kernel_name *name;
    uint32_t place;
    uint64_t count; /* ranges that have ended, or were open at the end */
    uint64_t peak;  /* bytes */
    uint64_t rise;  /* largest rise of a peak above the bytes at the begin */
    double kept;    /* bytes at the ends minus bytes at the begins, summed */
};

struct memory_times {
    uint64_t begin_ns; /* of the curves, like their end */
    uint64_t end_ns;
    uint64_t until_ns; /* later changes are in no book */
    bool is_before;    /* the selected time has not begun */
    uint64_t asked_ns; /* --at; UINT64_MAX: not given */
    bool is_past_asked;
};

/* An owner in all places of one kind: on devices, or of the host. */
struct memory_row {
    uint32_t origin;
    enum memory_where where;
    bool leaks; /* in any place */
    uint32_t places;
    uint32_t processes;            /* one more if the places of several alternate */
    const struct process *process; /* of the last of them */
    struct memory_amount shown;    /* at the report's moment */
    struct memory_amount at_peak;  /* each place at its own peak */
    struct memory_amount end;
    struct memory_amount got;
    struct memory_amount temporary;
    double slope; /* bytes a step, summed over the places */
    double error;
    uint64_t grown; /* since the first step's end */
};

struct memory_report {
    struct walk walk;
    struct recording *rec;
    enum memory_by by;
    const struct walk_filter *selected; /* from memory_request */
    struct steps steps;
    struct memory_process *processes; /* owned, by process index */
    uint32_t process_count;
    struct ledger ledger;
    struct memory_times times;
    uint64_t change; /* number of the last change */
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
    } owners;
    struct {
        struct memory_place *list; /* owned */
        uint32_t count;
        struct key_map numbers; /* (process, device, where) -> place + 1 */
        uint32_t marks_left;    /* marks left for new places */
    } places;
    struct {
        struct memory_range_row *rows; /* owned */
        uint32_t count;
        struct number_set numbers;
        uint64_t beyond; /* ranges beyond the maximum */
    } ranges;
    struct {
        struct memory_oom list[MEMORY_OOMS_MAX];
        uint32_t count;
        uint64_t beyond; /* not in the list, for lack of room */
    } ooms;
    struct {
        struct memory_jump *list; /* owned */
        uint32_t count;
    } jumps;
    struct call_tree tree; /* of stacks, if owners are stacks */
    bool has_tree;
    enum memory_at at;
    struct {
        struct memory_row *list; /* owned: by bytes at that moment, largest first */
        uint32_t count;
        uint64_t shown[MEMORY_WHERES]; /* bytes at that moment */
    } rows;
};

struct memory_request {
    enum memory_by by; /* MEMORY_BY_BEST: the finest that is recorded */
    double at_seconds; /* since the first event; negative: the peak */
    const char *step_by;
    const char *step_pattern;
    const struct walk_filter *selected; /* report only failures in it; NULL: all */
    /* Curves, peaks and ends cover this time, with blocks from before it. 0 and 0: all. Steps,
     * growth and sums of allocations always cover the whole recording. */
    uint64_t from_ns;
    uint64_t to_ns;
    enum memory_at at; /* moment of the rows */
    bool learns_only;  /* only the first walk, for users with other books: then steps, stacks and
                        * operators are known, and origins can be found */
};

/* Resolves MEMORY_BY_BEST for a recording. */
enum memory_by memory_best_by(const struct recording *rec);

/* Walks twice through `rec`, which must outlive the result. NULL with an error in *error, after one
 * line on stderr; else free it with memory_report_free, which accepts NULL. */
struct memory_report *memory_report_create(struct recording *rec,
                                           const struct memory_request *request,
                                           const char *symbols, int *error);
void memory_report_free(struct memory_report *m);

/* Merges owners of several places into rows, and sorts them. (memory_tables.c) */
void memory_rows_make(struct memory_report *m);

/* (memory_tables.c) Takes the book's bytes at the ends of all steps that are done in its place. */
void memory_book_pass(struct memory_book *b, const struct memory_place *p);

/* Computes the growth in bytes a step (or slice), and its error. False if there are too few
 * steps. */
struct memory_slope {
    double bytes;
    double error;
};
bool memory_slope(const struct memory_growth *g, struct memory_slope *slope);

/* True if it grows from step to step, all the time, and by more than chance. */
bool memory_leaks(const struct memory_growth *g);

/* True if the process's marks are steps. Otherwise they are slices of memory_slice_ns. */
static inline bool memory_has_steps(const struct memory_report *m, const struct process *p)
{
    return m->processes[p->index].step_count >= MEMORY_STEPS_MIN;
}
uint64_t memory_slice_ns(const struct memory_report *m, const struct process *p);

/* (memory_trouble.c) Handle a failed allocation; a query of the program about the device `p`; and
 * the source of a slice with a DEVICE_USE record. */
void memory_failed(struct memory_report *m, const struct ledger_block *wanted);
void memory_hidden_asked(struct memory_report *m, struct memory_place *p,
                         const struct ledger_block *asked);
void memory_hidden_read(struct memory_report *m, const struct slice *s);

/* Where a block is; and that place, NULL if it has had no block and no query. */
enum memory_where memory_where_of(const struct ledger_block *b);
struct memory_place *memory_place_find(const struct memory_report *m, const struct process *p,
                                       uint32_t device, enum memory_where where);

/* The amount of a book at its place's own peak. */
static inline struct memory_amount memory_at_peak(const struct memory_place *p,
                                                  const struct memory_book *b)
{
    return b->changed <= p->peak_at.change ? b->live : b->at_peak;
}

/* (memory_origin.c) Returns the owner of a block of that kind, by what is open around `s`. */
uint32_t memory_origin_of(void *report, const struct slice *s, unsigned kind);

/* The recorded name of an owner, with its stack if there is a tree; new text. */
char *memory_owner_text(const struct memory_report *m, uint32_t origin);

/* Why there was not enough memory, and what to do. (memory_trouble.c; GUIDE.md lists them) */
struct memory_advice {
    const char *id; /* stable */
    char *text;     /* owned, with names as recorded */
};

struct memory_advice memory_advise(const struct memory_report *m, const struct memory_oom *oom);

/* ---- tables with a struct memory_report, and cells of several tables ---- */

#define MEMORY_TABLES 10
extern const struct table_info *const memory_tables[MEMORY_TABLES]; /* memory_tables.c */

extern const struct table_info memory_ooms_table, memory_hidden_table; /* memory_trouble.c */
extern const struct table_info memory_steps_table, memory_ranges_table, memory_resident_table,
    memory_curve_table; /* memory_times.c */

/* Prints the last failed allocation on a screen: who wanted how much, who held most, what to do.
 * `next` has words for commands; NULL: none. */
struct screen;
struct next_words;
void memory_print_failure(const struct memory_report *m, const struct next_words *next,
                          struct screen *s);

/* (snapshot.c) Writes the process's history as a pickle of PyTorch's, after the first walk for
 * stacks. Returns 0, or an error after one line on stderr. */
int snapshot_write(struct memory_report *m, const struct process *process, struct output *out);

struct cell memory_owner_cell(const struct memory_report *m, uint32_t origin);

/* "tensors on device 1" and `after`, in new memory; and "device 1, rank 0: train.py (host, pid
 * 12)". */
char *memory_place_text(uint32_t device, enum memory_where where, const char *after);
struct cell memory_place_cell(const struct process *p, uint32_t device, enum memory_where where);

/* A time relative to the first event. */
static inline uint64_t memory_moment(const struct memory_report *m, uint64_t ns)
{
    return ns > m->walk.survey.origin_ns ? ns - m->walk.survey.origin_ns : 0;
}

/* "tensor", "device" or "host"; and "+1.5 MiB", or the number in other formats. */
const char *memory_where_text(enum memory_where where);
struct cell memory_change_cell(double bytes, enum report_format format);

/* ---- the verb `memory`, without its page (page.c) ---- */

/* Its options beyond those of all verbs that read recordings. */
struct memory_options {
    struct table_options table;
    enum memory_by by;
    enum memory_at at;
    double at_seconds; /* for MEMORY_AT_TIME; otherwise -1 */
};

#define MEMORY_OPTIONS_USUAL .table = TABLE_OPTIONS_USUAL, .by = MEMORY_BY_BEST, .at_seconds = -1

extern const struct option memory_options[];
enum exit_code memory_run(const struct options *options);

/* ---- ranges (memory_times.c) ---- */

/* Takes any slice, after the ledger. */
void memory_ranges_take(struct memory_report *m, const struct slice *s);
void memory_ranges_sort(struct memory_report *m); /* largest peak first */

#endif
