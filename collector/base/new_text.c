/* SPDX-License-Identifier: Apache-2.0 */
#include "base/new_text.h"

#include <stdlib.h>

char *text_vprintf(const char *format, va_list list)
{
    char *text = NULL;
    return vasprintf(&text, format, list) < 0 ? NULL : text;
}

char *text_printf(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = text_vprintf(format, list);
    va_end(list);
    return text;
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
