/* SPDX-License-Identifier: Apache-2.0 */
/* The table of library calls, and collectives that wait for other ranks (library_report.h). */
#include <string.h>

#include "analyse/analyses.h"
#include "analyse/device_peak.h"
#include "analyse/library_report.h"
#include "api/api.h"
#include "record/gpu_record.h"

enum { TEXT, FLOPS_OF_CALL, FUNCTION_NAME };

enum { TYPE = 7, FLOPS = 14, TFLOPS, PEAK, BYTES, RATE, INTENSITY, TENSOR, TENSOR_SHARE, BUS };

static const struct column columns[] = {
    {"name", "name", SHOW(KEY, TEXT), .doc = "the function, and the size of the problem"},
    {"function", SHOW(KEY, FUNCTION_NAME), .doc = "the function that was called"},
    {"library", SHOW(KEY, SUMS_OF_VALUE(LIBRARY_DOMAIN)), .doc = "the library that it belongs to"},
    {"m", .type = COLUMN_NUMBER, SHOW(VALUE, LIBRARY_M), .only = LIBRARY_M,
     .doc = "rows of the product"},
    {"n", .type = COLUMN_NUMBER, SHOW(VALUE, LIBRARY_N), .only = LIBRARY_N,
     .doc = "columns of the product"},
    {"k", .type = COLUMN_NUMBER, SHOW(VALUE, LIBRARY_K), .only = LIBRARY_K,
     .doc = "the inner size of the product"},
    {"batch", .type = COLUMN_COUNT, SHOW(VALUE, LIBRARY_BATCH), .only = LIBRARY_BATCH,
     .doc = "products, or calls, in one call"},
    [TYPE] = {"type", .doc = "the data type of the factors, or of the message"},
    {"calls", "calls", COLUMN_COUNT, 7, .spare = 2, SHOW(VALUE, LIBRARY_CALLS),
     .doc = "how many calls there were"},
    {"errors", "errors", COLUMN_COUNT, 8, .spare = 2, .is_filled = true,
     SHOW(VALUE, LIBRARY_ERRORS), .where = LIBRARY_ERRORS, .doc = "calls that returned an error"},
    {"cpu_ns", "CPU", COLUMN_NS, 11, .spare = 1, SHOW(VALUE, LIBRARY_HOST),
     .doc = "how long the calls took on the host"},
    {"gpu_ns", "GPU", COLUMN_NS, 11, SHOW(VALUE, LIBRARY_GPU),
     .doc = "GPU time of the work that the calls launched"},
    {"gpu_share", "of GPU", COLUMN_SHARE, 7, SHOW(PART, LIBRARY_GPU),
     .doc = "GPU time as a share of all GPU time"},
    {"works", .type = COLUMN_COUNT, SHOW(VALUE, LIBRARY_WORKS),
     .doc = "kernels, copies and sets that the calls launched"},
    [FLOPS] = {"flops", "FLOP/call", COLUMN_AMOUNT, 9, .spare = 2, .is_filled = true,
               .doc = "floating-point operations in a call"},
    [TFLOPS] = {"tflops", "TFLOP/s", COLUMN_RATE, 9, .is_filled = true,
                .doc = "floating-point operations for each second of GPU time"},
    [PEAK] = {"peak_share", "of peak", COLUMN_SHARE, 7, .is_filled = true,
              .doc = "that rate as a share of the device's peak"},
    [BYTES] = {"bytes", "bytes/call", COLUMN_BYTES, 10, .spare = 2, .is_filled = true,
               .doc = "bytes that a call sends, or must move at least"},
    [RATE] = {"gb_s", .type = COLUMN_RATE, .doc = "those bytes for each second of GPU time"},
    [INTENSITY] = {"flops_per_byte", "FLOP/B", COLUMN_RATE, 8, .spare = 2, .is_filled = true,
                   .doc = "floating-point operations for each byte that must be moved"},
    [TENSOR] = {"tensor_cores", "tensor", COLUMN_TEXT, 8, .spare = 1, .is_filled = true,
                .doc = "used, partly or unused, by the kernels' names; no: not for this data type"},
    [TENSOR_SHARE] = {"tensor_share", .type = COLUMN_SHARE,
                      .doc = "the share of its GPU time in kernels that use tensor cores"},
    [BUS] = {"bus_gb_s", "bus GB/s", COLUMN_RATE, 8, .is_filled = true,
             .doc = "bandwidth of a link of the collective, as nccl-tests computes it"},
    {"bus_calls", .type = COLUMN_COUNT, SHOW(VALUE, LIBRARY_BUS_CALLS), .only = LIBRARY_BUS_CALLS,
     .doc = "collectives with a recording of every rank"},
};

/* ---- numbers --------------------------------------------------------------------------------- */

enum { F32, F64, F16, I8, BF16 = 14, E4M3 = 28, E5M2 };
enum { FAST_F16 = 74, FAST_BF16 = 75 };

/* The peak for the data type. For f32 the kernel's name shows which cores ran, if the call allows
 * both. */
static uint32_t peak_of(const struct device_peaks *peaks, const uint64_t *v)
{
    uint64_t compute = v[LIBRARY_COMPUTE];
    switch (v[LIBRARY_FACTOR]) {
    case F64: return peaks->double_;
    case F16: return peaks->half;
    case BF16: return peaks->bfloat16;
    case E4M3:
    case E5M2: return peaks->float8;
    case I8: return peaks->int8;
    case F32: break;
    default: return 0;
    }
    if (compute == FAST_F16 || compute == FAST_BF16)
        return compute == FAST_F16 ? peaks->half : peaks->bfloat16;
    if (compute == LIBRARY_COMPUTE_TF32 || v[LIBRARY_TENSOR + TENSOR_USED])
        return peaks->tf32;
    return v[LIBRARY_TENSOR + TENSOR_UNUSED] || !peaks->tf32 ? peaks->single : 0;
}

/* Whether it could use tensor cores, and did, by the time of kernels with telling names. */
static const char *tensor_text(const uint64_t *v)
{
    uint64_t used = v[LIBRARY_TENSOR + TENSOR_USED], unused = v[LIBRARY_TENSOR + TENSOR_UNUSED];
    if (used)
        return unused ? "partly" : "used";
    if (!v[LIBRARY_IS_PRODUCT])
        return NULL;
    if (v[LIBRARY_IS_VECTOR] ||
        !tensor_is_eligible((uint8_t)v[LIBRARY_FACTOR], (uint16_t)v[LIBRARY_COMPUTE],
                            v[LIBRARY_DOUBLE]))
        return "no";
    return unused ? "unused" : NULL;
}

/* The bandwidth of a collective in bytes a nanosecond (GB/s) on each link of a rank, as nccl-tests
 * computes it (doc/PERFORMANCE.md); 0: not known. */
static double bus_of(const char *name, const uint64_t *v)
{
    static const struct {
        const char *name;
        bool is_part; /* its count is for one rank */
        uint8_t rest; /* times (n-1)/n of its bytes pass a link; 0: all, once */
    } collectives[] = {
        {"ncclAllReduce", false, 2}, {"ncclAllGather", true, 1}, {"ncclReduceScatter", true, 1},
        {"ncclAlltoAll", true, 1},   {"ncclGather", true, 1},    {"ncclScatter", true, 1},
        {"ncclBroadcast", false, 0}, {"ncclBcast", false, 0},    {"ncclReduce", false, 0}};
    double ranks = (double)v[LIBRARY_RANKS];
    unsigned i = 0;
    while (i < sizeof collectives / sizeof collectives[0] && strcmp(collectives[i].name, name) != 0)
        i++;
    if (i == sizeof collectives / sizeof collectives[0] || !v[LIBRARY_BUS_NS])
        return 0;
    double bytes = (double)v[LIBRARY_MESSAGE] * (collectives[i].is_part ? ranks : 1);
    double factor = collectives[i].rest ? collectives[i].rest * (ranks - 1) / ranks : 1;
    return bytes * (double)v[LIBRARY_BUS_CALLS] * factor / (double)v[LIBRARY_BUS_NS];
}

/* ---- cells ----------------------------------------------------------------------------------- */

static struct cell positive(double real)
{
    return real > 0 ? cell_real(real) : (struct cell){0};
}

/* Fills in FLOP/s, the device's peak, and bytes, as far as known. */
static void fill_rates(const uint64_t *v, uint64_t flops, struct cell *cells)
{
    bool is_mixed = v[LIBRARY_LEAST_DEVICE] != v[LIBRARY_DEVICE];
    const struct device_peaks *peaks = is_mixed ? NULL : device_peaks_at(v[LIBRARY_DEVICE]);
    uint32_t peak = peaks && v[LIBRARY_IS_PRODUCT] ? peak_of(peaks, v) : 0;
    double executed = (double)v[LIBRARY_EXECUTED], ns = (double)v[LIBRARY_GPU];
    double tflops = v[LIBRARY_IS_PRODUCT] && ns > 0 ? (double)flops * executed / ns / 1e3 : 0;
    if (v[LIBRARY_IS_PRODUCT] && v[LIBRARY_ERRORS] < v[LIBRARY_CALLS])
        cells[FLOPS] = cell_number(flops); /* failed calls computed nothing */
    cells[TFLOPS] = positive(tflops);
    if (peak)
        cells[PEAK] = positive(tflops * 1e3 / peak);
    if (v[LIBRARY_HAS_BYTES] && ns > 0)
        cells[RATE] = cell_real((double)v[LIBRARY_BYTES] * executed / ns);
    if (v[LIBRARY_IS_PRODUCT] && v[LIBRARY_HAS_BYTES] && v[LIBRARY_BYTES])
        cells[INTENSITY] = positive((double)flops / (double)v[LIBRARY_BYTES]);
    if (v[LIBRARY_IS_PRODUCT] && ns > 0)
        cells[TENSOR_SHARE] = cell_share(v[LIBRARY_TENSOR + TENSOR_USED], v[LIBRARY_GPU]);
}

static void library_table_fill(const struct table *t, const struct sums_row *row,
                               struct cell *cells)
{
    const struct sums *s = t->source;
    const uint64_t *v = row->values;
    const char *name = sums_name(s, row, FUNCTION_NAME, NULL), *tensor = tensor_text(v);
    const char *type = cuda_type_text((uint8_t)v[LIBRARY_TYPE]);
    if (type)
        cells[TYPE] = cell_text(type);
    if (v[LIBRARY_MESSAGE] || v[LIBRARY_HAS_BYTES])
        cells[BYTES] = cell_number(v[LIBRARY_MESSAGE] ? v[LIBRARY_MESSAGE] : v[LIBRARY_BYTES]);
    if (tensor)
        cells[TENSOR] = cell_text(tensor);
    fill_rates(v, row->keys[FLOPS_OF_CALL], cells);
    cells[BUS] = positive(name ? bus_of(name, v) : 0);
}

static void say_shares(const struct table *t, FILE *out)
{
    const struct sums *s = t->source;
    if (*s->all)
        fprintf(out,
                "GPU time in library calls: %.1f%%; FLOPs are known for %.1f%% of the GPU "
                "time\n",
                100 * cell_share(s->whole[LIBRARY_OWN_NS], *s->all).real,
                100 * cell_share(s->whole[LIBRARY_FLOPS_NS], *s->all).real);
}

static void say_shares_json(const struct table *t, FILE *out)
{
    const struct sums *s = t->source;
    if (s->info)
        fprintf(out,
                "\"library_gpu_ns\": %llu,\n\"library_gpu_share\": %.4f,\n"
                "\"library_flops_known_ns\": %llu,\n\"library_flops_known_share\": %.4f,\n",
                (unsigned long long)s->whole[LIBRARY_OWN_NS],
                cell_share(s->whole[LIBRARY_OWN_NS], *s->all).real,
                (unsigned long long)s->whole[LIBRARY_FLOPS_NS],
                cell_share(s->whole[LIBRARY_FLOPS_NS], *s->all).real);
}

const struct sums_info library_sums = {
    .keys = {KEY_TEXT, KEY_NUMBER, KEY_TEXT},
    .values = {JOIN_MOST, [LIBRARY_CALLS... LIBRARY_OWN_NS] = JOIN_ADD, JOIN_LEAST,
               [LIBRARY_DEVICE... LIBRARY_BYTES] = JOIN_MOST},
    .is = {[LIBRARY_DOMAIN] = KEY_DOMAIN},
    .rows_max = KINDS_MAX,
    .order = LIBRARY_GPU,
    .then = {LIBRARY_HOST},
    .part_of = LIBRARY_ALL_NS,
    .parts = REPORT_LIBRARIES,
    .keeps_filtered = true,
    .is_left_out = true,
    .fill = library_table_fill,
    .table = {SUMS_TABLE, .name = "library", .place = PLACE_KERNELS, .key = "library",
              .needs = PART_LIBRARIES, .title = "library calls", TABLE_COLUMNS(columns),
              /* share, GPU, CPU, calls, errors, and rates */
              .text = {12, 11, 10, 8, 9, TFLOPS, PEAK, TENSOR, INTENSITY, FLOPS, BYTES, BUS},
              .text_limit = 30,
              .text_none = ": no call of cuBLAS, cuDNN or NCCL is recorded (--libraries)",
              .text_before = say_shares, .json_before = say_shares_json},
};

/* ---- incomplete collectives, in parts only --------------------------------------------------- */

enum { SEEN, RANKS, NS };

/* The shortest kernel is known once all ranks are there. */
static void complete_waits(struct sums *s)
{
    struct sums *calls = s + 1;
    struct key_map places = {0};
    for (uint32_t i = 0; i < calls->count; i++)
        key_map_set(&places, (struct key){calls->rows[i].keys[TEXT], 0, 0}, i + 1);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct sums_row *wait = &s->rows[i];
        uint64_t place = key_map_get(&places, (struct key){wait->keys[2], 0, 0});
        if (!place || wait->values[SEEN] < wait->values[RANKS])
            continue;
        calls->rows[place - 1].values[LIBRARY_BUS_CALLS]++;
        calls->rows[place - 1].values[LIBRARY_BUS_NS] += wait->values[NS];
    }
    key_map_release(&places);
}

const struct sums_info library_waits_sums = {
    .keys = {KEY_NUMBER, KEY_NUMBER, KEY_TEXT},
    .values = {JOIN_ADD, JOIN_MOST, JOIN_LEAST},
    .parts = REPORT_LIBRARIES,
    .complete = complete_waits,
    .table = {SUMS_TABLE, .name = ""},
};
