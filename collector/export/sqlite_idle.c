/* SPDX-License-Identifier: Apache-2.0 */
/* What an SQLite export has of the devices' time: the report's gpu_time, idle and arrivals, and
 * each wait for another rank. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "export/sqlite_writer.h"
#include "find/idle.h"

/* Negative for what begins with the process, before the session's start. */
static struct sql_value since(const struct export_writer *w, uint64_t ns)
{
    return sql_integer(ns - w->walk->survey.origin_ns);
}

static int put_time(struct export_writer *w, const struct idle_device *d)
{
    struct sql_value row[GPU_TIME_COLUMNS] = {
        [SQL_GPU_TIME_PID] = sql_integer(sqlite_pid(w, d->process)),
        [SQL_GPU_TIME_DEVICE_ID] = sql_integer(d->device),
        [SQL_GPU_TIME_TIME] = sql_integer(d->end_ns - d->begin_ns),
        [SQL_GPU_TIME_COMPUTE] = sql_integer(d->parts[IDLE_COMPUTE]),
        [SQL_GPU_TIME_COMMUNICATION] = sql_integer(d->parts[IDLE_COMMUNICATING]),
        [SQL_GPU_TIME_COPIES] = sql_integer(d->parts[IDLE_COPYING]),
        [SQL_GPU_TIME_IDLE] = sql_integer(d->idle_ns),
        [SQL_GPU_TIME_STOPPED] = sql_integer(d->stopped_ns),
        [SQL_GPU_TIME_OTHER] = sql_integer(d->parts[IDLE_OTHER]),
    };
    return sql_base_insert(w->base, SQL_GPU_TIME, row);
}

static int put_idle(struct export_writer *w, const struct idle_row *idle)
{
    struct idle *d = w->scope.report->idle;
    const struct idle_device *device = &d->devices[idle->device];
    char *place = idle_place_text(w->walk, &d->lines, idle);
    struct sql_value row[IDLE_COLUMNS] = {
        [SQL_IDLE_PID] = sql_integer(sqlite_pid(w, device->process)),
        [SQL_IDLE_DEVICE_ID] = sql_integer(device->device),
        [SQL_IDLE_CAUSE] = sql_text(idle_cause_words[idle->cause]),
        [SQL_IDLE_PLACE] = sql_recorded(place),
        [SQL_IDLE_COUNT] = sql_integer(idle->count),
        [SQL_IDLE_TOTAL] = sql_integer(idle->ns),
        [SQL_IDLE_LONGEST] = sql_integer(idle->longest_ns),
        [SQL_IDLE_AT] = since(w, idle->longest_at_ns),
    };
    if (idle->place.kind == IDLE_WORD_DEVICE)
        row[SQL_IDLE_WAITED_FOR] =
            sql_integer(sqlite_pid(w, w->walk->rec->processes[(uint32_t)idle->place.word]));
    int error = place ? sql_base_insert(w->base, SQL_IDLE, row) : GPUPROF_NO_MEMORY;
    free(place);
    return error;
}

static int put_waits(struct export_writer *w, uint32_t number)
{
    const struct idle_device *device = &w->scope.report->idle->devices[number];
    struct idle_wait wait;
    int more = 1, error = 0;
    for (uint64_t i = 0; error == 0 && more == 1; i++) {
        if ((more = idle_wait_at(w->scope.report->idle, number, i, &wait)) != 1)
            break;
        struct sql_value row[RANK_WAITS_COLUMNS] = {
            [SQL_RANK_WAITS_START] = since(w, wait.begin_ns),
            [SQL_RANK_WAITS_END] = since(w, wait.end_ns),
            [SQL_RANK_WAITS_PID] = sql_integer(sqlite_pid(w, device->process)),
            [SQL_RANK_WAITS_DEVICE_ID] = sql_integer(device->device),
        };
        if (wait.process != IDLE_NONE)
            row[SQL_RANK_WAITS_FOR] =
                sql_integer(sqlite_pid(w, w->walk->rec->processes[wait.process]));
        error = sql_base_insert(w->base, SQL_RANK_WAITS, row);
    }
    return more < 0 ? more : error;
}

/* Who came last most often, if anybody did, and where from. */
static int put_arrival(struct export_writer *w, const struct arrival_row *arrival)
{
    const struct idle *d = w->scope.report->idle;
    const struct arrivals *a = &d->arrivals;
    const struct arrival_place *place = arrival->place ? &a->places[arrival->place - 1] : NULL;
    char communicator[sizeof "0x0123456789abcdef"];
    snprintf(communicator, sizeof communicator, "0x%016" PRIx64, arrival->communicator);
    struct sql_value row[ARRIVALS_COLUMNS] = {
        [SQL_ARRIVALS_KIND] = sql_recorded(a->kinds[arrival->kind]),
        [SQL_ARRIVALS_RANKS] = sql_integer(arrival->ranks),
        [SQL_ARRIVALS_COUNT] = sql_integer(arrival->count),
        [SQL_ARRIVALS_APART] = sql_integer(arrival->skew_ns),
        [SQL_ARRIVALS_MAX] = sql_integer(arrival->max_ns),
    };
    if (arrival->communicator)
        row[SQL_ARRIVALS_COMMUNICATOR] = sql_text(communicator);
    if (arrival->late_count) {
        row[SQL_ARRIVALS_LAST] = sql_integer(sqlite_pid(w, d->ranked[arrival->late].process));
        row[SQL_ARRIVALS_DEVICE_ID] = sql_integer(d->ranked[arrival->late].device);
        row[SQL_ARRIVALS_TIMES] = sql_integer(arrival->late_count);
        row[SQL_ARRIVALS_BEHIND] = sql_integer(arrival->late_ns);
        row[SQL_ARRIVALS_CAUSE] = place ? sql_text(arrivals_cause(place)) : (struct sql_value){0};
        row[SQL_ARRIVALS_PLACE] = sql_recorded(place ? place->text : NULL);
    }
    return sql_base_insert(w->base, SQL_ARRIVALS, row);
}

int sqlite_idle(struct export_writer *w)
{
    struct idle *d = w->scope.report->idle;
    int error = 0;
    for (uint32_t i = 0; d && error == 0 && i < d->device_count; i++) {
        error = put_time(w, &d->devices[i]);
        if (error == 0)
            error = put_waits(w, i);
    }
    for (uint32_t i = 0; d && error == 0 && i < d->rows.count; i++)
        if (!d->rows.list[i].did)
            error = put_idle(w, &d->rows.list[i]);
    for (uint32_t i = 0; d && error == 0 && i < d->arrivals.row_count; i++)
        error = put_arrival(w, &d->arrivals.rows[i]);
    return error;
}
