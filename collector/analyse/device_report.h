/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver said of the devices of each process while it ran (run --device): use, power,
 * clocks, what slowed them down, links, memory; and their energy, of the run, of steps, and of
 * ranges that are long enough for it (energy_report.h).
 *
 * All of it is of the whole device, whoever used it. A device that several processes read has a row
 * for each of them. Memory: device_sources.h and device_curve.h bound it, with 1 KB for each
 * source.
 */
#ifndef GPUPROF_COLLECTOR_DEVICE_REPORT_H
#define GPUPROF_COLLECTOR_DEVICE_REPORT_H

#include "analyse/idle.h"
#include "resolve/device_curve.h"
#include "resolve/device_sources.h"
#include "resolve/event_walk.h"
#include "table/table.h"

#define THROTTLED_SHARE_MIN 0.05 /* of a step, or the run: for less nobody asks why it was slow */
#define DEVICE_ABSENCES_MAX 256  /* further ones are not said */
#define DEVICE_ABSENT_BYTES 160

/* Below each table with a ">". */
#define DEVICE_AT_LEAST_LINE                                                                       \
    "  '>': a counter restarted or jumped; energy around that moment is missing\n"

/* Values of which there is a mean and a highest. */
enum device_mean {
    MEAN_BUSY, /* ppm, and so all shares */
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
    MEAN_OTHERS, /* what other processes use of the memory, where the driver says what is whose */
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
        uint64_t high, low; /* of the device, whatever part of it this is; 0, 0: not known */
        char text[DEVICE_UUID_BYTES]; /* of this part */
    } uuid;
    bool is_part;     /* of a device (MIG) */
    bool is_double;   /* its process reads the same device as another source, too; or any does, once
                         these count once */
    uint32_t next;    /* place of its process's next row + 1; 0: none */
    uint64_t samples; /* readings: of the group that has most */
    uint64_t group_samples[DEVICE_GROUPS];
    uint64_t first_ns; /* of those that are shown */
    uint64_t last_ns;
    struct {
        double sum; /* of the readings */
        uint64_t count;
        uint64_t max;
        double area; /* below straight lines from reading to reading, whose number is not even */
        uint64_t area_ns;
    } means[MEANS];
    struct {
        uint64_t bytes;     /* of memory; 0: not known */
        uint64_t processes; /* most that computed on it; 0: not known */
        uint64_t sm_clock;
        uint64_t power;
    } most; /* that there is */
    struct {
        double bytes;
        bool is_known, is_counted; /* by counters, not by rates */
    } links[LINKS];
    uint64_t power_before;      /* mW, one more; 0: not known */
    struct device_curve energy; /* mJ */
    struct {
        struct device_curve curve[THROTTLES]; /* ns */
        uint64_t ns[THROTTLES];
        bool is_sampled; /* its time is made of what each reading said */
    } throttle;
};

/* Of what nothing was read, and why. */
struct device_absent {
    const struct process *process;
    uint32_t row;      /* place of the device's + 1; 0: all of the process */
    uint64_t group;    /* type of record; 0: all */
    uint64_t counters; /* of its arguments: a bit each; 0: all */
    char text[DEVICE_ABSENT_BYTES];
};

struct device_report {
    struct walk *walk;
    const struct idle *idle;  /* a view; NULL: nothing is known of work */
    bool is_refused;          /* the first reading ends the walk with an error */
    struct device_row **rows; /* owned, and so are they; by the place of their source */
    uint32_t *firsts;         /* owned, by process index: place of its first row + 1; 0: none */
    uint32_t count;
    struct device_absent absences[DEVICE_ABSENCES_MAX];
    uint32_t absence_count;
};

/* `walk` must stay, and `idle`, which may be NULL. 0 or GPUPROF_NO_MEMORY; device_report_release in
 * both cases. */
int device_report_init(struct device_report *r, struct walk *walk, const struct idle *idle);
void device_report_release(struct device_report *r);

struct consumer device_report_consumer(struct device_report *r);

/* After the walk: a device that several processes read is from then on that of one of them: of
 * those that are wanted (by their index), if any is, the one that read its energy for the longest.
 */
void device_report_count_once(struct device_report *r, const bool *is_wanted);

/* After that: the row that counts for the device of `row`, which may be the same. */
const struct device_row *device_report_counted(const struct device_report *r,
                                               const struct device_row *row);

/* Between the two; false: it is not known. */
bool device_throttled_between(const struct device_row *row, enum throttle why, uint64_t begin_ns,
                              uint64_t end_ns, uint64_t *ns);

/* From when to when all devices of a process were read to say what they burnt; false: they were
 * not. */
bool device_report_read_for(const struct device_report *r, const struct process *p,
                            uint64_t *begin_ns, uint64_t *end_ns);

/* What all devices of a process burnt between the two, in mJ. False: energy->known says why not. */
bool device_report_energy(const struct device_report *r, const struct process *p, uint64_t begin_ns,
                          uint64_t end_ns, struct curve_growth *energy);

/* Of the devices of a process the reason that slowed one of them down longest, and for how long;
 * false: none did, or it is not known. */
bool device_report_throttle(const struct device_report *r, const struct process *p,
                            uint64_t begin_ns, uint64_t end_ns, enum throttle *why, uint64_t *ns);

/* Of all rows the one that was slowed down for the largest share of its time; NULL: none was. */
const struct device_row *device_report_worst(const struct device_report *r, enum throttle *why,
                                             double *share);

/* "rank 3, GPU 0", or "... (MIG)" of a part; with its UUID where CUDA's number of it is not known.
 * In new memory; NULL: no memory. */
char *device_row_title(const struct device_row *row);

/* The mean over the time that it was read for; 0 of what never was. */
double device_row_mean(const struct device_row *row, enum device_mean which);

/* Of all shown readings; the throttled time of a row. */
uint64_t device_row_throttled_ns(const struct device_row *row, enum throttle why);
struct curve_growth device_row_energy(const struct device_row *row, uint64_t *ns);

/* The longest period of the counters of energy; 0: not known. */
uint64_t device_report_energy_period_ns(const struct device_report *r);

/* Does nothing come of the device, or of all of a process, from there on? */
static inline bool device_absent_is_whole(const struct device_absent *a)
{
    return !a->group && !a->counters;
}

/* "no more counters of rank 3, GPU 0: the device is lost", one of those that are alike, which are
 * `alike`; in new memory, NULL: no memory. */
char *device_absent_text(const struct device_report *r, const struct device_absent *a,
                         uint32_t alike);

/* How many are like it; 0: it is not the first of them. */
uint32_t device_absent_alike(const struct device_report *r, const struct device_absent *a);

/* What of a table does not come, and why: lines below it, of those counters alone that `is_of` says
 * yes to. */
bool device_report_say_absent(const struct device_report *r,
                              bool (*is_of)(const struct device_absent *a), FILE *out);

/* Use, and power: of a struct device_report, which may be NULL. (device_report_print.c) */
#define DEVICE_TABLES 2
extern const struct table_info device_tables[DEVICE_TABLES];

#endif
