/* SPDX-License-Identifier: Apache-2.0 */
#include "find/judged_time.h"

/* Of a piece the whole is all that its process did: it may be looked at without reading that. */
struct judged_time judged_time_of(const struct walk *walk, const struct idle_device *device)
{
    const struct walk_filter *f = walk->filter;
    uint32_t process = device->process->index;
    uint64_t window_ns = device->end_ns - device->begin_ns;
    uint64_t start_up_ns = device->causes[IDLE_START_UP];
    return (struct judged_time){
        .window_ns = window_ns,
        .aside_ns = start_up_ns + device->stopped_ns,
        .whole_ns = f && f->is_of_time ? walk->last_ns[process] - walk->first_ns[process]
                                       : window_ns - start_up_ns,
    };
}

struct judged_time judged_time_mean(struct judged_time all, struct judged_time but, uint32_t count)
{
    return (struct judged_time){(all.window_ns - but.window_ns) / count,
                                (all.aside_ns - but.aside_ns) / count,
                                (all.whole_ns - but.whole_ns) / count};
}

double judged_part(struct judged_time time)
{
    uint64_t looked_ns = time.window_ns - time.aside_ns;
    return looked_ns < time.whole_ns ? (double)looked_ns / (double)time.whole_ns : 1;
}

/* Start-up and hangs are once: where they cost more than that, they do so in a piece. */
bool judged_worth_it(const struct finding_kind *kind, uint64_t ns, uint64_t of_ns, double part)
{
    bool is_once = kind == &finding_kinds[FINDING_START_UP];
    return (double)ns > (double)kind->floor_ns * (is_once ? 1 : part) &&
           (double)ns * 100 > (double)of_ns * kind->share;
}
