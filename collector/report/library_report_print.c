/* SPDX-License-Identifier: Apache-2.0 */
/* The table of calls of libraries (library_report.h). */
#include "analyse/library_report.h"
#include "api/api.h"
#include "record/argument_text.h"

enum {
    NAME,
    FUNCTION,
    LIBRARY,
    M,
    N,
    K,
    BATCH,
    TYPE,
    CALLS,
    ERRORS,
    CPU,
    GPU,
    SHARE,
    KERNELS,
    FLOPS,
    TFLOPS,
    PEAK,
    BYTES,
    RATE,
    INTENSITY,
    TENSOR,
    TENSOR_SHARE,
    BUS,
    BUS_CALLS,
    COLUMNS
};

static const struct column columns[COLUMNS] = {
    [NAME] = {"name", "name"},
    [FUNCTION] = {"function"},
    [LIBRARY] = {"library"},
    [M] = {"m", .type = COLUMN_COUNT},
    [N] = {"n", .type = COLUMN_COUNT},
    [K] = {"k", .type = COLUMN_COUNT},
    [BATCH] = {"batch", .type = COLUMN_COUNT},
    [TYPE] = {"type"},
    [CALLS] = {"calls", "calls", COLUMN_COUNT, 7, .spare = 2},
    [ERRORS] = {"errors", "errors", COLUMN_COUNT, 8, .spare = 2, .is_filled = true},
    [CPU] = {"cpu_ns", "CPU", COLUMN_NS, 11, .spare = 1},
    [GPU] = {"gpu_ns", "GPU", COLUMN_NS, 11},
    [SHARE] = {"gpu_share", "of GPU", COLUMN_SHARE, 7},
    [KERNELS] = {"works", .type = COLUMN_COUNT},
    [FLOPS] = {"flops", "FLOP/call", COLUMN_AMOUNT, 9, .spare = 2, .is_filled = true},
    [TFLOPS] = {"tflops", "TFLOP/s", COLUMN_RATE, 9, .is_filled = true},
    [PEAK] = {"peak_share", "of peak", COLUMN_SHARE, 7, .is_filled = true},
    [BYTES] = {"bytes", "bytes/call", COLUMN_BYTES, 10, .spare = 2, .is_filled = true},
    [RATE] = {"gb_s", .type = COLUMN_RATE},
    [INTENSITY] = {"flops_per_byte", "FLOP/B", COLUMN_RATE, 8, .spare = 2, .is_filled = true},
    [TENSOR] = {"tensor_cores", "tensor", COLUMN_TEXT, 8, .spare = 1, .is_filled = true},
    [TENSOR_SHARE] = {"tensor_share", .type = COLUMN_SHARE},
    [BUS] = {"bus_gb_s", "bus GB/s", COLUMN_RATE, 8, .is_filled = true},
    [BUS_CALLS] = {"bus_calls", .type = COLUMN_COUNT},
};

static void table_begins(struct table *t, enum report_format format)
{
    const struct library_report *l = t->source;
    (void)format;
    t->count = l ? l->count : 0;
    t->is_there = t->count > 0;
}

/* Could it use tensor cores, and did it? By the time of its kernels whose names say so. */
static const char *tensor_text(const struct library_row *row)
{
    uint64_t used = row->tensor_ns[TENSOR_USED], unused = row->tensor_ns[TENSOR_UNUSED];
    if (used && !unused)
        return "used";
    if (used)
        return "partly";
    if (!row->is_eligible)
        return row->work.has_flops ? "no" : NULL;
    return unused ? "unused" : NULL;
}

/* What a program computed wrongly is below 0. */
static struct cell size_cell(uint64_t size)
{
    return size > INT64_MAX ? cell_real((double)(int64_t)size) : cell_number(size);
}

static void fill_shape(const struct library_kind *kind, const struct library_row *row,
                       struct cell *cells)
{
    const struct library_shape *shape = &kind->shape;
    const char *type = cuda_type_text(shape->count ? shape->count_type : row->work.type);
    if (shape->m)
        cells[M] = size_cell(shape->m);
    if (shape->n)
        cells[N] = size_cell(shape->n);
    if (shape->k)
        cells[K] = size_cell(shape->k);
    if (shape->batch)
        cells[BATCH] = cell_number(shape->batch);
    if (type)
        cells[TYPE] = cell_text(type);
}

static void fill_work(const struct library_row *row, const struct library_kind *kind,
                      struct cell *cells)
{
    double intensity = library_row_intensity(row), tflops = library_row_tflops(row);
    double bus = library_row_bus(row);
    uint64_t tensor_ns = row->tensor_ns[TENSOR_USED];
    if (row->work.has_flops && row->errors < row->calls) /* what failed computed nothing */
        cells[FLOPS] = cell_number(row->work.flops);
    if (tflops > 0)
        cells[TFLOPS] = cell_real(tflops);
    if (tflops > 0 && row->peak && !row->is_mixed)
        cells[PEAK] = cell_real(tflops * 1e3 / row->peak);
    if (kind->shape.bytes)
        cells[BYTES] = cell_number(kind->shape.bytes);
    else if (row->work.has_bytes)
        cells[BYTES] = cell_number(row->work.bytes);
    if (row->work.has_bytes && row->gpu_ns)
        cells[RATE] =
            cell_real((double)row->work.bytes * (double)row->executed / (double)row->gpu_ns);
    if (intensity > 0)
        cells[INTENSITY] = cell_real(intensity);
    if (tensor_text(row))
        cells[TENSOR] = cell_text(tensor_text(row));
    if (row->work.has_flops && row->gpu_ns)
        cells[TENSOR_SHARE] = cell_share(tensor_ns, row->gpu_ns);
    if (bus > 0) {
        cells[BUS] = cell_real(bus);
        cells[BUS_CALLS] = cell_number(row->bus_calls);
    }
}

static void fill_row(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct library_report *l = t->source;
    const struct library_row *row = &l->rows[index];
    const struct library_kind *kind = row->of;
    (void)format;
    cells[NAME] = cell_text(row->text ? row->text->shown : kind->function->name);
    cells[FUNCTION] = cell_text(kind->function->name);
    cells[LIBRARY] = cell_text(api_domain_name(kind->function->domain));
    fill_shape(kind, row, cells);
    cells[CALLS] = cell_number(row->calls);
    cells[ERRORS] = row->errors || format == FORMAT_JSON ? cell_number(row->errors)
                                                         : (struct cell){.kind = CELL_NONE};
    cells[CPU] = cell_number(row->host_ns);
    cells[GPU] = cell_number(row->gpu_ns);
    cells[SHARE] = cell_share(row->gpu_ns, l->gpu_ns);
    cells[KERNELS] = cell_number(row->works);
    fill_work(row, kind, cells);
}

static void say_shares(const struct table *t, FILE *out)
{
    const struct library_report *l = t->source;
    if (!l->gpu_ns)
        return;
    fprintf(out,
            "GPU time of libraries' calls: %.1f%%; FLOPs are known for %.1f%% of the GPU time\n",
            cell_share(l->gpu_library_ns, l->gpu_ns).percent,
            cell_share(l->flops_ns, l->gpu_ns).percent);
}

static void say_shares_json(const struct table *t, FILE *out)
{
    const struct library_report *l = t->source;
    if (l)
        fprintf(out,
                "\"library_gpu_ns\": %llu,\n\"library_gpu_share\": %.4f,\n"
                "\"library_flops_known_ns\": %llu,\n\"library_flops_known_share\": %.4f,\n",
                (unsigned long long)l->gpu_library_ns,
                cell_share(l->gpu_library_ns, l->gpu_ns).real, (unsigned long long)l->flops_ns,
                cell_share(l->flops_ns, l->gpu_ns).real);
}

const struct table_info library_table = {
    .name = "library",
    .place = PLACE_KERNELS,
    .key = "library",
    .title = "calls of libraries",
    .columns = columns,
    .column_count = COLUMNS,
    .text = {SHARE, GPU, CPU, CALLS, ERRORS, TFLOPS, PEAK, TENSOR, INTENSITY, FLOPS, BYTES, BUS},
    .text_limit = 30,
    .more = "... and %s more row%s; --limit=N shows more of them",
    .text_none = ": no call of cuBLAS, cuDNN or NCCL is recorded (--libraries)",
    .begin = table_begins,
    .row = fill_row,
    .text_before = say_shares,
    .json_before = say_shares_json,
};
