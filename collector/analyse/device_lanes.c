/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/device_lanes.h"

int device_lanes_use_up(struct device_lanes *d, enum lane lane, uint64_t alone_from, uint64_t ns,
                        lane_part_fn *over, void *context)
{
    struct lane_parts *parts = &d->parts[lane];
    int error = 0;
    while (error == 0 && parts->count) {
        struct lane_part *part = &parts->list[parts->first];
        if (part->known_ns >= ns)
            break;
        uint64_t end_ns = min_of(part->end_ns, ns);
        part->alone_ns += overlap_ns(alone_from, end_ns, part->known_ns, end_ns);
        part->known_ns = end_ns;
        if (part->end_ns > ns)
            break;
        parts->first = (parts->first + 1) % LANE_PARTS_MAX;
        parts->count--;
        error = over(context, lane, part);
    }
    return error;
}

uint64_t device_lanes_end(const struct device_lanes *d)
{
    uint64_t end_ns = d->at_ns;
    for (unsigned lane = 0; lane < LANES; lane++)
        end_ns = max_of(d->end_ns[lane], end_ns);
    return end_ns;
}
