/* SPDX-License-Identifier: Apache-2.0 */
#include "report/op_part.h"

#include <string.h>

#include "error.h"

#define ROW_BYTES  28 /* in a part, at least */
#define NONE_BYTES 5

static void carry_sum(struct part *p, struct op_sum *s)
{
    part_number(p, &s->flops);
    part_number(p, &s->known);
    part_number(p, &s->calls);
}

/* What it could have done at most takes two numbers. */
static void carry_peak(struct part *p, unsigned __int128 *peak)
{
    uint64_t low = (uint64_t)*peak, high = (uint64_t)(*peak >> 64);
    part_number(p, &low);
    part_number(p, &high);
    *peak = (unsigned __int128)high << 64 | low;
}

static void carry_row(struct part *p, struct op_row *row, const char **text, uint32_t *process)
{
    uint32_t kind = row->kind;
    uint64_t *const numbers[] = {&row->name,       &row->calls,       &row->total_ns,
                                 &row->self_ns,    &row->gpu_ns,      &row->gpu_self_ns,
                                 &row->graph_ns,   &row->backward_ns, &row->backward_gpu_ns,
                                 &row->rate_flops, &row->rate_ns};
    part_u32(p, &kind);
    part_u32(p, process);
    part_text(p, text);
    part_flag(p, &row->is_others);
    part_flag(p, &row->is_rated);
    part_flag(p, &row->has_no_peak);
    part_numbers(p, numbers, sizeof numbers / sizeof numbers[0]);
    carry_sum(p, &row->profiler);
    carry_sum(p, &row->counter);
    carry_sum(p, &row->backward);
    carry_peak(p, &row->peak_flops);
    p->has_failed |= kind >= OP_ROW_KINDS;
    row->kind = (enum op_row_kind)(p->has_failed ? 0 : kind);
}

static void carry_none(struct part *p, struct op_none_row *row, const char **name)
{
    uint32_t cause = row->cause, origin = row->origin;
    part_u32(p, &cause);
    part_u32(p, &origin);
    part_text(p, name);
    part_number(p, &row->count);
    part_number(p, &row->ns);
    p->has_failed |= cause >= NONE_CAUSES || origin >= GRAPH_ORIGINS;
    row->cause = (enum op_none_cause)(p->has_failed ? 0 : cause);
    row->origin = (enum graph_origin)(p->has_failed ? 0 : origin);
}

/* What there is one of. */
static void carry_whole(struct part *p, struct op_report *o)
{
    part_number(p, &o->gpu_ns);
    part_number(p, &o->gpu_none_ns);
    part_number(p, &o->graph_ns);
    part_number(p, &o->flops_ns);
    part_flag(p, &o->has_flops);
    part_flag(p, &o->has_rows);
}

void op_part_put(const struct op_report *o, struct part *p)
{
    static const struct op_report nothing;
    struct op_report whole = o ? *o : nothing;
    bool has_more = o && (o->entry_count >= o->rows_max || o->none.count >= OP_NONE_ROWS_MAX);
    uint32_t count = 0;
    carry_whole(p, &whole);
    part_flag(p, &has_more);
    for (uint32_t i = 0; i < whole.count; i++)
        count += whole.rows[i].kind != OP_ROW_NONE;
    part_count(p, &count, ROW_BYTES);
    for (uint32_t i = 0; i < whole.count; i++) {
        struct op_row row = whole.rows[i];
        if (row.kind != OP_ROW_NONE)
            carry_row(p, &row, &(const char *){row.text ? row.text->raw : NULL},
                      &(uint32_t){row.process ? row.process->index + 1 : 0});
    }
    part_count(p, &whole.none.count, NONE_BYTES);
    for (uint32_t i = 0; i < whole.none.count; i++) {
        struct op_none_row row = whole.none.rows[i];
        carry_none(p, &row, &(const char *){row.name ? row.name->raw : NULL});
    }
}

static int intern(struct kernel_names *names, const char *text, const struct kernel_name **found)
{
    return text ? kernel_name_intern(names, (const uint8_t *)text, strlen(text), found) : 0;
}

static int add_row(struct op_report *o, struct part *p, struct process *const *processes,
                   uint32_t process_count)
{
    struct op_row row = {0};
    const char *text = NULL;
    uint32_t process = 0;
    carry_row(p, &row, &text, &process);
    p->has_failed |= process > process_count;
    if (p->has_failed)
        return 0;
    row.process = process ? processes[process - 1] : NULL;
    int error = intern(&o->walk->texts, text, &row.text);
    /* Each stands for itself until all are there. */
    struct key key = {o->count, 0, 0};
    int64_t place = error < 0 ? error : op_row_place(o, key, &row);
    return place < 0 ? (int)place : 0;
}

static int add_none(struct op_report *o, struct part *p)
{
    struct op_none_row row = {0};
    const char *name = NULL;
    carry_none(p, &row, &name);
    int error = p->has_failed ? 0 : intern(&o->walk->kernels, name, &row.name);
    return error < 0 || p->has_failed ? error : op_none_join(&o->none, &row);
}

int op_part_add(struct op_report *o, struct part *p, struct process *const *processes,
                uint32_t process_count, bool *has_more)
{
    struct op_report whole = {0};
    bool more = false;
    uint32_t count = 0;
    int error = 0;
    carry_whole(p, &whole);
    part_flag(p, &more);
    o->gpu_ns += whole.gpu_ns;
    o->gpu_none_ns += whole.gpu_none_ns;
    o->graph_ns += whole.graph_ns;
    o->flops_ns += whole.flops_ns;
    o->has_flops |= whole.has_flops;
    o->has_rows |= whole.has_rows;
    part_count(p, &count, ROW_BYTES);
    for (uint32_t i = 0; i < count && error == 0 && !p->has_failed; i++)
        error = add_row(o, p, processes, process_count);
    part_count(p, &count, NONE_BYTES);
    for (uint32_t i = 0; i < count && error == 0 && !p->has_failed; i++)
        error = add_none(o, p);
    *has_more |= more;
    return error;
}
