/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command line that was recorded. */
#include <stdio.h>
#include <string.h>

#include "read/recording.h"

static struct key recorded_program_key_of(const struct process *p, uint32_t pid)
{
    struct key key = {pid, p->header.pid_namespace, 0};
    memcpy(&key.c, p->header.boot_id, sizeof key.c);
    return key;
}

/* Returns the only process whose parent is not recorded; NULL: unclear. */
static const struct process *first_of_all(const struct recording *rec)
{
    struct key_map known = {0};
    const struct process *first = NULL;
    bool is_one = rec->count > 0;
    for (uint32_t i = 0; is_one && i < rec->count; i++) {
        struct key key = recorded_program_key_of(rec->processes[i], rec->processes[i]->header.pid);
        is_one = !key_map_get(&known, key) && key_map_set(&known, key, 1) == 0;
    }
    for (uint32_t i = 0; is_one && i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        if (key_map_get(&known, recorded_program_key_of(p, p->header.parent_pid)))
            continue;
        is_one = !first;
        first = p;
    }
    key_map_release(&known);
    return is_one ? first : NULL;
}

/* Takes the settings from one process, since all ranks have the same. */
static void set_options(const struct process *p, struct next_words *w)
{
    for (unsigned i = 0; i < SETTING_COUNT; i++) {
        char key[64];
        snprintf(key, sizeof key, "env.%s", setting_infos[i].variable);
        const char *value = process_meta(p, key);
        next_words_set_option(w, NEXT_SETTINGS + i, value && *value ? value : NULL);
    }
}

void recorded_program(const struct recording *rec, struct next_words *w)
{
    if (rec->count)
        set_options(rec->processes[0], w);
    const struct process *p = first_of_all(rec);
    const char *line = p ? process_meta(p, "cmdline") : NULL,
               *split = p ? process_meta(p, "argv") : NULL;
    if (split)
        next_words_set_program(w, split, ARGUMENT_SEPARATOR);
    else if (line && line[0])
        next_words_set_program(w, line, ' ');
}
