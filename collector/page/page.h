/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as one HTML file that needs nothing else, for a browser: `gpuprof report -o page.html`;
 * and a comparison, `gpuprof diff NEW... --against OLD... -o page.html`.
 * Its head, style and script are files of this folder, embedded at build; its data is one JSON
 * object in the file, which the script draws. A section of it is a file of the script and a row of
 * page_sections.def, which names who writes the section's data.
 *
 * Names come from recordings, which are hostile: the data cannot end the element that it is in
 * (below), the script makes text nodes of it and nothing else, and the page's policy lets run
 * only the script whose hash it names, and lets nothing be fetched.
 *
 * Each section's data is bounded, so that a thousand ranks and five thousand kernels are within
 * 20 MB; what is left out is counted.
 */
#ifndef GPUPROF_COLLECTOR_PAGE_H
#define GPUPROF_COLLECTOR_PAGE_H

#include "analyse/idle.h"
#include "analyse/step_report.h"
#include "diff/comparison.h"
#include "memory/memory_rows.h"
#include "report/report.h"
#include "resolve/stack_costs.h"

/* ---- its data ---- */

/*
 * The data of a page: JSON inside of a <script> element. Nothing of it ends that element, since `<`
 * is written as \u003c, and no string is longer than PAGE_TEXT_BYTES: what goes through `stream` is
 * changed so on its way.
 */
#define PAGE_TEXT_BYTES 1000 /* of a string, escapes and all; what is longer is cut */

struct page_data {
    FILE *stream; /* takes JSON */
    FILE *out;    /* a view */
    uint64_t written;
    uint32_t text_bytes; /* of the string that is being written */
    uint8_t escape;      /* bytes that its escape still has */
    bool in_text;
    bool is_cut;
};

/* A JSON string; NULL: null. */
void page_put_text(struct page_data *d, const char *text);

/* How much has been written, all in all. */
uint64_t page_data_written(struct page_data *d);

/* ---- devices over time (page_use.c) ---- */

/*
 * What each device did over time: the window of the recording, or of the piece of it, in equal
 * spans, PAGE_BUCKETS at most, and how much of each went to compute, to communication without
 * compute, to copies without either, and to communication that only waited for another rank, which
 * is idle time as the rest is. Beside it stand curves of what the driver said of the device: the
 * mean of each span. Memory: 10 KB for each device of a process, of which PAGE_USES_MAX are
 * followed, and 26 KB for its curves.
 */
#define PAGE_BUCKETS  400
#define PAGE_USES_MAX 1024

/* The first that is under way at a moment has it. */
enum page_use_kind { USE_COMPUTE, USE_COMMUNICATION, USE_COPIES, USE_WAITS, USE_KINDS };

/* Of readings that are some spans apart the line between them. */
enum page_curve_kind { CURVE_POWER, CURVE_CLOCK, CURVE_BUSY, CURVE_THROTTLED, PAGE_CURVES };

struct page_curve {
    double sums[PAGE_BUCKETS]; /* value x ns */
    uint64_t ns[PAGE_BUCKETS]; /* for how long it is known */
};

struct page_device {
    const struct process *process;
    uint64_t device;
    uint64_t run_ns;              /* its time after start-up, if recorded; 0: not known */
    uint64_t at_ns;               /* until here it is counted */
    uint64_t until_ns[USE_KINDS]; /* the last end of what has begun of each kind */
    uint64_t ns[USE_KINDS][PAGE_BUCKETS];
    uint32_t whom;             /* index of the process that it waited for longest, ... */
    uint64_t whom_ns;          /* ... and how long; 0: for none that is known */
    struct page_curve *curves; /* owned, PAGE_CURVES; NULL: the driver said nothing */
};

struct page_use {
    struct walk *walk;
    struct idle *idle; /* NULL: nobody knows how long they waited */
    uint64_t begin_ns;
    uint64_t window_ns;
    uint64_t bucket_ns;
    unsigned spans;              /* PAGE_BUCKETS at most */
    struct page_device *devices; /* owned */
    uint32_t count;
    struct key_map places; /* (process, device) -> place + 1 */
    struct key_map beyond; /* devices for which there was no room -> 1 */
};

/* `walk` and `idle`, which is finished and may be NULL, must stay. The window is that from begin_ns
 * to end_ns; a span is as many steps, which begin `step_ns` apart (0: not known), or a small part
 * of one. */
void page_use_init(struct page_use *u, struct walk *walk, struct idle *idle, uint64_t begin_ns,
                   uint64_t end_ns, uint64_t step_ns);
void page_use_release(struct page_use *u);

struct consumer page_use_consumer(struct page_use *u);

/* ---- steps (page_steps.c) ---- */

/*
 * The steps of a page: how long each took, and of those that somebody will look at (the slowest,
 * and each process's median one, with which they are compared) the times of the kernels and
 * operators that take most in all. Memory: 4 bytes a step, and 600 for each of these, of which
 * there are PAGE_STEPS_MAX at most and one for each process.
 */
#define PAGE_STEPS_MAX 12000
#define PAGE_NAMES_MAX 16 /* kernels, and operators */

enum page_name_kind { NAME_KERNELS, NAME_OPERATORS, NAME_KINDS };

struct page_step {
    const struct step *step;
    uint64_t ns[NAME_KINDS][PAGE_NAMES_MAX];
    uint32_t count[NAME_KINDS][PAGE_NAMES_MAX];
};

struct page_steps {
    struct walk *walk;
    const struct step_report *report;
    struct page_step *details; /* owned */
    uint32_t detail_count;
    uint32_t *places;  /* owned, by place of the step: its detail + 1 */
    uint32_t *medians; /* owned, by process index: place of its median step + 1 */
    const char *names[NAME_KINDS][PAGE_NAMES_MAX]; /* views; NULL behind the last */
    struct key_map found;                          /* (kind, text) -> place of the name + 1, or
                                                    * PAGE_NAMES_MAX + 1: it is none of them */
};

/* `r` must stay. 0 or GPUPROF_NO_MEMORY; page_steps_release in both cases. */
int page_steps_init(struct page_steps *s, const struct report *r);
void page_steps_release(struct page_steps *s);

struct consumer page_steps_consumer(struct page_steps *s);

/* ---- the page ---- */

#define PAGE_NODES_MAX 20000 /* the widest; what is narrower counts for who called it */
#define PAGE_WEIGHTS   6 /* times on the host and on the GPU, calls, bytes, CPU and off-CPU time */

/* The flame graph: the call tree of all processes together, with all of its weights. */
struct page_flame {
    struct stack_costs costs;
    bool is_there; /* some call may have a stack */
};

struct page {
    const struct page_section *sections; /* ended by a row without an id */
    const char *name;                    /* of the recording, or of what is compared */
    const struct comparison *comparison; /* with the next, all that a page of one has */
    const struct kernel_match *kernels;
    struct report *report;
    const struct report_view *view;
    const char *symbols;          /* the folder of symbols.h */
    struct memory_request memory; /* how its steps are made */
    struct page_use use;
    struct page_steps steps;
    struct page_flame flame;
};

/* Writes the value of the section's member of the data, which is an object. 0 or
 * GPUPROF_NO_MEMORY. */
typedef int page_put_fn(const struct page *p, struct page_data *d);

page_put_fn page_put_use;                         /* page_use.c */
page_put_fn page_put_steps;                       /* page_steps.c */
page_put_fn page_put_flame;                       /* page_flame.c */
page_put_fn page_put_kernels, page_put_libraries; /* page_kernels.c */
page_put_fn page_put_overview, page_put_settings; /* page_overview.c */
page_put_fn page_put_tables;                      /* page_tables.c */
page_put_fn page_put_source;                      /* page_source.c */
page_put_fn page_put_memory;                      /* page_memory.c */

/* A table as the script's tableOf has it, of at most `bytes_max` bytes or so; `separator` stands
 * before it, if it is there. 0 or GPUPROF_NO_MEMORY. (page_tables.c) */
int page_put_table(struct table *t, const struct table_view *how, uint64_t bytes_max,
                   const char *separator, struct page_data *d);

struct page_section {
    const char *id;    /* its member of the data, and of the script's sections */
    const char *title; /* of it, and in the list of sections */
    const char *script;
    page_put_fn *put; /* NULL: it draws what others have */
};

/* What is embedded (page_files.c). */
extern const struct page_section page_sections[];
extern const char page_head[], page_style[], page_script[], section_compare[];

extern const struct verb report_verb;

/*
 * The page of a report that was made with steps (struct step_request) and of which `v` is wanted.
 * Walks through the recording once more; the report's losses stay. 0, or an error after one line on
 * stderr.
 */
int page_write(struct report *r, const struct report_view *v, const struct options *options,
               FILE *out);

/* The page of a comparison: one section. */
diff_print_fn page_write_comparison; /* page.c */

#endif
