/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver said of the devices, on paper. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
#include "base/json_text.h"
#include "base/unit_text.h"
#include "read/process_title.h"

static const struct device_row *row_at(const struct table *t, uint32_t index)
{
    return ((const struct device_report *)t->source)->rows[index];
}

static void begin(struct table *t, enum report_format format)
{
    const struct device_report *r = t->source;
    t->count = r ? r->count : 0;
    t->is_there =
        t->count || (r && r->absence_count && !t->info->is_further) || format == FORMAT_JSON;
}

/* A mean or the highest of what was never known is nothing. */
static struct cell mean(const struct device_row *row, enum device_mean which)
{
    return row->means[which].count ? cell_number(curve_whole(device_row_mean(row, which)))
                                   : (struct cell){.kind = CELL_NULL};
}

static struct cell highest(const struct device_row *row, enum device_mean which)
{
    return row->means[which].count ? cell_number(row->means[which].max)
                                   : (struct cell){.kind = CELL_NULL};
}

static struct cell share(const struct device_row *row, enum device_mean which)
{
    return row->means[which].count ? cell_real(device_row_mean(row, which) / 1e6)
                                   : (struct cell){.kind = CELL_NULL};
}

static struct cell known(bool is_known, uint64_t value)
{
    return is_known ? cell_number(value) : (struct cell){.kind = CELL_NULL};
}

/* The kernels of this process alone, those that only wait for another rank, too: what NVML calls
 * utilisation, if nobody else uses the device. */
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

/* What both tables begin with. */
enum { NAME, RANK, HOST, PID, DEVICE, IDENTITY };

static void fill_identity(const struct device_row *row, struct cell *cells)
{
    cells[NAME] = cell_owned(device_row_title(row));
    cells[RANK] = cell_text(process_rank(row->process));
    cells[HOST] = cell_text(row->process->header.host);
    cells[PID] = cell_number(row->process->header.pid);
    cells[DEVICE] = known(row->device != UINT64_MAX, row->device);
}

/* ---- use ------------------------------------------------------------------------------------- */

enum {
    UUID = IDENTITY,
    SAMPLES,
    SPAN,
    KERNELS_BUSY,
    BUSY,
    BUSY_MAX,
    MEMORY_BUSY,
    SM,
    OCCUPANCY,
    TENSOR,
    DRAM,
    USED,
    OTHERS,
    TOTAL,
    PROCESSES,
    PCIE_SENT,
    PCIE_RECEIVED,
    NVLINK_SENT,
    NVLINK_RECEIVED,
    IS_PART,
    USE_COLUMNS
};

static const struct column use_columns[USE_COLUMNS] = {
    [NAME] = {NULL, "device"},
    [RANK] = {"rank", NULL},
    [HOST] = {"host", NULL},
    [PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true},
    [DEVICE] = {"device", NULL, COLUMN_NUMBER, .ascending = true},
    [UUID] = {"uuid", NULL},
    [SAMPLES] = {"samples", NULL, COLUMN_COUNT},
    [SPAN] = {"span_ns", "span", COLUMN_NS, 10, .spare = 2},
    [KERNELS_BUSY] = {"kernels_busy_share", "kernels", COLUMN_SHARE, 7, .is_filled = true},
    [BUSY] = {"busy_share", "NVML", COLUMN_SHARE, 7, .is_filled = true},
    [BUSY_MAX] = {"busy_max_share", NULL, COLUMN_SHARE},
    [MEMORY_BUSY] = {"memory_busy_share", NULL, COLUMN_SHARE},
    [SM] = {"sm_share", "SMs", COLUMN_SHARE, 7, .is_filled = true},
    [OCCUPANCY] = {"occupancy_share", NULL, COLUMN_SHARE},
    [TENSOR] = {"tensor_share", "tensor", COLUMN_SHARE, 7, .spare = 1, .is_filled = true},
    [DRAM] = {"dram_share", "DRAM", COLUMN_SHARE, 7, .spare = 1, .is_filled = true},
    [USED] = {"memory_used_max_bytes", "memory", COLUMN_BYTES, 10, .is_filled = true},
    [OTHERS] = {"memory_others_max_bytes", "others", COLUMN_BYTES, 10, .is_filled = true},
    [TOTAL] = {"memory_total_bytes", NULL, COLUMN_BYTES},
    [PROCESSES] = {"processes_max", NULL, COLUMN_COUNT},
    [PCIE_SENT] = {"pcie_sent_bytes", "PCIe sent", COLUMN_BYTES, 10, .spare = 1, .is_filled = true},
    [PCIE_RECEIVED] = {"pcie_received_bytes", "received", COLUMN_BYTES, 10, .spare = 1,
                       .is_filled = true},
    [NVLINK_SENT] = {"nvlink_sent_bytes", "NVLink", COLUMN_BYTES, 10, .spare = 1,
                     .is_filled = true},
    [NVLINK_RECEIVED] = {"nvlink_received_bytes", "received", COLUMN_BYTES, 10, .spare = 1,
                         .is_filled = true},
    [IS_PART] = {"is_mig", NULL, COLUMN_BOOL},
};

static void fill_use(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct device_row *row = row_at(t, index);
    (void)format;
    fill_identity(row, cells);
    cells[UUID] = cell_text(row->uuid[0] ? row->uuid : NULL);
    cells[SAMPLES] = cell_number(row->samples);
    cells[SPAN] = cell_number(row->last_ns - row->first_ns);
    cells[KERNELS_BUSY] = busy_share(t->source, row);
    cells[BUSY] = share(row, MEAN_BUSY);
    if (row->means[MEAN_BUSY].count)
        cells[BUSY_MAX] = cell_real((double)row->means[MEAN_BUSY].max / 1e6);
    cells[MEMORY_BUSY] = share(row, MEAN_MEMORY_BUSY);
    cells[SM] = share(row, MEAN_GPM_SM);
    cells[OCCUPANCY] = share(row, MEAN_GPM_OCCUPANCY);
    cells[TENSOR] = share(row, MEAN_GPM_TENSOR);
    cells[DRAM] = share(row, MEAN_GPM_DRAM);
    cells[USED] = highest(row, MEAN_USED);
    cells[OTHERS] = highest(row, MEAN_OTHERS);
    cells[TOTAL] = known(row->total, row->total);
    cells[PROCESSES] = known(row->processes, row->processes);
    for (unsigned link = 0; link < LINKS; link++)
        cells[PCIE_SENT + link] = known(row->has_link[link], curve_whole(row->link_bytes[link]));
    cells[IS_PART] = cell_number(row->is_part);
}

/* ---- what does not come, and why ---- */

/* "power", or "power.energy, power.limit" as the database has them. */
static char *absent_words(const struct device_absent *a)
{
    bool is_group = a->group >= RECORD_DEVICE_USE && a->group <= RECORD_DEVICE_GPM;
    const struct event_info *info = is_group ? event_info((uint8_t)a->group) : NULL;
    const char *group = info ? info->name + strlen("device_") : "counters";
    char *words = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&words, &length);
    if (!out)
        return NULL;
    for (unsigned i = 1; info && i < info->arg_count; i++)
        if (a->counters >> i & 1)
            fprintf(out, "%s%s.%s", ftell(out) ? ", " : "", group, info->args[i].label);
    if (!ftell(out))
        fputs(group, out);
    fclose(out);
    return words;
}

static bool are_alike(const struct device_absent *a, const struct device_absent *b)
{
    return a->group == b->group && a->counters == b->counters && !a->row == !b->row &&
           strcmp(a->text, b->text) == 0;
}

/* Was anything read of it, before that? */
static bool was_there(const struct device_report *r, const struct device_absent *a)
{
    if (a->row)
        return !a->group && r->rows[a->row - 1]->samples;
    for (uint32_t i = r->firsts[a->process->index]; i; i = r->rows[i - 1]->next)
        if (r->rows[i - 1]->samples)
            return true;
    return false;
}

char *device_absent_text(const struct device_report *r, const struct device_absent *a,
                         uint32_t alike)
{
    char *words = absent_words(a), *clean = json_line(a->text), *whose = NULL, *text = NULL;
    int length = 0;
    if (alike != 1)
        length = asprintf(&whose, "%u %s", alike, a->row ? "devices" : "processes");
    else if (!a->row)
        length = asprintf(&whose, "process %u", a->process->header.pid);
    else
        whose = device_row_title(r->rows[a->row - 1]);
    whose = length < 0 ? NULL : whose;
    length = asprintf(&text, "no %s%s of %s: %s", was_there(r, a) ? "more " : "",
                      words ? words : "counters", whose ? whose : "?",
                      clean && clean[0] ? clean : "no reason was recorded");
    free(whose);
    free(clean);
    free(words);
    return length < 0 ? NULL : text;
}

uint32_t device_absent_alike(const struct device_report *r, const struct device_absent *a)
{
    uint32_t alike = 0;
    for (const struct device_absent *other = r->absences; other < r->absences + r->absence_count;
         other++) {
        bool is_like = are_alike(a, other);
        if (is_like && other < a)
            return 0;
        alike += is_like;
    }
    return alike;
}

bool device_report_say_absent(const struct device_report *r,
                              bool (*is_of)(const struct device_absent *a), FILE *out)
{
    bool any = false;
    for (uint32_t i = 0; r && i < r->absence_count; i++) {
        const struct device_absent *a = &r->absences[i];
        uint32_t alike = is_of && !is_of(a) ? 0 : device_absent_alike(r, a);
        char *text = alike ? device_absent_text(r, a, alike) : NULL;
        any |= alike != 0;
        if (text)
            fprintf(out, "  %s\n", text);
        free(text);
    }
    return any;
}

static void say_absent(const struct table *t, FILE *out)
{
    device_report_say_absent(t->source, NULL, out);
}

static void put_absent(const struct table *t, FILE *out)
{
    const struct device_report *r = t->source;
    fprintf(out, ",\n\"device_counters_absent\": [");
    for (uint32_t i = 0; r && i < r->absence_count; i++) {
        const struct device_absent *a = &r->absences[i];
        const struct device_row *row = a->row ? r->rows[a->row - 1] : NULL;
        char *text = json_string(a->text, strlen(a->text));
        char *words = absent_words(a);
        fprintf(out, "%s{\"pid\": %u, \"device\": ", i ? ", " : "", a->process->header.pid);
        fprintf(out, row && row->device != UINT64_MAX ? "%" PRIu64 : "null", row ? row->device : 0);
        fprintf(out, ", \"is_mig\": %s, \"what\": \"%s\", \"reason\": %s}",
                row && row->is_part ? "true" : "false", words ? words : "counters",
                text ? text : "null");
        free(words);
        free(text);
    }
    fprintf(out, "]");
}

/* ---- power ----------------------------------------------------------------------------------- */

enum {
    POWER_SPAN = IDENTITY,
    POWER_MEAN,
    POWER_MAX,
    POWER_LIMIT,
    ENERGY,
    ENERGY_ERROR,
    ENERGY_SPAN,
    ENERGY_PERIOD,
    ENERGY_JUMPS,
    INTEGRAL,
    CLOCK,
    CLOCK_MAX,
    MEMORY_CLOCK,
    TEMPERATURE,
    THROTTLED,
    THROTTLED_SHARE = THROTTLED + THROTTLES,
    IS_SAMPLED,
    POWER_COLUMNS
};

static const struct column power_columns[POWER_COLUMNS] = {
    [NAME] = {NULL, "device"},
    [RANK] = {"rank", NULL},
    [HOST] = {"host", NULL},
    [PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true},
    [DEVICE] = {"device", NULL, COLUMN_NUMBER, .ascending = true},
    [POWER_SPAN] = {"span_ns", NULL, COLUMN_NS},
    [POWER_MEAN] = {"power_mean_mw", "power", COLUMN_POWER, 9, .is_filled = true},
    [POWER_MAX] = {"power_max_mw", "max", COLUMN_POWER, 9, .is_filled = true},
    [POWER_LIMIT] = {"power_limit_mw", "limit", COLUMN_POWER, 9, .spare = 1, .is_filled = true},
    [ENERGY] = {"energy_mj", "energy", COLUMN_ENERGY, 11, .is_filled = true},
    [ENERGY_ERROR] = {"energy_error_mj", "+-", COLUMN_ENERGY, 10, .is_filled = true},
    [ENERGY_SPAN] = {"energy_span_ns", NULL, COLUMN_NS},
    [ENERGY_PERIOD] = {"energy_period_ns", NULL, COLUMN_NS},
    [ENERGY_JUMPS] = {"energy_jumps", NULL, COLUMN_COUNT},
    [INTEGRAL] = {"power_integral_mj", "of power", COLUMN_ENERGY, 11, .spare = 1,
                  .is_filled = true},
    [CLOCK] = {"sm_clock_mean_mhz", "MHz", COLUMN_NUMBER, 6, .is_filled = true},
    [CLOCK_MAX] = {"sm_clock_limit_mhz", NULL, COLUMN_NUMBER},
    [MEMORY_CLOCK] = {"memory_clock_mean_mhz", NULL, COLUMN_NUMBER},
    [TEMPERATURE] = {"temperature_max_c", "C", COLUMN_NUMBER, 4, .is_filled = true},
    [THROTTLED +
        THROTTLE_POWER] = {"throttled_power_ns", "by power", COLUMN_NS, 11, .is_filled = true},
    [THROTTLED +
        THROTTLE_THERMAL] = {"throttled_thermal_ns", "thermal", COLUMN_NS, 11, .is_filled = true},
    [THROTTLED +
        THROTTLE_BRAKE] = {"throttled_brake_ns", "brake", COLUMN_NS, 11, .is_filled = true},
    [THROTTLED + THROTTLE_SYNC] = {"throttled_sync_ns", NULL, COLUMN_NS},
    [THROTTLED_SHARE] = {"throttled_power_share", NULL, COLUMN_SHARE},
    [IS_SAMPLED] = {"throttled_is_sampled", NULL, COLUMN_BOOL},
};

/* The text leaves out parts of devices, which have neither. */
static bool has_power(const struct table *t, uint32_t index, enum report_format format)
{
    const uint64_t *samples = row_at(t, index)->group_samples;
    return format != FORMAT_TEXT || samples[RECORD_DEVICE_POWER - RECORD_DEVICE_USE] ||
           samples[RECORD_DEVICE_CLOCKS - RECORD_DEVICE_USE];
}

static void fill_power(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells)
{
    const struct device_row *row = row_at(t, index);
    uint64_t energy_ns;
    struct curve_growth energy = curve_told(device_row_energy(row, &energy_ns));
    bool has_energy = energy_ns && energy.known == CURVE_KNOWN,
         has_throttle = row->throttled[THROTTLE_POWER].count;
    fill_identity(row, cells);
    cells[POWER_SPAN] = cell_number(row->last_ns - row->first_ns);
    cells[POWER_MEAN] = mean(row, MEAN_POWER);
    cells[POWER_MAX] = highest(row, MEAN_POWER);
    cells[POWER_LIMIT] = known(row->power_limit, row->power_limit);
    cells[ENERGY] = known(has_energy, curve_whole(energy.value));
    cells[ENERGY_ERROR] = known(has_energy, curve_whole(energy.error));
    if (energy.known == CURVE_SHORT && format == FORMAT_TEXT)
        cells[ENERGY] = cell_text("too short");
    cells[ENERGY_SPAN] = known(energy_ns, energy_ns);
    cells[ENERGY_PERIOD] = known(energy_ns, device_curve_period_ns(&row->energy));
    cells[ENERGY_JUMPS] = known(energy_ns, row->energy.jump_count);
    cells[ENERGY].at_least = has_energy && row->energy.jump_count;
    cells[INTEGRAL] =
        known(row->means[MEAN_POWER].area_ns, curve_whole(row->means[MEAN_POWER].area / 1e9));
    cells[CLOCK] = mean(row, MEAN_SM_CLOCK);
    cells[CLOCK_MAX] = known(row->sm_clock_max, row->sm_clock_max);
    cells[MEMORY_CLOCK] = mean(row, MEAN_MEMORY_CLOCK);
    cells[TEMPERATURE] = highest(row, MEAN_TEMPERATURE);
    for (unsigned why = 0; why < THROTTLES; why++) {
        uint64_t ns = device_row_throttled_ns(row, (enum throttle)why);
        if (ns || format != FORMAT_TEXT)
            cells[THROTTLED + why] = known(row->throttled[why].count, ns);
        cells[THROTTLED + why].estimated = row->samples_throttle;
    }
    if (has_throttle)
        cells[THROTTLED_SHARE] =
            cell_share(device_row_throttled_ns(row, THROTTLE_POWER), row->last_ns - row->first_ns);
    cells[IS_SAMPLED] = cell_number(row->samples_throttle);
}

static void power_behind(const struct table *t, FILE *out)
{
    uint64_t longest_ns = device_report_energy_period_ns(t->source);
    char period[UNIT_TEXT_BYTES];
    if (longest_ns)
        fprintf(out,
                "  energy is the device's own counter, read to change every %s; 'of power' is the "
                "power that was read, over the time\n",
                time_text(period, longest_ns));
    for (uint32_t i = 0; i < t->count; i++)
        if (row_at(t, i)->energy.jump_count) {
            fputs(DEVICE_AT_LEAST_LINE, out);
            return;
        }
}

const struct table_info device_tables[DEVICE_TABLES] = {
    {.name = "device_counters",
     .key = "device_counters",
     .title = "what the driver said of the devices",
     .columns = use_columns,
     .column_count = USE_COLUMNS,
     .text = {SPAN, KERNELS_BUSY, BUSY, SM, TENSOR, DRAM, USED, OTHERS, PCIE_SENT, PCIE_RECEIVED,
              NVLINK_SENT, NVLINK_RECEIVED},
     .text_none = ": gpuprof run --device records it, where there is NVML",
     .json_empty = "[]",
     .begin = begin,
     .row = fill_use,
     .text_behind = say_absent,
     .json_behind = put_absent},
    {.name = "device_counters",
     .key = "device_power",
     .title = "power, clocks and what slowed them down",
     .columns = power_columns,
     .column_count = POWER_COLUMNS,
     .text = {POWER_MEAN, POWER_MAX, POWER_LIMIT, ENERGY, ENERGY_ERROR, INTEGRAL, CLOCK,
              TEMPERATURE, THROTTLED + THROTTLE_POWER, THROTTLED + THROTTLE_THERMAL,
              THROTTLED + THROTTLE_BRAKE},
     .is_further = true,
     .json_empty = "[]",
     .begin = begin,
     .has = has_power,
     .row = fill_power,
     .text_behind = power_behind},
};
