/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the driver's readings of the devices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
#include "base/json_text.h"
#include "base/text.h"

static void device_report_print_begin(struct table *t)
{
    const struct device_report *r = t->source;
    t->count = r ? r->count : 0;
    t->is_there = t->count || (r && r->missing_reason_count && !t->info->is_further) ||
                  t->format == FORMAT_JSON;
}

/* Returns the share of time in which kernels of this process ran, including those that only wait
 * for another rank. NVML calls this utilisation, if nobody else uses the device. */
static struct cell busy_share(const struct device_report *r, const struct device_row *row)
{
    for (uint32_t i = 0; r->idle && i < r->idle->device_count; i++) {
        const struct idle_device *d = &r->idle->devices[i];
        if (d->process == row->process && d->device == row->device)
            return cell_share(d->parts[IDLE_COMPUTE] + d->parts[IDLE_COMMUNICATING] +
                                  d->causes[IDLE_COMMUNICATION],
                              d->end_ns - d->begin_ns);
    }
    return (struct cell){.kind = CELL_NULL};
}

/* How a column shows the mean with the index `of`. */
enum { BY_ITSELF, BY_MEAN, BY_MAX, BY_SHARE };

#define IDENTITY_COLUMNS                                                                           \
    {.label = "device", .doc = "the device and its process"},                                      \
        COLUMN_RANK(struct device_row, process), COLUMN_HOST(struct device_row, process),          \
        COLUMN_PID(struct device_row, process),                                                    \
    {                                                                                              \
        "device", NULL, COLUMN_NUMBER, .ascending = true, .doc = "CUDA's number of the device"     \
    }

/* Fills the first columns of both tables, and the means; a mean without readings stays empty. */
static void fill_common(const struct table *t, const struct device_row *row, struct cell *cells)
{
    cells[0] = cell_owned(device_row_title(row));
    cells[4] = cell_known(row->device != UINT64_MAX, row->device);
    for (unsigned i = 0; i < t->info->column_count; i++) {
        const struct column *c = &t->info->columns[i];
        double mean = c->by && row->means[c->of].count ? device_row_mean(row, c->of) : 0;
        if (c->by == BY_SHARE && row->means[c->of].count)
            cells[i] = cell_real(mean / 1e6);
        else if (c->by)
            cells[i] = cell_known(row->means[c->of].count,
                                  c->by == BY_MAX ? row->means[c->of].max : curve_whole(mean));
    }
}

/* ---- use ------------------------------------------------------------------------------------- */

enum { UUID = 5, KERNELS_BUSY = 8, BUSY_MAX = 10, TOTAL = 18, PROCESSES, PCIE_SENT };

static const struct column use_columns[] = {
    IDENTITY_COLUMNS,
    [UUID] = {"uuid", NULL, .doc = "the UUID of the device, or of its partition"},
    {"samples", NULL, COLUMN_COUNT, MEMBER(struct device_row, samples), .doc = "readings"},
    {"span_ns", "span", COLUMN_NS, 10, .spare = 2, MEMBER(struct device_row, span_ns),
     .doc = "time from the first reading to the last"},
    [KERNELS_BUSY] = {"kernels_busy_share", "kernels", COLUMN_SHARE, 7, .is_filled = true,
                      .doc = "share of the time in which kernels of this process ran"},
    {"busy_share", "NVML", COLUMN_SHARE, 7, .is_filled = true, .of = MEAN_BUSY, .by = BY_SHARE,
     .doc = "share of NVML's periods in which a kernel of any process ran"},
    [BUSY_MAX] = {"busy_max_share", NULL, COLUMN_SHARE,
                  .doc = "the highest value of that in one reading"},
    {"memory_busy_share", NULL, COLUMN_SHARE, .of = MEAN_MEMORY_BUSY, .by = BY_SHARE,
     .doc = "share of NVML's periods in which memory was read or written"},
    {"sm_share", "SMs", COLUMN_SHARE, 7, .is_filled = true, .of = MEAN_GPM_SM, .by = BY_SHARE,
     .doc = "share of multiprocessors with work, from hardware counters (GPM)"},
    {"occupancy_share", NULL, COLUMN_SHARE, .of = MEAN_GPM_OCCUPANCY, .by = BY_SHARE,
     .doc = "occupancy: warps as a share of the maximum (GPM)"},
    {"tensor_share", "tensor", COLUMN_SHARE, 7, .spare = 1, .is_filled = true,
     .of = MEAN_GPM_TENSOR, .by = BY_SHARE,
     .doc = "share of the time in which tensor cores worked (GPM)"},
    {"dram_share", "DRAM", COLUMN_SHARE, 7, .spare = 1, .is_filled = true, .of = MEAN_GPM_DRAM,
     .by = BY_SHARE, .doc = "share of the memory bandwidth in use (GPM)"},
    {"memory_used_max_bytes", "memory", COLUMN_BYTES, 10, .is_filled = true, .of = MEAN_USED,
     .by = BY_MAX, .doc = "the most memory in use by all processes"},
    {"memory_others_max_bytes", "others", COLUMN_BYTES, 10, .is_filled = true, .of = MEAN_OTHERS,
     .by = BY_MAX, .doc = "the most memory in use by other processes"},
    [TOTAL] = {"memory_total_bytes", NULL, COLUMN_BYTES, .doc = "memory of the device"},
    [PROCESSES] = {"processes_max", NULL, COLUMN_COUNT,
                   .doc = "the most processes that computed on the device at the same time"},
    [PCIE_SENT] = {"pcie_sent_bytes", "PCIe sent", COLUMN_BYTES, 10, .spare = 1, .is_filled = true,
                   .doc = "bytes sent over PCIe"},
    {"pcie_received_bytes", "received", COLUMN_BYTES, 10, .spare = 1, .is_filled = true,
     .doc = "bytes received over PCIe"},
    {"nvlink_sent_bytes", "NVLink", COLUMN_BYTES, 10, .spare = 1, .is_filled = true,
     .doc = "bytes sent over NVLink"},
    {"nvlink_received_bytes", "received", COLUMN_BYTES, 10, .spare = 1, .is_filled = true,
     .doc = "bytes received over NVLink"},
    {"is_mig", NULL, COLUMN_BOOL, MEMBER(struct device_row, is_part),
     .doc = "1: it is a partition of a device (MIG)"},
};

static void fill_use(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct device_row *row = table_item(t, index);
    fill_common(t, row, cells);
    cells[UUID] = cell_text(row->uuid.text[0] ? row->uuid.text : NULL);
    cells[KERNELS_BUSY] = busy_share(t->source, row);
    if (row->means[MEAN_BUSY].count)
        cells[BUSY_MAX] = cell_real((double)row->means[MEAN_BUSY].max / 1e6);
    cells[TOTAL] = cell_known(row->most.bytes, row->most.bytes);
    cells[PROCESSES] = cell_known(row->most.processes, row->most.processes);
    for (unsigned link = 0; link < LINKS; link++)
        cells[PCIE_SENT + link] =
            cell_known(row->links[link].is_known, curve_whole(row->links[link].bytes));
}

/* ---- missing counters, and why ---- */

/* Returns "power", or "power.energy, power.limit" with the database's labels. */
static char *missing_words(const struct device_missing *a)
{
    bool is_group = a->group >= RECORD_DEVICE_USE && a->group <= RECORD_DEVICE_GPM;
    const struct event_info *info = is_group ? event_info((uint8_t)a->group) : NULL;
    const char *group = info ? info->name + strlen("device_") : "counters";
    struct new_text text;
    FILE *out = new_text_begin(&text);
    for (unsigned i = 1; info && i < info->arg_count; i++)
        if (a->counters >> i & 1)
            fprintf(out, "%s%s.%s", ftell(out) ? ", " : "", group, info->args[i].label);
    if (!ftell(out))
        fputs(group, out);
    return new_text_end(&text, out);
}

char *device_missing_text(const struct device_report *r, const struct device_missing *a)
{
    if (!a->alike)
        return NULL;
    char *words = missing_words(a), *clean = json_line(a->text);
    char *whose = a->alike != 1 ? text_printf("%u %s", a->alike, a->row ? "devices" : "processes")
                  : !a->row     ? text_printf("process %u", a->process->header.pid)
                                : device_row_title(&r->rows[a->row - 1]);
    char *text =
        text_printf("no %s of %s: %s", words, whose, clean[0] ? clean : "no reason was recorded");
    free(whose);
    free(clean);
    free(words);
    return text;
}

void device_report_say_missing(const struct device_report *r,
                               bool (*is_of)(const struct device_missing *a), FILE *out)
{
    for (uint32_t i = 0; r && i < r->missing_reason_count; i++) {
        const struct device_missing *a = &r->missing_reasons[i];
        char *text = is_of && !is_of(a) ? NULL : device_missing_text(r, a);
        if (text)
            fprintf(out, "  %s\n", text);
        free(text);
    }
}

static void say_missing(const struct table *t, FILE *out)
{
    device_report_say_missing(t->source, NULL, out);
}

static void put_missing(const struct table *t, FILE *out)
{
    const struct device_report *r = t->source;
    fprintf(out, ",\n\"device_counters_absent\": [");
    for (uint32_t i = 0; r && i < r->missing_reason_count; i++) {
        const struct device_missing *a = &r->missing_reasons[i];
        const struct device_row *row = a->row ? &r->rows[a->row - 1] : NULL;
        char *words = missing_words(a);
        fputs(i ? ", " : "", out);
        json_printf(out, "{\"pid\": %u, \"device\": %.0f, \"is_mig\": ", a->process->header.pid,
                    row && row->device != UINT64_MAX ? (double)row->device : NAN);
        fputs(row && row->is_part ? "true" : "false", out);
        json_printf(out, ", \"what\": %s, \"reason\": %s}", words, a->text);
        free(words);
    }
    fprintf(out, "]");
}

/* ---- power ----------------------------------------------------------------------------------- */

enum { POWER_LIMIT = 8, ENERGY, ENERGY_ERROR, ENERGY_SPAN, ENERGY_PERIOD };
enum { ENERGY_JUMPS = ENERGY_PERIOD + 1, INTEGRAL, CLOCK_MAX = 16, THROTTLED = 19 };
enum { THROTTLED_SHARE = THROTTLED + THROTTLES };

static const struct column power_columns[] = {
    IDENTITY_COLUMNS,
    {"span_ns", NULL, COLUMN_NS, MEMBER(struct device_row, span_ns),
     .doc = "time from the first reading to the last"},
    {"power_mean_mw", "power", COLUMN_POWER, 9, .is_filled = true, .of = MEAN_POWER, .by = BY_MEAN,
     .doc = "mean power, in milliwatts"},
    {"power_max_mw", "max", COLUMN_POWER, 9, .is_filled = true, .of = MEAN_POWER, .by = BY_MAX,
     .doc = "the highest power in a reading"},
    [POWER_LIMIT] = {"power_limit_mw", "limit", COLUMN_POWER, 9, .spare = 1, .is_filled = true,
                     .doc = "the power limit"},
    [ENERGY] = {"energy_mj", "energy", COLUMN_ENERGY, 11, .is_filled = true,
                .doc = "energy by the device's own counter, in millijoules"},
    [ENERGY_ERROR] = {"energy_error_mj", "+-", COLUMN_ENERGY, 10, .is_filled = true,
                      .doc = "uncertainty of the energy"},
    [ENERGY_SPAN] = {"energy_span_ns", NULL, COLUMN_NS, .doc = "the time that the energy covers"},
    [ENERGY_PERIOD] = {"energy_period_ns", NULL, COLUMN_NS,
                       .doc = "time between two updates of the counter"},
    [ENERGY_JUMPS] = {"energy_jumps", NULL, COLUMN_COUNT,
                      .doc = "how often the counter restarted or jumped, which energy leaves out"},
    [INTEGRAL] = {"power_integral_mj", "of power", COLUMN_ENERGY, 11, .spare = 1, .is_filled = true,
                  .doc = "energy computed from power readings, in millijoules"},
    {"sm_clock_mean_mhz", "MHz", COLUMN_NUMBER, 6, .is_filled = true, .of = MEAN_SM_CLOCK,
     .by = BY_MEAN, .doc = "mean clock of the multiprocessors"},
    [CLOCK_MAX] = {"sm_clock_limit_mhz", NULL, COLUMN_NUMBER,
                   .doc = "the highest clock that the multiprocessors support"},
    {"memory_clock_mean_mhz", NULL, COLUMN_NUMBER, .of = MEAN_MEMORY_CLOCK, .by = BY_MEAN,
     .doc = "mean clock of the memory"},
    {"temperature_max_c", "C", COLUMN_NUMBER, 4, .is_filled = true, .of = MEAN_TEMPERATURE,
     .by = BY_MAX, .doc = "the highest temperature, in degrees Celsius"},
    [THROTTLED + THROTTLE_POWER] = {"throttled_power_ns", "by power", COLUMN_NS, 11,
                                    .is_filled = true, .doc = "time throttled by the power limit"},
    [THROTTLED + THROTTLE_THERMAL] = {"throttled_thermal_ns", "thermal", COLUMN_NS, 11,
                                      .is_filled = true, .doc = "time throttled by heat"},
    [THROTTLED + THROTTLE_BRAKE] = {"throttled_brake_ns", "brake", COLUMN_NS, 11, .is_filled = true,
                                    .doc = "time throttled by the power supply"},
    [THROTTLED + THROTTLE_SYNC] = {"throttled_sync_ns", NULL, COLUMN_NS,
                                   .doc = "time throttled together with others"},
    [THROTTLED_SHARE] = {"throttled_power_share", NULL, COLUMN_SHARE,
                         .doc = "throttled_power_ns as a share of the recorded time"},
    {"throttled_is_sampled", NULL, COLUMN_BOOL, MEMBER(struct device_row, throttle.is_sampled),
     .doc = "1: the throttled times come from readings, since there are no counters"},
};

/* Text leaves out MIG partitions, which have neither power nor clocks. */
static bool has_power(const struct table *t, uint32_t index)
{
    const struct device_row *row = table_item(t, index);
    const uint64_t *samples = row->group_samples;
    return t->format != FORMAT_TEXT || samples[RECORD_DEVICE_POWER - RECORD_DEVICE_USE] ||
           samples[RECORD_DEVICE_CLOCKS - RECORD_DEVICE_USE];
}

static void fill_power(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct device_row *row = table_item(t, index);
    uint64_t energy_ns;
    struct curve_growth energy = curve_reported(device_row_energy(row, &energy_ns));
    bool has_energy = energy_ns && energy.known == CURVE_KNOWN,
         has_throttle = row->throttle.curve[THROTTLE_POWER].count;
    fill_common(t, row, cells);
    cells[POWER_LIMIT] = cell_known(row->most.power, row->most.power);
    cells[ENERGY] = cell_known(has_energy, curve_whole(energy.value));
    cells[ENERGY_ERROR] = cell_known(has_energy, curve_whole(energy.error));
    if (energy.known == CURVE_SHORT && t->format == FORMAT_TEXT)
        cells[ENERGY] = cell_text("too short");
    cells[ENERGY_SPAN] = cell_known(energy_ns, energy_ns);
    cells[ENERGY_PERIOD] = cell_known(energy_ns, device_curve_period_ns(&row->energy));
    cells[ENERGY_JUMPS] = cell_known(energy_ns, row->energy.jump_count);
    cells[ENERGY].at_least = has_energy && row->energy.jump_count;
    cells[INTEGRAL] =
        cell_known(row->means[MEAN_POWER].area_ns, curve_whole(row->means[MEAN_POWER].area / 1e9));
    cells[CLOCK_MAX] = cell_known(row->most.sm_clock, row->most.sm_clock);
    for (unsigned why = 0; why < THROTTLES; why++) {
        uint64_t ns = device_row_throttled_ns(row, (enum throttle)why);
        if (ns || t->format != FORMAT_TEXT)
            cells[THROTTLED + why] = cell_known(row->throttle.curve[why].count, ns);
        cells[THROTTLED + why].estimated = row->throttle.is_sampled;
    }
    if (has_throttle)
        cells[THROTTLED_SHARE] =
            cell_share(device_row_throttled_ns(row, THROTTLE_POWER), row->span_ns);
}

static void power_behind(const struct table *t, FILE *out)
{
    bool any_jumps = false;
    for (uint32_t i = 0; i < t->count; i++)
        any_jumps |= ((const struct device_row *)table_item(t, i))->energy.jump_count;
    if (any_jumps)
        fputs(DEVICE_AT_LEAST_LINE, out);
}

#define DEVICE_TABLE(KEY, COLUMNS, FILL)                                                           \
    .name = "device_counters", .key = KEY, .needs = PART_COUNTERS, TABLE_COLUMNS(COLUMNS),         \
    .rows = {ROWS_IN(struct device_report, rows, count)}, .begin = device_report_print_begin,      \
    .row = FILL

const struct table_info device_tables[DEVICE_TABLES] = {
    {DEVICE_TABLE("device_counters", use_columns, fill_use), .title = "readings of the devices",
     .text_none = ": 'gpuprof run --device' records it (needs NVML)", .text_behind = say_missing,
     .json_behind = put_missing},
    {DEVICE_TABLE("device_power", power_columns, fill_power),
     .title = "power, clocks and throttling", .is_further = true, .has = has_power,
     .text_behind = power_behind},
};
