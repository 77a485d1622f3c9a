/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of calls of libraries only behind the walk: names, FLOPs, tensor cores
 * (library_report.h). */
#include <stdlib.h>
#include <string.h>

#include "analyse/device_peak.h"
#include "analyse/library_report.h"
#include "api/api.h"
#include "base/array.h"
#include "error.h"

/* Beside the kinds in `makers`. */
#define MADE_BY_NONE    UINT64_MAX       /* some or all were launched in no call */
#define MADE_BY_SEVERAL (UINT64_MAX - 1) /* functions */
#define OF_SEVERAL      (1ull << 32)     /* shapes of the kind's function */

/* ---- kernels --------------------------------------------------------------------------------- */

static __attribute__((noinline)) int make_pair(struct library_report *l, struct key key,
                                               const struct library_pair *made)
{
    int error = key_map_set(&l->pair_places, key, l->pair_count + 1ull);
    if (error < 0)
        return error == GPUPROF_LIMIT ? 0 : error;
    struct library_pair *pairs =
        array_room(l->pairs, l->pair_count, &l->pair_capacity, sizeof *pairs, 64);
    if (!pairs)
        return GPUPROF_NO_MEMORY;
    l->pairs = pairs;
    pairs[l->pair_count++] = *made;
    return 0;
}

int library_pair_add(struct library_report *l, uint32_t kind, const struct process *process,
                     uint64_t kernel, uint64_t ns)
{
    struct key key = {(uint64_t)kind << 32 | process->index, kernel, 0};
    uint64_t place = key_map_get(&l->pair_places, key);
    if (!place)
        return make_pair(
            l, key,
            &(struct library_pair){.kind = kind, .process = process, .kernel = kernel, .ns = ns});
    l->pairs[place - 1].ns += ns;
    return 0;
}

/* The function of a kind may have another description in another process. */
static bool is_same_function(const struct library_kinds *k, uint32_t a, uint32_t b)
{
    const struct function *x = library_kind(k, a)->function, *y = library_kind(k, b)->function;
    return x == y || (x->domain == y->domain && strcmp(x->name, y->name) == 0);
}

static uint64_t made_by(const struct library_report *l, uint64_t before, uint32_t kind)
{
    const struct library_kinds *k = &l->walk->kinds;
    if (!kind || before == MADE_BY_NONE)
        return MADE_BY_NONE;
    if (!before)
        return kind;
    if (before == MADE_BY_SEVERAL || !is_same_function(k, (uint32_t)before, kind))
        return MADE_BY_SEVERAL;
    if (library_kind(k, (uint32_t)before)->text == library_kind(k, kind)->text)
        return before;
    return before | OF_SEVERAL;
}

static int find_makers(struct library_report *l)
{
    for (uint32_t i = 0; i < l->pair_count; i++) {
        const struct library_pair *pair = &l->pairs[i];
        const struct kernel_name *name = walk_kernel(l->walk, pair->process, pair->kernel);
        enum tensor_use use = name ? tensor_use_of(name->shown) : TENSOR_UNKNOWN;
        if (pair->kind)
            l->rows[pair->kind - 1].tensor_ns[use] += pair->ns;
        if (!name)
            continue;
        struct key key = {(uintptr_t)name, 0, 0};
        uint64_t maker = made_by(l, key_map_get(&l->makers, key), pair->kind);
        if (key_map_set(&l->makers, key, maker) < 0)
            return GPUPROF_NO_MEMORY; /* there are fewer than a map has room for */
    }
    return 0;
}

struct kernel_made library_report_made(const struct library_report *l,
                                       const struct kernel_name *kernel)
{
    uint64_t maker = kernel ? key_map_get(&l->makers, (struct key){(uintptr_t)kernel, 0, 0}) : 0;
    if (!maker || maker == MADE_BY_NONE || maker == MADE_BY_SEVERAL)
        return (struct kernel_made){.maker = !maker                  ? MAKER_UNKNOWN
                                             : maker == MADE_BY_NONE ? MAKER_NONE
                                                                     : MAKER_SEVERAL};
    if (l->pair_count == LIBRARY_PAIRS_MAX)
        return (struct kernel_made){.maker = MAKER_NONE};
    const struct library_kind *kind = library_kind(&l->walk->kinds, (uint32_t)maker);
    return (struct kernel_made){.maker = maker & OF_SEVERAL ? MAKER_FUNCTION : MAKER_KIND,
                                .domain = kind->function->domain,
                                .function = kind->function->name,
                                .text = kind->text ? kind->text->shown : NULL};
}

const char *library_maker_text(const struct kernel_made *made)
{
    bool is_one = made->maker == MAKER_KIND || made->maker == MAKER_FUNCTION;
    return !is_one ? NULL : made->maker == MAKER_KIND && made->text ? made->text : made->function;
}

const char *library_report_maker(const struct library_report *l, const struct kernel_name *kernel)
{
    struct kernel_made made = library_report_made(l, kernel);
    return library_maker_text(&made);
}

/* ---- rows ------------------------------------------------------------------------------------ */

void library_row_see(const struct library_report *l, struct library_row *row,
                     const struct process *process, uint64_t device)
{
    if (row->process == process && row->device == device)
        return;
    if (row->process) {
        const struct surveyed_device *a =
            survey_device(&l->walk->survey, row->process, row->device);
        const struct surveyed_device *b = survey_device(&l->walk->survey, process, device);
        row->is_mixed |= !a || !b || strcmp(a->name, b->name) != 0;
        if (row->process->index < process->index ||
            (row->process == process && row->device < device))
            return;
    }
    row->process = process;
    row->device = device;
}

enum { F32, F64, F16, I8, BF16 = 14, E4M3 = 28, E5M2 };
enum { FAST_F16 = 74, FAST_BF16 = 75 };

/* Of a product of f32 the kernel's name says which cores did it, where the call allows both. */
static uint32_t peak_of(const struct device_peaks *peaks, const struct library_row *row,
                        uint16_t compute)
{
    switch (row->work.type) {
    case F64: return peaks->double_;
    case F16: return peaks->half;
    case BF16: return peaks->bfloat16;
    case E4M3:
    case E5M2: return peaks->float8;
    case I8: return peaks->int8;
    case F32: break;
    default: return 0;
    }
    uint64_t used_ns = row->tensor_ns[TENSOR_USED];
    if (compute == FAST_F16 || compute == FAST_BF16)
        return compute == FAST_F16 ? peaks->half : peaks->bfloat16;
    if (compute == LIBRARY_COMPUTE_TF32 || used_ns)
        return peaks->tf32;
    return row->tensor_ns[TENSOR_UNUSED] || !peaks->tf32 ? peaks->single : 0;
}

/* f64 is multiplied on tensor cores by GA100, GH100 and GB100. */
static bool has_double_cores(const struct surveyed_device *d)
{
    return d && d->limits.minor == 0 && d->limits.major >= 8 && d->limits.major <= 10;
}

static void rate(struct library_report *l, struct library_row *row)
{
    const struct surveyed_device *d =
        row->process ? survey_device(&l->walk->survey, row->process, row->device) : NULL;
    const struct device_peaks *peaks = d && !row->is_mixed ? device_peaks_of(d->name) : NULL;
    /* Vectors gain nothing by them. */
    const struct library_shape *shape = &row->of->shape;
    bool is_vector = (shape->has_m && shape->m == 1) || (shape->has_n && shape->n == 1) ||
                     (shape->has_k && shape->k == 1);
    row->is_eligible = row->work.has_flops && !is_vector &&
                       tensor_is_eligible(row->work.type, shape->compute, has_double_cores(d));
    if (row->work.has_flops)
        l->flops_ns += row->gpu_ns;
    if (!peaks)
        return;
    row->bandwidth = peaks->bandwidth;
    row->peak = row->work.has_flops ? peak_of(peaks, row, shape->compute) : 0;
}

static void add_sums(struct library_row *into, const struct library_row *row)
{
    into->calls += row->calls;
    into->errors += row->errors;
    into->host_ns += row->host_ns;
    into->gpu_ns += row->gpu_ns;
    into->works += row->works;
    into->executed += row->executed;
    for (unsigned i = 0; i < TENSOR_USES; i++)
        into->tensor_ns[i] += row->tensor_ns[i];
    into->bus_calls += row->bus_calls;
    into->bus_ns += row->bus_ns;
    into->is_mixed |= row->is_mixed;
}

static void join(struct library_row *into, const struct library_row *row)
{
    add_sums(into, row);
    into->is_mixed |= into->process && row->process &&
                      (into->peak != row->peak || into->bandwidth != row->bandwidth);
    if (!into->process) {
        into->process = row->process;
        into->device = row->device;
        into->peak = row->peak;
        into->bandwidth = row->bandwidth;
    }
}

static const char *text_of(const struct library_row *row)
{
    return row->text ? row->text->shown : "";
}

/* But for the plan, whose number is its process's own: its text says what it is. */
static int compare_shapes(struct library_shape a, struct library_shape b)
{
    a.plan = b.plan = 0;
    a.process = b.process = 0;
    return memcmp(&a, &b, sizeof a);
}

/* By what is called, whichever process calls it first: the text first, then what tells kinds of one
 * text apart. */
static int compare_kinds(const void *left, const void *right)
{
    const struct library_row *a = left, *b = right;
    const struct function *f = a->of->function, *g = b->of->function;
    const struct library_work *v = &a->work, *w = &b->work;
    const uint64_t numbers[][2] = {{v->flops, w->flops},
                                   {f->domain, g->domain},
                                   {a->of->is_others, b->of->is_others},
                                   {a->of->is_group, b->of->is_group},
                                   {v->has_flops, w->has_flops},
                                   {v->has_bytes, w->has_bytes},
                                   {v->bytes, w->bytes},
                                   {v->type, w->type}};
    int order = strcmp(text_of(a), text_of(b));
    for (unsigned i = 0; !order && i < sizeof numbers / sizeof numbers[0]; i++)
        order = (numbers[i][0] > numbers[i][1]) - (numbers[i][0] < numbers[i][1]);
    order = order ? order : strcmp(f->name, g->name);
    return order ? order : compare_shapes(a->of->shape, b->of->shape);
}

/* Processes have kinds of their own where functions are described in another way, or plans have
 * other numbers. */
static void join_kinds(struct library_report *l)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->count; i++)
        if (l->rows[i].is_seen)
            l->rows[count++] = l->rows[i];
    l->count = count;
    if (count)
        qsort(l->rows, count, sizeof *l->rows, compare_kinds);
    count = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct library_row row = l->rows[i];
        if (!count || compare_kinds(&l->rows[count - 1], &row) != 0) {
            l->rows[count++] = row;
            continue;
        }
        add_sums(&l->rows[count - 1], &row);
        if (row.process)
            library_row_see(l, &l->rows[count - 1], row.process, row.device);
    }
    l->count = count;
}

/* What is called the same is one row: they lie side by side. */
static void join_rows(struct library_report *l)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        struct library_row *before = count ? &l->rows[count - 1] : NULL;
        const struct library_row row = l->rows[i];
        if (before && row.text && before->text == row.text && before->work.flops == row.work.flops)
            join(before, &row);
        else
            l->rows[count++] = row;
    }
    l->count = count;
}

static int compare_rows(const void *left, const void *right)
{
    const struct library_row *a = left, *b = right;
    if (a->gpu_ns != b->gpu_ns)
        return a->gpu_ns > b->gpu_ns ? -1 : 1;
    if (a->host_ns != b->host_ns)
        return a->host_ns > b->host_ns ? -1 : 1;
    return compare_kinds(a, b);
}

void library_rows_order(struct library_report *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        l->rows[i].of = library_kind(&l->walk->kinds, l->rows[i].kind);
    join_kinds(l);
    for (uint32_t i = 0; i < l->count; i++)
        rate(l, &l->rows[i]);
    join_rows(l);
    if (l->count)
        qsort(l->rows, l->count, sizeof *l->rows, compare_rows);
}

int library_report_complete(struct library_report *l)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < l->count; i++) {
        if (!l->rows[i].is_seen)
            continue;
        l->rows[i].text = library_kind_text(&l->walk->kinds, i + 1, &error);
        l->rows[i].work = library_kind_work(&l->walk->kinds, i + 1);
    }
    if (error == 0)
        error = find_makers(l);
    if (error == 0 && !l->is_part)
        library_rows_order(l);
    return error;
}

/* ---- numbers --------------------------------------------------------------------------------- */

double library_row_intensity(const struct library_row *row)
{
    const struct library_work *w = &row->work;
    return w->has_flops && w->has_bytes && w->bytes ? (double)w->flops / (double)w->bytes : 0;
}

double library_row_tflops(const struct library_row *row)
{
    return row->work.has_flops && row->gpu_ns
               ? (double)row->work.flops * (double)row->executed / (double)row->gpu_ns / 1e3
               : 0;
}

/* What of a collective each of n ranks sends and receives: nccl-tests' doc/PERFORMANCE.md. */
double library_row_bus(const struct library_row *row)
{
    enum { ONCE, REST, TWICE_REST };
    static const struct {
        const char *name;
        bool is_part; /* its count is that of one rank */
        uint8_t factor;
    } collectives[] = {
#define COLLECTIVE(name, is_part, factor) {name, is_part, factor},
#include "analyse/collectives.def"
    };
    const struct library_kind *kind = row->of;
    double ranks = kind->shape.ranks;
    for (unsigned i = 0; i < sizeof collectives / sizeof collectives[0]; i++) {
        if (strcmp(collectives[i].name, kind->function->name) != 0)
            continue;
        double bytes = (double)kind->shape.bytes * (collectives[i].is_part ? ranks : 1);
        double rest = (ranks - 1) / ranks;
        double factor = collectives[i].factor == ONCE   ? 1
                        : collectives[i].factor == REST ? rest
                                                        : 2 * rest;
        return row->bus_ns ? bytes * (double)row->bus_calls * factor / (double)row->bus_ns : 0;
    }
    return 0;
}
