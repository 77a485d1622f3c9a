/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What findings are made of, in a part: of each device what it is charged with, of the devices that
 * may be told of the names and places of that, and of all what they communicated and nothing hid,
 * since how much of that was a wait for another rank comes out of all parts together. Some 20 bytes
 * each.
 */
#ifndef GPUPROF_COLLECTOR_FINDING_PART_H
#define GPUPROF_COLLECTOR_FINDING_PART_H

#include "find/findings.h"
#include "report/idle_part.h"

/* Of findings of a share, finished; with no idle time there are none. 0, or an error of its spools.
 */
int finding_part_put(struct findings *f, struct part *p);

/* The parts that are added to one. */
struct finding_parts {
    struct finding_part *list; /* owned */
    uint32_t count;
    uint32_t capacity;
};

/* Of part `of`, which must stay, and whose devices are known. 0 or an error; that it is damaged the
 * part says. */
int finding_part_add(struct finding_parts *parts, struct findings *f, struct idle_parts *all,
                     uint32_t of, struct part *p);

/* After the last part, and after idle_part_add_end: what was communicated. 0 or an error. */
int finding_parts_end(struct finding_parts *parts, struct findings *f,
                      const struct idle_parts *all);
void finding_parts_release(struct finding_parts *parts);

#endif
