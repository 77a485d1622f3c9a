/* SPDX-License-Identifier: Apache-2.0 */
#include "report/process_part.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

#define META_BYTES      2 /* in a part, at least */
#define STEP_DOWN_BYTES 5
#define DUMP_BYTES      9

#define LOSS_NUMBERS (sizeof(struct losses) / sizeof(uint64_t))
_Static_assert(sizeof(struct losses) % sizeof(uint64_t) == 0, "they are numbers, all of them");

static void carry_losses(struct part *p, struct losses *l)
{
    uint64_t numbers[LOSS_NUMBERS];
    memcpy(numbers, l, sizeof numbers);
    for (unsigned i = 0; i < LOSS_NUMBERS; i++)
        part_number(p, &numbers[i]);
    memcpy(l, numbers, sizeof numbers);
}

/* ---- what gpuprof cost it, dumps ------------------------------------------------------------- */

static void carry_cost_sums(struct part *p, struct cost_table *t)
{
    for (unsigned i = 0; i < COST_COUNT; i++) {
        part_number(p, &t->rows[i].count);
        part_number(p, &t->rows[i].timed);
        part_number(p, &t->rows[i].timed_ns);
        part_number(p, &t->rows[i].total_ns);
        part_number(p, &t->rows[i].unmeasured);
    }
    for (unsigned i = 0; i < COST_SUM_ARG_COUNT; i++)
        part_number(p, &t->sum[i]);
    const char *name = t->worst_name;
    part_u32(p, &t->worst_tid);
    part_text(p, &name);
    p->has_failed |= !name || strlen(name) >= sizeof t->worst_name;
    if (!p->has_failed && !p->is_written)
        memcpy(t->worst_name, name, strlen(name) + 1);
}

static void carry_step_down(struct part *p, struct step_down *s)
{
    const char *text = s->text;
    uint32_t step = s->step;
    part_u32(p, &step);
    part_number(p, &s->begin_ns);
    part_number(p, &s->share);
    part_number(p, &s->budget);
    part_text(p, &text);
    p->has_failed |= step > UINT16_MAX || !text || strlen(text) >= sizeof s->text;
    s->step = (uint16_t)step;
    if (!p->has_failed && !p->is_written)
        memcpy(s->text, text, strlen(text) + 1);
}

static int carry_costs(struct part *p, struct cost_table *t)
{
    carry_cost_sums(p, t);
    part_count(p, &t->step_count, STEP_DOWN_BYTES);
    if (!p->is_written)
        t->steps = calloc(t->step_count + 1u, sizeof *t->steps);
    for (uint32_t i = 0; i < t->step_count && t->steps && !p->has_failed; i++)
        carry_step_down(p, &t->steps[i]);
    return t->steps || !t->step_count ? 0 : GPUPROF_NO_MEMORY;
}

static void carry_dump(struct part *p, struct process_dump *d, const char **text)
{
    uint64_t *const numbers[] = {&d->number,    &d->reason,   &d->value, &d->ns,
                                 &d->median_ns, &d->begin_ns, &d->at_ns, &d->lost};
    part_numbers(p, numbers, sizeof numbers / sizeof numbers[0]);
    part_text(p, text);
}

static int get_dumps(struct part *p, struct process *process)
{
    uint32_t count = 0;
    part_count(p, &count, DUMP_BYTES);
    process->dumps = p->has_failed ? NULL : calloc(count + 1u, sizeof *process->dumps);
    for (uint32_t i = 0; i < count && process->dumps && !p->has_failed; i++) {
        const char *text = NULL;
        struct process_dump *d = &process->dumps[process->dump_count++];
        carry_dump(p, d, &text);
        if (text && !(d->text = strdup(text)))
            return GPUPROF_NO_MEMORY;
    }
    return process->dumps || p->has_failed ? 0 : GPUPROF_NO_MEMORY;
}

/* ---- the process ----------------------------------------------------------------------------- */

static void carry_told(struct part *p, struct process *process, struct process_told *told)
{
    part_number(p, &process->end_reason);
    part_flag(p, &process->has_gpu);
    part_number(p, &process->min_ns);
    part_number(p, &process->max_ns);
    carry_losses(p, &told->losses);
    part_number(p, &told->calls);
    part_number(p, &told->window);
}

void process_part_put(struct part *p, const struct process *process, struct process_told *told)
{
    uint8_t header[STREAM_HEADER_BYTES_MAX];
    const uint8_t *data = header;
    int size = stream_header_write(&process->header, header, sizeof header);
    const char *path = process->file.path;
    p->has_failed |= size < 0;
    part_bytes(p, &data, &(uint32_t){size < 0 ? 0 : (uint32_t)size});
    part_text(p, &path);
    struct process copy = *process;
    carry_told(p, &copy, told);
    part_count(p, &copy.meta_count, META_BYTES);
    for (uint32_t i = 0; i < process->meta_count; i++) {
        const char *text = process->meta[i].text;
        part_text(p, &text);
        part_number(p, &copy.meta[i].begin);
    }
    carry_costs(p, &copy.costs);
    part_count(p, &copy.dump_count, DUMP_BYTES);
    for (uint32_t i = 0; i < process->dump_count; i++) {
        struct process_dump dump = process->dumps[i];
        carry_dump(p, &dump, &(const char *){dump.text});
    }
}

static int get_metas(struct part *p, struct process *process)
{
    uint32_t count = 0;
    part_count(p, &count, META_BYTES);
    p->has_failed |= count > META_ENTRIES_MAX;
    process->meta = p->has_failed ? NULL : calloc(count + 1u, sizeof *process->meta);
    for (uint32_t i = 0; i < count && !p->has_failed; i++) {
        const char *text = NULL;
        part_text(p, &text);
        part_number(p, &process->meta[i].begin);
        process->meta[i].text = strdup(text ? text : "");
        process->meta_count++;
        if (!process->meta[i].text)
            return GPUPROF_NO_MEMORY;
    }
    return 0;
}

int process_part_get(struct part *p, struct process *process, struct process_told *told)
{
    const uint8_t *data = NULL;
    const char *path = NULL;
    uint32_t size = 0;
    part_bytes(p, &data, &size);
    part_text(p, &path);
    p->has_failed |=
        !p->has_failed && (!path || stream_header_read(&process->header, data, size) < 0);
    if (p->has_failed)
        return 0;
    carry_told(p, process, told);
    process->losses = told->losses;
    process->file.path = strdup(path);
    if (!process->file.path || clock_map_init(&process->clock, &process->header) < 0)
        return GPUPROF_NO_MEMORY;
    int error = get_metas(p, process);
    if (error == 0 && !p->has_failed)
        error = carry_costs(p, &process->costs);
    return error < 0 || p->has_failed ? error : get_dumps(p, process);
}
