/* SPDX-License-Identifier: Apache-2.0 */
#include "report/op_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"
#include "report/range_rows.h"

void op_report_init(struct op_report *o, struct walk *walk, enum report_by by, bool groups)
{
    uint64_t more = recording_bytes(walk->rec) / OP_ROW_BYTES;
    *o = (struct op_report){.walk = walk, .by_shape = by == BY_SHAPE, .groups = groups};
    o->rows_max = more < OP_ROWS_MAX - OP_ROWS_FREE ? OP_ROWS_FREE + (uint32_t)more : OP_ROWS_MAX;
}

void op_report_release(struct op_report *o)
{
    free(o->rows);
    key_map_release(&o->places);
}

/* The place of the row with that key, which may be a new one like `made`; or an error. */
static int64_t place_of(struct op_report *o, struct key key, const struct op_row *made)
{
    uint64_t place = key_map_get(&o->places, key);
    if (place)
        return (int64_t)place - 1;
    struct op_row *rows = array_room(o->rows, o->count, &o->capacity, sizeof *rows, 64);
    if (!rows)
        return GPUPROF_NO_MEMORY;
    o->rows = rows;
    rows[o->count] = *made;
    if (key_map_set(&o->places, key, ++o->count) < 0)
        return GPUPROF_NO_MEMORY; /* there are fewer rows than a map has room for */
    return o->count - 1;
}

static int open_op(struct op_report *o, struct op *op)
{
    uint64_t kind = op_is_label(op) ? OP_ROW_LABEL : OP_ROW_OPERATOR;
    struct op_row made = {.kind = (enum op_row_kind)kind,
                          .text = op->text,
                          .process = op->process,
                          .name = op->name,
                          .inputs = o->by_shape ? op->inputs : 0};
    bool is_own = op->text && !op->name;
    struct key key = {(uint64_t)op->process->index << 3 | is_own << 2 | kind,
                      is_own ? (uintptr_t)op->text : op->name, made.inputs};
    if (o->count >= o->rows_max && !key_map_get(&o->places, key)) {
        key = (struct key){UINT64_MAX, kind, 0};
        made = (struct op_row){.kind = made.kind, .is_others = true};
    }
    int64_t place = place_of(o, key, &made);
    op->row = place < 0 ? 0 : (uint32_t)place;
    return place < 0 ? (int)place : 0;
}

static void close_op(struct op_report *o, const struct op *op)
{
    struct op_row *row = &o->rows[op->row];
    uint64_t ns = op->end_ns - op->begin_ns;
    row->calls++;
    row->total_ns += ns;
    if (!op->is_moved && ns > op->inner_ns)
        row->self_ns += ns - op->inner_ns;
}

static int take_slice(void *context, const struct slice *s)
{
    struct op_report *o = context;
    if (s->op_change == OP_SAME || s->op->is_traced)
        return 0;
    if (s->op_change == OP_OPENED)
        return open_op(o, s->op);
    close_op(o, s->op);
    return 0;
}

/* GPU work is that of all operators and labels that were open when its call began. */
static int tied(void *context, const struct slice *s)
{
    struct op_report *o = context;
    uint64_t ns = s->event.end_ns - s->event.begin_ns;
    uint32_t number = s->is_called ? s->call.op : 0;
    bool is_in_label = false, is_in_op = false;
    int error = 0;
    if (!is_stream_work(s->event.record->type))
        return 0;
    o->gpu_ns += ns;
    for (unsigned depth = 0; depth < OPS_DEPTH_MAX; depth++) {
        const struct op_node *node = survey_op(&o->walk->survey, &s->call, &number, &error);
        if (!node)
            break;
        struct op_row *row = &o->rows[node->row];
        row->gpu_ns += ns;
        row->gpu_self_ns += is_in_op || (node->is_label && is_in_label) ? 0 : ns;
        is_in_label = true;
        is_in_op |= !node->is_label;
        number = node->parent;
    }
    o->gpu_none_ns += is_in_op ? 0 : ns;
    return error;
}

/* ---- when all is known ----------------------------------------------------------------------- */

static int find_dims(struct op_report *o, struct op_row *row)
{
    const struct kernel_name *inputs =
        row->inputs ? walk_op_inputs(o->walk, row->process, row->inputs) : NULL;
    if (!inputs)
        return 0;
    char *text = malloc(OP_TEXT_BYTES(inputs->raw_bytes));
    if (!text)
        return GPUPROF_NO_MEMORY;
    size_t length = (size_t)(op_put_dims(text, inputs->raw, inputs->raw_bytes) - text);
    int error = kernel_name_intern(&o->walk->texts, (const uint8_t *)text, length, &row->dims);
    free(text);
    return error;
}

static void find_text(const struct op_report *o, struct op_row *row)
{
    if (!row->text && row->name)
        row->text = kernel_name_of(&o->walk->names[row->process->index].ops.names, row->name);
}

static int group_labels(struct op_report *o)
{
    const struct kernel_name **names = calloc(o->count + 1u, sizeof *names);
    if (!names)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < o->count; i++) {
        find_text(o, &o->rows[i]);
        names[i] = o->rows[i].kind == OP_ROW_LABEL ? o->rows[i].text : NULL;
    }
    int64_t grouped = range_names_group(&o->walk->texts, names, o->count);
    for (uint32_t i = 0; grouped > 0 && i < o->count; i++)
        o->rows[i].text = names[i] ? names[i] : o->rows[i].text;
    o->has_groups = grouped > 0;
    free(names);
    return grouped < 0 ? (int)grouped : 0;
}

/* A name or a set of sizes has many numbers: one in each process, and others with other types. */
static int join_rows(struct op_report *o)
{
    uint32_t count = o->count;
    key_map_release(&o->places);
    o->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct op_row row = o->rows[i];
        if (!row.calls && !row.gpu_ns) /* it began, and its end is missing */
            continue;
        find_text(o, &row);
        int error = find_dims(o, &row);
        uint64_t process = row.process ? row.process->index : 0;
        struct key key = {process << 3 | row.is_others << 2 | row.kind, row.name, 0};
        if (row.text)
            key = (struct key){UINT64_MAX - row.kind, (uintptr_t)row.text, 0};
        key.c = (uintptr_t)row.dims;
        uint32_t before = o->count;
        int64_t place = error < 0 ? error : place_of(o, key, &row);
        if (place < 0)
            return (int)place;
        if (o->count > before) /* it is new */
            continue;
        struct op_row *into = &o->rows[place];
        into->calls += row.calls;
        into->total_ns += row.total_ns;
        into->self_ns += row.self_ns;
        into->gpu_ns += row.gpu_ns;
        into->gpu_self_ns += row.gpu_self_ns;
    }
    return 0;
}

static int compare_texts(const struct kernel_name *a, const struct kernel_name *b)
{
    return strcmp(a ? a->shown : "", b ? b->shown : "");
}

static int compare_rows(const void *left, const void *right)
{
    const struct op_row *a = left;
    const struct op_row *b = right;
    if ((a->kind == OP_ROW_LABEL) != (b->kind == OP_ROW_LABEL))
        return a->kind == OP_ROW_LABEL ? 1 : -1;
    if (a->gpu_self_ns != b->gpu_self_ns)
        return a->gpu_self_ns > b->gpu_self_ns ? -1 : 1;
    if (a->self_ns != b->self_ns)
        return a->self_ns > b->self_ns ? -1 : 1;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    int order = compare_texts(a->text, b->text);
    return order ? order : compare_texts(a->dims, b->dims);
}

static int end(void *context)
{
    struct op_report *o = context;
    struct op_row none = {
        .kind = OP_ROW_NONE, .gpu_ns = o->gpu_none_ns, .gpu_self_ns = o->gpu_none_ns};
    int64_t error = o->groups ? group_labels(o) : 0;
    if (error == 0)
        error = join_rows(o);
    if (error == 0 && o->count && o->gpu_none_ns)
        error = place_of(o, (struct key){UINT64_MAX, UINT64_MAX, UINT64_MAX}, &none);
    for (uint32_t i = 0; i < o->count; i++)
        o->self_ns += o->rows[i].kind == OP_ROW_OPERATOR ? o->rows[i].self_ns : 0;
    if (o->count)
        qsort(o->rows, o->count, sizeof *o->rows, compare_rows);
    return error < 0 ? (int)error : 0;
}

struct consumer op_report_consumer(struct op_report *o, bool has_work)
{
    return (struct consumer){.context = o,
                             .needs = WALK_OPS | (has_work ? (unsigned)WALK_WORK : 0),
                             .take = take_slice,
                             .tied = tied,
                             .end = end};
}
