/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/checks.h"

#include <stdarg.h>
#include <stdio.h>

bool check_result_set(struct check_result *f, enum check_state state, const char *advice,
                      const char *format, ...)
{
    va_list list;
    f->state = state;
    va_start(list, format);
    vsnprintf(f->text, sizeof f->text, format, list);
    va_end(list);
    snprintf(f->advice, sizeof f->advice, "%s", advice ? advice : "");
    return true;
}
