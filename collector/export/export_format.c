/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of `export` by their names, and by those of files. */
#include <stdio.h>
#include <string.h>

#include "export/export_writer.h"
#include "output/verb_output.h"

#define EXPORT_FORMAT(name) &name##_export,
static const struct export_format *const formats[] = {
#include "export/export_formats.def"
};
#undef EXPORT_FORMAT

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

const struct export_format *export_format_at(unsigned index)
{
    return index < FORMAT_COUNT ? formats[index] : NULL;
}

const struct export_format *export_format_named(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

const struct export_format *export_format_of_file(const char *path)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (verb_output_is(path, formats[i]->ending))
            return formats[i];
    return NULL;
}

char *export_format_names(char *text)
{
    size_t length = 0;
    for (size_t i = 0; i < FORMAT_COUNT && length < EXPORT_FORMAT_NAMES_BYTES; i++)
        length += (size_t)snprintf(text + length, EXPORT_FORMAT_NAMES_BYTES - length, "%s%s (.%s)",
                                   i ? ", " : "", formats[i]->name, formats[i]->ending);
    return text;
}
