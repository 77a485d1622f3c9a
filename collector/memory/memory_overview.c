/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/array.h"
#include "base/next_words.h"
#include "base/text.h"
#include "memory/memory_report.h"
#include "read/process.h"
#include "table/screen.h"

#define PLACES_SHOWN  4
#define OWNERS_SHOWN  3
#define HOLDERS_SHOWN 2 /* the largest holders when memory ran out */
#define LOSS_BYTES    1000

/* The owner, with its process if there are several: "rank 3: linear", "2 processes: linear"; new
 * text. */
static char *held_text(const struct memory_report *m, const struct memory_row *row)
{
    char who[RANK_TITLE_BYTES], *owner = memory_owner_text(m, row->origin);
    if (m->rec->count == 1)
        return owner;
    char *text = row->processes == 1 ? text_printf("%s: %s", process_who(row->process, who), owner)
                                     : text_printf("%u processes: %s", row->processes, owner);
    free(owner);
    return text;
}

void memory_print_failure(const struct memory_report *m, const struct next_words *next,
                          struct screen *s)
{
    char wanted[UNIT_TEXT_BYTES], held[UNIT_TEXT_BYTES], of[UNIT_TEXT_BYTES + 8] = "";
    char live[UNIT_TEXT_BYTES];
    const struct memory_oom *oom = &m->ooms.list[m->ooms.count - 1];
    struct memory_advice advice = memory_advise(m, oom);
    bytes_text(wanted, oom->wanted);
    if (oom->total)
        snprintf(of, sizeof of, " of %s", bytes_text(held, oom->total));
    screen_line_freed(s, "no memory", memory_owner_text(m, oom->origin),
                      "%s wanted, %s%s held%s, at ", wanted, bytes_text(live, oom->live), of,
                      oom->where == MEMORY_OF_TENSORS ? " by tensors" : "");
    for (uint32_t i = 0; !s->is_short && i < oom->owner_count && i < HOLDERS_SHOWN; i++)
        screen_line_freed(s, i ? "" : "held by", memory_owner_text(m, oom->owners[i].origin),
                          "%10s  ", bytes_text(held, oom->owners[i].live.bytes));
    char *text = next_line(next, advice.text);
    screen_wrapped(s, "try", text);
    free(text);
    free(advice.text);
}

static bool has_larger_peak(const void *one, const void *other)
{
    const struct memory_place *const *a = one, *const *b = other;
    return (*a)->peak.bytes > (*b)->peak.bytes;
}

static void print_places(struct screen *s, const struct memory_report *m)
{
    char peak[UNIT_TEXT_BYTES], end[UNIT_TEXT_BYTES];
    const struct memory_place *places[PLACES_SHOWN];
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->places.count; i++) {
        const struct memory_place *p = &m->places.list[i];
        ARRAY_KEEP(places, count, PLACES_SHOWN, &p, has_larger_peak);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct memory_place *p = places[i];
        char share[32] = "", who[RANK_TITLE_BYTES], after[RANK_TITLE_BYTES + 4] = "";
        if (p->total)
            snprintf(share, sizeof share, " (%.0f%% of the device)",
                     100.0 * (double)p->peak.bytes / (double)p->total);
        if (m->rec->count > 1)
            snprintf(after, sizeof after, " of %s", process_who(p->process, who));
        char *name = memory_place_text(p->device, p->where, after);
        screen_line(s, i ? "" : "peak", NULL, "%10s: %s%s; %s at the end",
                    bytes_text(peak, p->peak.bytes), name, share,
                    bytes_text(end, p->all.live.bytes));
        free(name);
    }
    if (m->places.count > count)
        screen_line(s, "", NULL, "... and %u more: --table=places", m->places.count - count);
    if (!count)
        screen_line(s, "peak", NULL, "no allocation was read");
}

/* Prints the owners of PyTorch's tensors if any, else of devices, else of the host. */
static void print_owners(struct screen *s, const struct memory_report *m)
{
    static const char *const labels[] = {
        [MEMORY_AT_PEAK] = "held by", [MEMORY_AT_END] = "left by", [MEMORY_AT_TIME] = "held then"};
    char bytes[UNIT_TEXT_BYTES];
    for (uint32_t i = 0; i < m->rows.count && i < OWNERS_SHOWN; i++) {
        const struct memory_row *row = &m->rows.list[i];
        uint64_t held = row->shown.bytes, all = m->rows.shown[row->where];
        if (row->where != m->rows.list[0].where || !held)
            break;
        screen_line_freed(s, i ? "" : labels[m->at], held_text(m, row), "%10s %5.1f%%  ",
                          bytes_text(bytes, held), 100.0 * (double)held / (double)all);
    }
}

static void print_leaks(struct screen *s, const struct memory_report *m)
{
    char grown[UNIT_TEXT_BYTES], step[UNIT_TEXT_BYTES];
    uint32_t leaks = 0;
    for (uint32_t i = 0; i < m->rows.count; i++) {
        const struct memory_row *row = &m->rows.list[i];
        double slope = row->slope > 0 && row->slope < 1e18 ? row->slope : 0;
        if (row->leaks && leaks++ < OWNERS_SHOWN)
            screen_line_freed(s, leaks == 1 ? "grows" : "", held_text(m, row),
                              "%10s, %s a step: ", bytes_text(grown, row->grown),
                              bytes_text(step, (uint64_t)(slope + 0.5)));
    }
    if (leaks > OWNERS_SHOWN)
        screen_line(s, "", NULL, "... and %u more: --table=leaks", leaks - OWNERS_SHOWN);
}

/* Prints the most memory of a device outside the books. */
static void print_hidden(struct screen *s, const struct memory_report *m)
{
    char bytes[UNIT_TEXT_BYTES];
    const struct memory_jump *most = NULL;
    for (uint32_t i = 0; i < m->jumps.count; i++)
        if (!most || m->jumps.list[i].hidden > most->hidden)
            most = &m->jumps.list[i];
    if (most && most->hidden)
        screen_line(s, "hidden", NULL,
                    "%s of device %u used beyond its allocations: --table=hidden",
                    bytes_text(bytes, most->hidden), most->device);
}

void memory_overview_print(const struct memory_report *m, const struct table_view *how, FILE *out)
{
    struct screen s = {.out = out, .width = how->width, .has_colour = how->has_colour};
    char time[UNIT_TEXT_BYTES], host[UNIT_TEXT_BYTES], lost[LOSS_BYTES];
    struct losses losses = {0};
    uint64_t resident = 0;
    for (uint32_t i = 0; i < m->rec->count; i++) {
        resident = max_of(resident, m->processes[i].resident.peak);
        losses_add(&losses, &m->walk.losses[i]);
    }
    screen_line(
        &s, "memory", NULL, "of %u process%s, recorded for %s%s%s%s", m->rec->count,
        m->rec->count == 1 ? "" : "es", time_text(time, m->times.end_ns - m->times.begin_ns),
        resident ? "; resident (RSS) at most " : "", resident ? bytes_text(host, resident) : "",
        resident && m->rec->count > 1 ? " in one process" : "");
    /* Without records of allocations and releases the books are wrong. */
    if (losses_weight(&losses) != LOSS_NONE)
        screen_line(&s, "lost", NULL, "%s", losses_text(&losses, lost, sizeof lost));
    if (m->ooms.count)
        memory_print_failure(m, NULL, &s);
    print_places(&s, m);
    print_owners(&s, m);
    print_leaks(&s, m);
    print_hidden(&s, m);
}
