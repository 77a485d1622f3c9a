/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as one self-contained HTML file for a browser, `gpuprof report -o page.html`; and a
 * comparison, `gpuprof diff NEW... --against OLD... -o page.html`. Head, style and script are files
 * of this folder, embedded at build. The data is one JSON object in the file, which the script
 * draws. A section is a file of the script and a row of page_sections.def, which names the writer
 * of its data.
 *
 * Names come from recordings, which are hostile. The data cannot end its element (see below), the
 * script makes only text nodes of it, and the page's policy allows only the script with the given
 * hash, and no fetches.
 *
 * The data of each section is bounded, so that a thousand ranks and five thousand kernels fit in 20
 * MB; what is left out is counted.
 */
#ifndef GPUPROF_COLLECTOR_PAGE_H
#define GPUPROF_COLLECTOR_PAGE_H

#include "analyse/idle.h"
#include "analyse/step_report.h"
#include "diff/comparison.h"
#include "memory/memory_report.h"
#include "report/report.h"
#include "resolve/stack_costs.h"

/* ---- the data ---- */

/*
 * The data of a page: JSON inside a <script> element. `<` in what is written to `stream` becomes
 * \u003c, so that no string can end the element.
 */
#define PAGE_TEXT_BYTES 1000

/* Digits of numbers as letters, 0 to 63: a quarter of the bytes of numbers. */
#define PAGE_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

struct page_data {
    FILE *stream; /* takes JSON */
    FILE *out;    /* a view */
    uint64_t written;
    int error; /* of a section's writer; 0: none */
};

/* Write JSON like json_printf, with texts cut to PAGE_TEXT_BYTES. */
void page_put_text(const char *text, FILE *stream);
void page_printf(struct page_data *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes `before` and a text in new memory, which it frees. */
void page_put_owned(struct page_data *d, const char *before, char *text);

uint64_t page_data_written(struct page_data *d); /* in bytes */

/* ---- devices over time (page_use.c) ---- */

/*
 * What each device did over time: the window of the recording or the selection, in at most
 * PAGE_BUCKETS equal spans. For each span, the time of compute, of communication without compute,
 * of copies without either, and of communication that only waited for another rank, which counts as
 * idle time. Memory: 13 KB for each device of a process, at most PAGE_USES_MAX.
 */
#define PAGE_BUCKETS  400
#define PAGE_USES_MAX 1024

/* A moment counts for the first kind that is under way. */
enum page_use_kind { USE_COMPUTE, USE_COMMUNICATION, USE_COPIES, USE_WAITS, USE_KINDS };

struct page_device {
    const struct process *process;
    uint64_t device;
    uint64_t run_ns;              /* time after start-up, as far as recorded; 0: not known */
    uint64_t at_ns;               /* end of the counted time */
    uint64_t until_ns[USE_KINDS]; /* last end of work that has begun, by kind */
    uint64_t ns[USE_KINDS][PAGE_BUCKETS];
};

struct page_use {
    struct walk *walk;
    struct idle *idle; /* NULL: waits are not known */
    uint64_t begin_ns;
    uint64_t window_ns;
    uint64_t bucket_ns;
    unsigned spans;              /* at most PAGE_BUCKETS */
    struct page_device *devices; /* owned */
    uint32_t count;
    struct key_map places; /* (process, device) -> place + 1 */
};

/* Starts with the window from begin_ns to end_ns. `walk` and `idle` (finished, or NULL) must stay
 * valid. If steps begin `step_ns` apart (0: not known), a span is a whole number of steps, or a
 * small part of one. */
void page_use_init(struct page_use *u, struct walk *walk, struct idle *idle, uint64_t begin_ns,
                   uint64_t end_ns, uint64_t step_ns);
void page_use_release(struct page_use *u);
struct consumer page_use_consumer(struct page_use *u);

/* ---- steps (page_steps.c) ---- */

/*
 * The steps of a page: the duration of each. The slowest steps, and each process's median step to
 * compare with, have details: times of the kernels and operators that take most time overall.
 * Memory: 4 bytes a step, and 600 for each with details, at most PAGE_STEPS_MAX and one for each
 * process.
 */
#define PAGE_STEPS_MAX 12000
#define PAGE_NAMES_MAX 16 /* of kernels, and as many of operators */

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
    uint32_t *places;  /* owned, by place of the step: index of its details + 1 */
    uint32_t *medians; /* owned, by process index: place of its median step + 1 */
    const struct kernel_name *names[NAME_KINDS][PAGE_NAMES_MAX]; /* views; NULL after the last */
};

/* Finds the steps; `r` must stay valid. */
void page_steps_init(struct page_steps *s, const struct report *r);
void page_steps_release(struct page_steps *s);
struct consumer page_steps_consumer(struct page_steps *s);

/* ---- the page ---- */

#define PAGE_NODES_MAX 20000 /* the widest; narrower ones count for their callers */
#define PAGE_WEIGHTS   6     /* host time, GPU time, calls, bytes, CPU time, off-CPU time */

/* The flame graph: the call tree of all processes with all weights. */
struct page_flame {
    struct stack_costs costs;
    bool is_there; /* calls may have stacks */
};

struct page {
    const struct page_section *sections; /* ends with a row without an id */
    const char *name;                    /* of the recording or the comparison */
    const struct comparison *comparison; /* a page of a comparison has only this and `kernels` */
    const struct kernel_match *kernels;
    struct report *report;
    const struct report_view *view;
    const char *symbols;          /* folder for symbols.h */
    struct memory_request memory; /* how to make the memory section */
    struct page_use use;
    struct page_steps steps;
    struct page_flame flame;
};

/* Writes the section's object in the data. */
typedef void page_put_fn(const struct page *p, struct page_data *d);

page_put_fn page_put_use;                    /* page_use.c */
page_put_fn page_put_steps;                  /* page_steps.c */
page_put_fn page_put_flame, page_put_source; /* page_stacks.c */
page_put_fn page_put_overview, page_put_settings, page_put_tables, page_put_kernels,
    page_put_libraries, page_put_memory; /* page_data.c */

struct page_section {
    const char *id;    /* key in the data and in the script's sections */
    const char *title; /* heading, also in the list of sections */
    const char *script;
    page_put_fn *put; /* NULL: it draws data of other sections */
};

/* Embedded files (page_files.c). */
extern const struct page_section page_sections[];
extern const char page_head[], page_style[], page_script[], section_compare[];

extern const struct verb report_verb;

/*
 * Writes the page of a report that was made with steps (struct step_request). `v` selects what it
 * shows. Walks through the recording once more without changing the report's losses. Returns 0, or
 * an error after one line on stderr.
 */
int page_write(struct report *r, const struct report_view *v, const struct options *options,
               FILE *out);

/* Writes the page of a comparison, which has one section. */
diff_print_fn page_write_comparison; /* page.c */

#endif
