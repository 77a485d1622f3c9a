/* SPDX-License-Identifier: Apache-2.0 */
/* Trace formats by their names, and by those of files. */
#include <stdio.h>
#include <string.h>

#include "output/verb_output.h"
#include "trace/trace_writer.h"

#define TRACE_FORMAT(name) &name##_format,
static const struct trace_format *const formats[] = {
#include "trace/trace_formats.def"
};
#undef TRACE_FORMAT

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

const struct trace_format *trace_format_named(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

const char *trace_format_name(unsigned index)
{
    return index < FORMAT_COUNT ? formats[index]->name : NULL;
}

const struct trace_format *trace_format_of_file(const char *path)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (verb_output_is(path, formats[i]->ending))
            return formats[i];
    return verb_output_is(path, "") ? formats[0] : NULL;
}

char *trace_format_names(char *text)
{
    size_t length = 0;
    for (size_t i = 0; i < FORMAT_COUNT && length < TRACE_FORMAT_NAMES_BYTES; i++)
        length += (size_t)snprintf(text + length, TRACE_FORMAT_NAMES_BYTES - length, "%s%s (.%s)",
                                   i ? ", " : "", formats[i]->name, formats[i]->ending);
    return text;
}
