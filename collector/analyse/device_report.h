/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver reported about the devices of each process (run --device): use, power, clocks,
 * throttling, links, memory; and their energy in the run, in steps and in ranges that are long
 * enough.
 *
 * All values are those of the whole device, whoever used it. A device that several processes read
 * has a row for each of them. Memory: 1 KB a source, beside device_sources.h and device_curve.h.
 */
#ifndef GPUPROF_COLLECTOR_DEVICE_REPORT_H
#define GPUPROF_COLLECTOR_DEVICE_REPORT_H

#include "analyse/idle.h"
#include "resolve/device_curve.h"
#include "resolve/device_sources.h"
#include "resolve/event_walk.h"
#include "table/table.h"

#define THROTTLED_SHARE_MIN        0.05 /* of a step or the run; less throttling is not reported */
#define DEVICE_MISSING_REASONS_MAX 256  /* more are not reported */
#define DEVICE_ABSENT_BYTES        160

/* Printed below each table with a ">". */
#define DEVICE_AT_LEAST_LINE                                                                       \
    "  '>': a counter restarted or jumped; energy around that moment is missing\n"

/* Values with a mean and a maximum. */
enum device_mean {
    MEAN_BUSY, /* ppm, like all shares */
    MEAN_MEMORY_BUSY,
    MEAN_GPM_SM,
    MEAN_GPM_OCCUPANCY,
    MEAN_GPM_TENSOR,
    MEAN_GPM_DRAM,
    MEAN_POWER, /* mW */
    MEAN_SM_CLOCK,
    MEAN_MEMORY_CLOCK,
    MEAN_TEMPERATURE,
    MEAN_USED,
    MEAN_OTHERS, /* memory of other processes, if the driver reports memory by process */
    MEANS
};

enum device_link {
    LINK_PCIE_SENT,
    LINK_PCIE_RECEIVED,
    LINK_NVLINK_SENT,
    LINK_NVLINK_RECEIVED,
    LINKS
};

struct device_row {
    const struct process *process;
    uint64_t device; /* UINT64_MAX: not known */
    struct {
        uint64_t high, low;           /* of the whole device; 0, 0: not known */
        char text[DEVICE_UUID_BYTES]; /* of this part of it */
    } uuid;
    bool is_part;     /* part of a device (MIG) */
    bool is_double;   /* after device_report_count_once: another row counts for the device */
    uint64_t samples; /* readings of the group that has most */
    uint64_t group_samples[DEVICE_GROUPS];
    uint64_t first_ns; /* first reading in the selection */
    uint64_t last_ns;
    uint64_t span_ns; /* from the first to the last */
    struct {
        double sum; /* sum of the readings */
        uint64_t count;
        uint64_t max;
        double area; /* integral of the linear interpolation between readings */
        uint64_t area_ns;
    } means[MEANS];
    struct {
        uint64_t bytes;     /* memory; 0: not known */
        uint64_t processes; /* most processes that computed on it; 0: not known */
        uint64_t sm_clock;
        uint64_t power;
    } most; /* maxima of the device */
    struct {
        double bytes;
        bool is_known, is_counted; /* is_counted: from counters, not from rates */
    } links[LINKS];
    uint64_t power_before;      /* mW + 1; 0: not known */
    struct device_curve energy; /* mJ */
    struct {
        struct device_curve curve[THROTTLES]; /* ns */
        uint64_t ns[THROTTLES];
        bool is_sampled; /* its time is estimated from single readings */
    } throttle;
};

/* Counters that were not read, and why. */
struct device_missing {
    const struct process *process;
    uint32_t row;      /* the device's row + 1; 0: the whole process */
    uint64_t group;    /* type of record; 0: all */
    uint64_t counters; /* a bit for each argument of the record; 0: all */
    uint32_t alike;    /* equal entries of all devices, or of all processes; 0: not the first */
    char text[DEVICE_ABSENT_BYTES];
};

struct device_report {
    struct walk *walk;       /* a view */
    const struct idle *idle; /* a view; NULL: nothing is known about work */
    bool is_refused;         /* the first reading ends the walk with an error */
    struct device_row *rows; /* owned; by index of their source */
    uint32_t count;
    struct device_missing missing_reasons[DEVICE_MISSING_REASONS_MAX];
    uint32_t missing_reason_count;
};

void device_report_release(struct device_report *r);

struct consumer device_report_consumer(struct device_report *r);

/* After the walk: makes one row count for a device that several processes read, of a wanted process
 * (by index) if possible. */
void device_report_count_once(struct device_report *r, const bool *is_wanted);

/* How long the device was throttled for this reason between two times. False: not known. */
bool device_throttled_between(const struct device_row *row, enum throttle why, uint64_t begin_ns,
                              uint64_t end_ns, uint64_t *ns);

/* The time during which the energy of all devices of a process was read. False: none. */
bool device_report_read_for(const struct device_report *r, const struct process *p,
                            uint64_t *begin_ns, uint64_t *end_ns);

/* Energy of all devices of a process between two times, in mJ. False: not known; energy->known says
 * why. */
bool device_report_energy(const struct device_report *r, const struct process *p, uint64_t begin_ns,
                          uint64_t end_ns, struct curve_growth *energy);

/* The reason that throttled a device of the process for longest, and how long. False: none did, or
 * it is not known. */
bool device_report_throttle(const struct device_report *r, const struct process *p,
                            uint64_t begin_ns, uint64_t end_ns, enum throttle *why, uint64_t *ns);

/* The row that was throttled for the largest share of its time; NULL: none. */
const struct device_row *device_report_worst(const struct device_report *r, enum throttle *why,
                                             double *share);

/* "rank 3, GPU 0", with "(MIG)" for a part, or with the UUID if CUDA's number is not known: new
 * text. */
char *device_row_title(const struct device_row *row);

/* The mean over the time during which it was read; 0 if it never was. */
double device_row_mean(const struct device_row *row, enum device_mean which);

/* Throttled time and energy of a row in the selection. */
uint64_t device_row_throttled_ns(const struct device_row *row, enum throttle why);
struct curve_growth device_row_energy(const struct device_row *row, uint64_t *ns);

/* "no counters of rank 3, GPU 0: the device is lost", in new memory, for all equal entries. NULL:
 * it is not the first of them. */
char *device_missing_text(const struct device_report *r, const struct device_missing *a);

/* Prints below a table which counters are missing, and why, if `is_of` accepts them. */
void device_report_say_missing(const struct device_report *r,
                               bool (*is_of)(const struct device_missing *a), FILE *out);

/* The tables of use and of power; their source is a struct device_report or NULL.
 * (device_report_print.c) */
#define DEVICE_TABLES 2
extern const struct table_info device_tables[DEVICE_TABLES];

/* ---- energy (energy_report.c) ---------------------------------------------------------------- */

/*
 * Energy of the devices of each process: in the run, in a step, and in long ranges (an epoch, a
 * validation). Long is at least the counter's period. A figure is an estimate with bounds, from the
 * counter's steps (device_curve.h). Shorter steps get a mean over all of them, which shares the
 * bounds. There is no figure if its bounds are wider than itself.
 *
 * Memory: 32 bytes a range, ENERGY_WINDOWS_MAX of them; later ones are only counted.
 */
#define ENERGY_WINDOWS_MAX (1u << 16)
#define ENERGY_WINDOW_NS   20000000u /* no known counter changes more often */

enum energy_kind { ENERGY_OF_RUN, ENERGY_OF_STEPS, ENERGY_OF_RANGE };

struct energy_window {
    uint64_t begin_ns;
    uint64_t end_ns;
    const struct process *process;
    const struct kernel_name *text;
};

struct energy_row {
    enum energy_kind kind;
    const struct process *process; /* NULL: all processes with such a range */
    const struct kernel_name *text;
    struct curve_growth energy; /* mJ, or why there is no figure */
    bool at_least;              /* a counter restarted; earlier energy is lost */
    uint64_t count;             /* steps or ranges in `energy` */
    uint64_t left_out_ns;
    uint64_t left_out; /* without known energy: too short, or not between two readings */
    uint64_t ns;
};

struct energy_report {
    const struct device_report *devices; /* a view */
    struct energy_window *windows;       /* owned */
    uint32_t window_count;
    uint64_t beyond;         /* ranges beyond the limit */
    struct energy_row *rows; /* owned */
    uint32_t count;
};

/* Its source is a struct energy_report or NULL. */
extern const struct table_info energy_table;

#endif
