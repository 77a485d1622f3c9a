/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/missing_reason.h"

#include <stdio.h>
#include <string.h>

#include "base/json_text.h"
#include "base/text.h"
#include "client_note.h"

#define MARK "absent: "

static unsigned missing_reason_add(struct missing_reason *found, unsigned count, const char *text)
{
    unsigned at = 0;
    while (at < count && strcmp(found[at].reason, text) != 0)
        at++;
    if (at == MISSING_REASONS_MAX)
        return count;
    if (at == count)
        found[count++] = (struct missing_reason){.reason = text};
    found[at].processes++;
    return count;
}

unsigned missing_reasons_find(const struct recording *rec, const char *key,
                              struct missing_reason *found)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        const char *text = process_meta(rec->processes[i], key);
        if (text && strncmp(text, MARK, sizeof MARK - 1) == 0)
            count = missing_reason_add(found, count, text + sizeof MARK - 1);
    }
    return count;
}

unsigned notes_find(const struct recording *rec, struct missing_reason *found)
{
    static const char head[] = META_NOTE "=";
    unsigned count = 0;
    for (uint32_t i = 0; i < rec->count; i++)
        for (uint32_t j = 0; j < rec->processes[i]->meta_count; j++) {
            const char *text = rec->processes[i]->meta[j].text;
            if (strncmp(text, head, sizeof head - 1) == 0 && text[sizeof head - 1])
                count = missing_reason_add(found, count, text + sizeof head - 1);
        }
    return count;
}

unsigned gpu_statuses_find(const struct recording *rec, struct missing_reason *found)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < rec->count; i++)
        count = missing_reason_add(found, count, process_gpu_rows(rec->processes[i]));
    return count;
}

unsigned gpu_lacks_find(const struct recording *rec, struct missing_reason *found)
{
    static const char head[] = ", without ";
    unsigned count = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        const char *lack = NULL, *at = process_gpu_rows(rec->processes[i]);
        while ((at = strstr(at, head))) /* take the last one: a path may contain these words */
            lack = at += sizeof head - 1;
        if (lack)
            count = missing_reason_add(found, count, lack);
    }
    return count;
}

char *missing_reason_text(const struct missing_reason *a, const struct recording *rec,
                          const char *what)
{
    return rec->count > 1 ? text_printf("%s absent in %u of %u processes: %s", what, a->processes,
                                        rec->count, a->reason)
                          : text_printf("%s absent: %s", what, a->reason);
}

void missing_reasons_print_json(const struct missing_reason *found, unsigned count,
                                const char *word, FILE *out)
{
    fprintf(out, "[");
    for (unsigned i = 0; i < count; i++) {
        fprintf(out, "%s{\"%s\"", i ? ", " : "", word);
        json_printf(out, ": %s", found[i].reason);
        fprintf(out, ", \"processes\": %u}", found[i].processes);
    }
    fprintf(out, "]");
}
