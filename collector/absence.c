/* SPDX-License-Identifier: Apache-2.0 */
#include "absence.h"

#include <stdio.h>
#include <string.h>

#define MARK "absent: "

unsigned absences_find(const struct recording *rec, const char *key, struct absence *found)
{
    unsigned count = 0, at;
    for (uint32_t i = 0; i < rec->count; i++) {
        const char *text = process_meta(rec->processes[i], key);
        if (!text || strncmp(text, MARK, sizeof MARK - 1) != 0)
            continue;
        text += sizeof MARK - 1;
        for (at = 0; at < count && strcmp(found[at].reason, text) != 0;)
            at++;
        if (at == ABSENCES_MAX)
            continue;
        if (at == count)
            found[count++] = (struct absence){.reason = text};
        found[at].processes++;
    }
    return count;
}

char *absence_text(const struct absence *a, const struct recording *rec, const char *what)
{
    char *text = NULL;
    int length = rec->count > 1 ? asprintf(&text, "%s absent in %u of %u processes: %s", what,
                                           a->processes, rec->count, a->reason)
                                : asprintf(&text, "%s absent: %s", what, a->reason);
    return length < 0 ? NULL : text;
}
