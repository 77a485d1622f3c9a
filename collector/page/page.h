/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as one HTML file that needs nothing else, for a browser: `gpuprof report -o page.html`;
 * and a comparison, `gpuprof diff NEW... --against OLD... -o page.html`.
 * Its head, style and script are files of this folder, embedded at build; its data is one JSON
 * object in the file, which the script draws. A section of it is a file of the script and a row of
 * page_sections.def, which names who writes the section's data.
 *
 * Names come from recordings, which are hostile: the data cannot end the element that it is in
 * (page_data.h), the script makes text nodes of it and nothing else, and the page's policy lets run
 * only the script whose hash it names, and lets nothing be fetched.
 *
 * Each section's data is bounded, so that a thousand ranks and five thousand kernels are within
 * 20 MB; what is left out is counted.
 */
#ifndef GPUPROF_COLLECTOR_PAGE_H
#define GPUPROF_COLLECTOR_PAGE_H

#include "diff/diff_print.h"
#include "memory/memory_look.h"
#include "model/stack_costs.h"
#include "page/page_data.h"
#include "page/page_steps.h"
#include "page/page_use.h"
#include "report/report.h"

#define PAGE_NODES_MAX 20000 /* the widest; what is narrower counts for who called it */
#define PAGE_WEIGHTS   4     /* times on the host and on the GPU, calls, bytes */

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
    const char *symbols;       /* the folder of symbols.h */
    struct memory_wish memory; /* how its steps are made */
    struct page_use use;
    struct page_steps steps;
    struct page_flame flame;
};

/* Writes the value of the section's member of the data, which is an object. 0 or
 * GPUPROF_NO_MEMORY. */
typedef int page_put_fn(const struct page *p, struct page_data *d);

page_put_fn page_put_nothing; /* for a section that draws what others have */
page_put_fn page_put_use, page_put_steps;
page_put_fn page_put_flame;                       /* page_flame.c */
page_put_fn page_put_kernels;                     /* page_kernels.c */
page_put_fn page_put_libraries;                   /* page_libraries.c */
page_put_fn page_put_overview, page_put_settings; /* page_overview.c */
page_put_fn page_put_tables;                      /* page_tables.c */
page_put_fn page_put_source;                      /* page_source.c */
page_put_fn page_put_memory;                      /* page_memory.c */
page_put_fn page_put_comparison;                  /* page_comparison.c */

/* A table as the script's tableOf has it, of at most `bytes_max` bytes or so; `separator` stands
 * before it, if it is there. 0 or GPUPROF_NO_MEMORY. (page_tables.c) */
int page_put_table(struct table *t, const struct table_view *how, uint64_t bytes_max,
                   const char *separator, struct page_data *d);

struct page_section {
    const char *id;    /* its member of the data, and of the script's sections */
    const char *title; /* of it, and in the list of sections */
    const char *script;
    page_put_fn *put;
};

/* What is embedded (page_files.c). */
extern const struct page_section page_sections[], page_comparison_sections[];
extern const char page_head[], page_style[], page_script[];

/*
 * The page of a report that was made with steps (struct step_wish) and of which `v` is wanted.
 * Walks through the recording once more; the report's losses stay. 0, or an error after one line on
 * stderr.
 */
int page_write(struct report *r, const struct report_view *v, const struct options *options,
               FILE *out);

/* The page of a comparison: one section. */
diff_print_fn page_write_comparison; /* page_comparison.c */

/* Writes the file. 0 or GPUPROF_NO_MEMORY. */
int page_put(const struct page *p, FILE *out);

#endif
