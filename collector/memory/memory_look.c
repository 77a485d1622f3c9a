/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_look.h"

#include <stdlib.h>

#include "base/message.h"
#include "error.h"

struct memory_look *memory_look_create(struct recording *rec, const struct memory_wish *wish,
                                       const char *symbols, int *error)
{
    struct memory_look *look = calloc(1, sizeof *look);
    *error = look ? memory_report_make(&look->report, rec, wish) : GPUPROF_NO_MEMORY;
    if (look && *error >= 0) {
        *error = memory_rows_make(&look->rows, &look->report, MEMORY_AT_PEAK, symbols);
        if (*error < 0)
            message("memory: %s", gpuprof_error_text(*error));
    }
    if (*error >= 0)
        return look;
    memory_look_free(look);
    return NULL;
}

void memory_look_free(struct memory_look *look)
{
    if (!look)
        return;
    memory_rows_release(&look->rows);
    memory_report_release(&look->report);
    free(look);
}
