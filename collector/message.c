/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <stdarg.h>
#include <stdio.h>

#include "verbs.h"

#define MESSAGE_BYTES_MAX 4096

static void print_line(const char *format, va_list list)
{
    char text[MESSAGE_BYTES_MAX];
    vsnprintf(text, sizeof text, format, list);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    fprintf(stderr, "gpuprof: %s\n", text);
}

void message(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_line(format, list);
    va_end(list);
}

int usage_error(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_line(format, list);
    va_end(list);
    return EXIT_USAGE;
}
