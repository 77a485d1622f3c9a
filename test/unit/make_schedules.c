/* SPDX-License-Identifier: Apache-2.0 */
/* make_schedules STEPS < SCHEDULES: what becomes of each step, a line a schedule; a digit a step: 0
 * nothing, 1 warm-up, 2 recorded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

int main(int count, char **arguments)
{
    char line[256];
    uint64_t steps = count > 1 ? strtoull(arguments[1], NULL, 10) : 0, cycle;
    struct schedule s;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (!schedule_parse(line, &s))
            return 1;
        for (uint64_t i = 0; i < steps; i++) {
            enum schedule_action action = schedule_action(&s, i, &cycle);
            putchar(action > SCHEDULE_WARMUP ? '2' : action == SCHEDULE_WARMUP ? '1' : '0');
        }
        putchar('\n');
    }
    return 0;
}
