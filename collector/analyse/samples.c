/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time by samples: a row is the innermost line that is the user's own, else the innermost
 * function. During the walk rows are by stack; lines are known after it. */
#include <stdio.h>

#include "analyse/analyses.h"
#include "analyse/place_lines.h"
#include "resolve/host_facts.h"
#include "symbol/shown_frame.h"

enum { FUNCTION, FILE_OF, LINE };
enum { SEEN, SAMPLES, CPU, PYTHON, NATIVE, SYSTEM, GAPS };

#define STACKS_SAMPLED_MAX (1u << 18) /* rows during the walk; the table has fewer */

/* During the walk: why a sample has no stack. Of a thread without Python: LOOKED plus the kernel's
 * thread state and system call. */
enum { HAS_STACK, IN_GPUPROF, IS_TORN, IS_SILENT, NO_STACK, LOOKED };

static uint64_t looked_text(struct sums *s, uint64_t why)
{
    char text[64];
    unsigned state = (why - LOOKED) & 0xff;
    int32_t number = (int32_t)((why - LOOKED) >> 8) - 1;
    const struct system_call *call = system_call_of(number);
    if (call)
        snprintf(text, sizeof text, "(no stack: it waits in %s)", call->name);
    else if (number >= 0)
        snprintf(text, sizeof text, "(no stack: it waits in system call %d)", number);
    else
        snprintf(text, sizeof text, "(no stack%s)",
                 state == 'R'   ? ": it runs"
                 : state == 'D' ? ": it waits for a page"
                 : state        ? ": it waits"
                                : "");
    return sums_text(s, text);
}

static int samples_take(void *context, const struct slice *s)
{
    struct host_sample sample;
    if (s->event.record->type != RECORD_SAMPLE || !host_sample(s, &sample))
        return 0;
    uint64_t why = sample.in_gpuprof  ? IN_GPUPROF
                   : sample.is_torn   ? IS_TORN
                   : sample.is_silent ? IS_SILENT
                   : sample.stack     ? HAS_STACK
                   : sample.is_cpu
                       ? NO_STACK
                       : LOOKED + (uint8_t)sample.state + ((uint64_t)(sample.syscall + 1) << 8);
    struct sums_row *row = sums_row(context, s->event.process->index, sample.stack, why);
    row->values[SEEN] += sample.count;
    row->values[SAMPLES] += sample.is_cpu ? sample.count : 0;
    row->values[CPU] += sample.is_cpu ? sample.ns : 0;
    row->values[SYSTEM] += sample.is_cpu && sample.in_kernel ? sample.ns : 0;
    row->values[GAPS] += sample.is_cpu ? 0 : sample.ns;
    return 0;
}

/* "[libtorch_cpu.so]": the name of a function without a known name. */
static uint64_t unnamed(struct sums *s, const struct shown_frame *frame)
{
    char text[256];
    if (!frame->module)
        return sums_text(s, "(code in no known module)");
    snprintf(text, sizeof text, "[%s]", path_base(frame->module->raw));
    return sums_text(s, text);
}

static void place_row(struct sums *s, struct sums_row *row, void *context)
{
    static const char *const reasons[] = {
        [HAS_STACK] = "(no stack)",
        [IN_GPUPROF] = "(gpuprof itself)",
        [IS_TORN] = "(the stack could not be read whole)",
        [IS_SILENT] = "(threads that block the signal of samples)",
        [NO_STACK] = "(no stack)",
    };
    const struct place_lines *lines = context;
    uint32_t process = (uint32_t)row->keys[0], stack = (uint32_t)row->keys[1];
    uint64_t why = row->keys[2], values[SUMS_VALUES] = {0};
    enum host_time time = host_time_of(lines->stacks, process, stack, false);
    struct shown_frame frame;
    struct key key = {0};
    if (why == HAS_STACK && place_frame(lines, process, stack, &frame)) {
        key.a = frame.name ? sums_text(s, frame.name->shown) : unnamed(s, &frame);
        key.b = frame.file ? sums_text(s, frame.file->raw) : 0;
        key.c = own_frame(&frame) ? frame.line : 0; /* for others the function is enough */
    } else {
        key.a = why < LOOKED ? sums_text(s, reasons[why]) : looked_text(s, why);
    }
    for (unsigned i = 0; i < s->value_count; i++)
        values[i] = row->values[i];
    if (time != HOST_UNKNOWN)
        values[time == HOST_PYTHON ? PYTHON : NATIVE] = values[CPU] - values[SYSTEM];
    sums_row_add(s, key, values);
}

static int samples_end(void *context)
{
    struct sums *s = context;
    struct place_lines lines = {.stacks = &s->walk->survey.stacks};
    for (uint32_t i = 0; i < s->count; i++)
        if (!sums_is_others(&s->rows[i]) && s->rows[i].keys[2] == HAS_STACK)
            place_lines_add(&lines, (uint32_t)s->rows[i].keys[0], (uint32_t)s->rows[i].keys[1],
                            true);
    place_lines_find(&lines, s->walk->rec, s->walk->symbols);
    sums_remake(s, place_row, &lines);
    place_lines_release(&lines);
    return 0;
}

/* "tokenize (data.py:81)", in `text`. */
static const char *samples_name(const struct sums *s, const struct sums_row *row, char *text)
{
    const struct kernel_name *function = (const void *)(uintptr_t)row->keys[FUNCTION];
    const struct kernel_name *file = (const void *)(uintptr_t)row->keys[FILE_OF];
    (void)s;
    if (!file)
        return function ? function->shown : "?";
    char line[24] = "";
    if (row->keys[LINE])
        snprintf(line, sizeof line, ":%llu", (unsigned long long)row->keys[LINE]);
    snprintf(text, SUMS_NAME_BYTES, "%.16000s (%.64s%s)", function ? function->shown : "?",
             path_base(file->shown), line);
    return text;
}

static void samples_print_notes(const struct table *t, FILE *out)
{
    const struct sums *s = t->source;
    fputc('\n', out);
    if (s->whole[CPU])
        fprintf(out, "CPU time is estimated from samples: of n samples, within about 1/sqrt(n); "
                     "system is time in the kernel\n");
    if (s->whole[GAPS])
        fprintf(
            out,
            "in gaps: a thread that calls CUDA made no call for 1 ms or more, and was seen here, "
            "running or waiting\n");
}

static const struct column columns[] = {
    {NULL, "line", SHOW(KEY, FUNCTION),
     .doc = "the innermost line of the user's own code, or else the innermost function"},
    {"function", SHOW(TEXT, FUNCTION), .doc = "the function"},
    {"file", SHOW(KEY, FILE_OF), .doc = "the source file of the function, if known"},
    {"line", NULL, COLUMN_NUMBER, .ascending = true, SHOW(KEY, LINE),
     .doc = "the line; 0: unknown, or not the user's code"},
    {"samples", "samples", COLUMN_COUNT, 9, .spare = 2, SHOW(VALUE, SAMPLES), .where = SAMPLES,
     .doc = "the number of sample periods in that CPU time"},
    {"cpu_ns", "CPU", COLUMN_NS, 12, SHOW(VALUE, CPU), .where = SAMPLES, .doc = "CPU time"},
    {NULL, "share", COLUMN_SHARE, 7, SHOW(SHARE, CPU), .where = SAMPLES,
     .doc = "CPU time as a share of all sampled CPU time"},
    {"python_ns", "Python", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, PYTHON), .where = PYTHON,
     .doc = "the part of the CPU time in the Python interpreter"},
    {"native_ns", "native", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, NATIVE), .where = NATIVE,
     .doc = "the part of the CPU time in native code"},
    {"system_ns", "system", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, SYSTEM), .where = SYSTEM,
     .doc = "the part of the CPU time in the kernel"},
    {"gap_ns", "in gaps", COLUMN_NS, 12, .is_filled = true, SHOW(VALUE, GAPS), .where = GAPS,
     .doc = "time here between two CUDA calls, in threads that call CUDA"},
};

const struct sums_info samples_sums = {
    .keys = {KEY_TEXT, KEY_TEXT, KEY_NUMBER},
    .values = {JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD},
    .rows_max = STACKS_SAMPLED_MAX,
    .order = CPU,
    .then = {GAPS, SEEN},
    .is_left_out = true,
    .parts = REPORT_HOST,
    .name = samples_name,
    .consumer = {.needs = WALK_STACKS,
                 .skips = WALK_SKIPS_CALLS | WALK_SKIPS_WORK,
                 .take = samples_take,
                 .end = samples_end},
    .table = {SUMS_TABLE, .name = "samples", .key = "samples",
              .title = "CPU time by line (samples)", TABLE_COLUMNS(columns),
              .text = {6, 5, 7, 8, 9, 4,
                       10}, /* share, CPU, Python, native, system, samples, in gaps */
              .text_limit = 40, .text_none = ": no samples are recorded (gpuprof run --sample)",
              .text_behind = samples_print_notes},
};
