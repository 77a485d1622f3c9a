/* SPDX-License-Identifier: Apache-2.0 */
#include "base/new_text.h"

#include <stdarg.h>
#include <stdlib.h>

char *text_printf(const char *format, ...)
{
    char *text = NULL;
    va_list list;
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    return length < 0 ? NULL : text;
}

FILE *new_text_begin(struct new_text *t)
{
    *t = (struct new_text){0};
    return open_memstream(&t->text, &t->length);
}

char *new_text_end(struct new_text *t, FILE *out)
{
    if (out && fclose(out) == 0)
        return t->text;
    free(t->text);
    return NULL;
}
