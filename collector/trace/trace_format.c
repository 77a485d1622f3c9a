/* SPDX-License-Identifier: Apache-2.0 */
/* The trace formats that there are, the usual one first. */
#include <string.h>
#include <strings.h>

#include "trace/trace_writer.h"

static const struct trace_format *const formats[] = {&chrome_format};

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

const struct trace_format *trace_format_named(const char *name, size_t length)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (strlen(formats[i]->name) == length && memcmp(formats[i]->name, name, length) == 0)
            return formats[i];
    return NULL;
}

const struct trace_format *trace_format_of_file(const char *path)
{
    size_t length = path ? strlen(path) : 0;
    if (length > 3 && strcasecmp(path + length - 3, ".gz") == 0)
        length -= 3;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        size_t end = strlen(formats[i]->ending);
        if (length > end && strncasecmp(path + length - end, formats[i]->ending, end) == 0)
            return formats[i];
    }
    return NULL;
}
