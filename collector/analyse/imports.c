/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of importing Python modules, like -X importtime: a stack counts for the file with the
 * code (<module>) that the import system runs, and under "all" for the files that import it. During
 * the walk rows are by stack.
 */
#include <string.h>

#include "analyse/analyses.h"
#include "frame.h"
#include "resolve/host_facts.h"

enum { MODULE };
enum { SEEN, CPU, CPU_ALL, OS, OS_ALL, GAPS, GAPS_ALL, ORDER };

static int imports_take(void *context, const struct slice *s)
{
    const struct event *e = &s->event;
    struct host_sample sample;
    bool is_sample = host_sample(s, &sample);
    if (!is_sample && e->record->type != RECORD_OS_CALL)
        return 0;
    uint32_t stack = e->record->stack_id;
    struct sums_row *row = stack ? sums_row(context, e->process->index, stack, 0) : NULL;
    if (!row)
        return 0;
    uint64_t weight = e->record->weight > 1 ? e->record->weight : 1;
    row->values[SEEN] += weight;
    row->values[CPU_ALL] += is_sample && sample.is_cpu ? sample.ns : 0;
    row->values[GAPS_ALL] += is_sample && !sample.is_cpu ? sample.ns : 0;
    row->values[OS_ALL] += is_sample ? 0 : (e->end_ns - e->begin_ns) * weight;
    return 0;
}

/* True for the part of the interpreter that finds modules and runs their code. */
static bool is_import_system(const char *file)
{
    return strncmp(file, "<frozen importlib._bootstrap", 28) == 0 ||
           strstr(file, "/importlib/_bootstrap") != NULL;
}

/* Finds the modules that a stack imports, outermost first; returns their number. */
static uint32_t find_modules(const struct stack_table *t, uint32_t process, uint32_t stack,
                             const struct kernel_name *modules[static FRAME_COUNT_MAX])
{
    uint64_t words[FRAME_COUNT_MAX];
    const struct recorded_stack *recorded = stack_table_stack(t, process, stack);
    uint32_t count = 0;
    bool is_import = false;
    for (uint32_t i = recorded ? stack_table_words(t, recorded, words) : 0; i > 0; i--) {
        const struct stack_place *place =
            frame_kind(words[i - 1]) == FRAME_PYTHON
                ? stack_table_place(t, process, frame_python(words[i - 1]))
                : NULL;
        if (!place || !place->file || !place->function)
            continue;
        if (is_import && strcmp(place->function->raw, "<module>") == 0)
            modules[count++] = place->file;
        is_import = is_import_system(place->file->raw);
    }
    return count;
}

static void place_row(struct sums *s, struct sums_row *row, void *context)
{
    const struct kernel_name *modules[FRAME_COUNT_MAX];
    uint32_t count = find_modules(&s->walk->survey.stacks, (uint32_t)row->keys[0],
                                  (uint32_t)row->keys[1], modules);
    (void)context;
    for (uint32_t i = count; i > 0; i--) {
        bool is_inner = i == count, is_again = false;
        for (uint32_t k = i; k < count; k++)
            is_again |= modules[k] == modules[i - 1]; /* it imports itself */
        uint64_t values[SUMS_VALUES] = {[SEEN] = row->values[SEEN]};
        for (unsigned of = CPU; of <= GAPS; of += 2) {
            values[of + 1] = row->values[of + 1];
            values[of] = is_inner ? values[of + 1] : 0;
        }
        values[ORDER] = values[CPU_ALL] + values[OS_ALL];
        if (!is_again)
            sums_row_add(s, (struct key){sums_text(s, modules[i - 1]->raw), 0, 0}, values);
    }
}

static int imports_end(void *context)
{
    sums_remake(context, place_row, NULL);
    return 0;
}

static void imports_print_notes(const struct table *t, FILE *out)
{
    (void)t;
    fprintf(out, "\nCPU time is estimated from samples; all: with the modules that it imports\n");
}

static const struct column columns[] = {
    {"file", "module", SHOW(KEY, MODULE), .doc = "the file of the module"},
    {"cpu_ns", "CPU", COLUMN_NS, 12, SHOW(VALUE, CPU), .where = CPU,
     .doc = "CPU time of the module's own code, from samples"},
    {"cpu_ns_all", "CPU, all", COLUMN_NS, 12, SHOW(VALUE, CPU_ALL), .where = CPU_ALL,
     .doc = "CPU time including the modules that it imports"},
    {"os_ns", "OS", COLUMN_NS, 12, .spare = 1, .is_filled = true, SHOW(VALUE, OS), .where = OS,
     .doc = "time in system calls that the module's own code made"},
    {"os_ns_all", "OS, all", COLUMN_NS, 12, .is_filled = true, SHOW(VALUE, OS_ALL), .where = OS_ALL,
     .doc = "time in system calls, including the modules that it imports"},
    {"gap_ns", "in gaps", COLUMN_NS, 12, .spare = 1, .is_filled = true, SHOW(VALUE, GAPS),
     .where = GAPS,
     .doc = "time in the module's own code between two CUDA calls, in threads that call CUDA"},
    {"gap_ns_all", "in gaps, all", COLUMN_NS, 12, .is_filled = true, SHOW(VALUE, GAPS_ALL),
     .where = GAPS_ALL, .doc = "that time, including the modules that it imports"},
};

const struct sums_info imports_sums = {
    .keys = {KEY_TEXT},
    .values = {JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD},
    .rows_max = 1u << 18,
    .order = ORDER,
    .then = {GAPS_ALL, CPU, OS},
    .is_left_out = true,
    .parts = REPORT_HOST,
    .consumer = {.needs = WALK_STACKS,
                 .skips = WALK_SKIPS_CALLS | WALK_SKIPS_WORK,
                 .take = imports_take,
                 .end = imports_end},
    .table = {SUMS_TABLE, .name = "imports", .key = "imports", .title = "Python imports",
              .columns = columns, .column_count = sizeof columns / sizeof columns[0],
              .text = {2, 1, 4, 3, 6, 5}, /* all, CPU, OS all, OS, in gaps */
              .text_limit = 40, .text_none = ": no import is recorded (gpuprof run --sample)",
              .text_behind = imports_print_notes},
};
