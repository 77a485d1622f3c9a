/* SPDX-License-Identifier: Apache-2.0 */
#include "model/step_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/range_text.h"

void step_names_take(struct step_names *n, const char *text)
{
    char name[STEP_NAME_BYTES] = {0}, pattern[STEP_NAME_BYTES];
    int length = snprintf(name, sizeof name, "%s", text);
    if (length >= (int)sizeof name) {
        length = (int)sizeof name - 1;
        while (length > 1 && (name[length - 1] & 0xC0) == 0x80) /* no letter is cut in two */
            length--;
        strcpy(name + length - 1, "*");
    }
    uint32_t bytes = range_text_pattern(name, (uint32_t)length, NUMBERS_ALL, pattern);
    if (bytes) {
        memcpy(name, pattern, bytes);
        name[bytes] = '\0';
    }
    for (uint32_t i = 0; i < n->count; i++)
        if (strcmp(n->list[i].pattern, name) == 0) {
            n->list[i].count++;
            return;
        }
    if (n->count == STEP_NAMES_MAX)
        return;
    memcpy(n->list[n->count].pattern, name, sizeof name);
    n->list[n->count++].count = 1;
}

static int most_first(const void *left, const void *right)
{
    const struct step_name *a = left, *b = right;
    return a->count != b->count ? (a->count < b->count ? 1 : -1) : strcmp(a->pattern, b->pattern);
}

const char *step_names_text(struct step_names *n, char text[STEP_NAMES_ALL_BYTES])
{
    size_t at = (size_t)sprintf(text, "%s", n->count ? "; there are " : "");
    if (n->count)
        qsort(n->list, n->count, sizeof n->list[0], most_first);
    for (uint32_t i = 0; i < n->count && i < STEP_NAMES_TOLD; i++)
        at += (size_t)sprintf(text + at, "%s'%s'", i ? ", " : "", n->list[i].pattern);
    if (n->count > STEP_NAMES_TOLD)
        strcpy(text + at, " ...");
    return text;
}
