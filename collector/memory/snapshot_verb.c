/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuprof memory -o x.pickle`. */
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "error.h"
#include "memory/snapshot.h"
#include "output/verb_output.h"
#include "rank.h"

static bool shares_rank(const struct memory_report *m, const struct process *p)
{
    for (uint32_t i = 0; i < m->rec->count; i++)
        if (m->rec->processes[i] != p && m->rec->processes[i]->rank == p->rank && m->gets_memory[i])
            return true;
    return false;
}

/* "x.pickle" becomes "x_rank3.pickle". In new memory; NULL: no memory. */
static char *file_of(const struct memory_report *m, const struct process *p, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *ending = strchr(name + 1, '.');
    char *text = NULL;
    int stem = (int)(ending ? ending - path : (long)strlen(path));
    bool has_rank = p->rank != RANK_NONE && !shares_rank(m, p);
    int length = asprintf(&text, "%.*s_%s%llu%s", stem, path, has_rank ? "rank" : "pid",
                          has_rank ? (unsigned long long)p->rank : p->shown_pid, path + stem);
    return length < 0 ? NULL : text;
}

static enum exit_code write_one(struct memory_report *m, struct call_tree *tree,
                                const struct process *p, const char *path)
{
    struct snapshot s;
    struct output out;
    uint64_t room = verb_output_room(recording_bytes(m->rec));
    enum exit_code code = EXIT_ENVIRONMENT;
    if (snapshot_make(&s, m, p) == 0)
        code = verb_output_open(&out, path, &room);
    if (code == EXIT_OK) {
        int error = snapshot_write(&s, tree, &out);
        say_error("memory", error);
        code = verb_output_close(&out, path, error);
    }
    if (s.left_out)
        message("memory: %s: %llu events are left out: devices beyond %u", path,
                (unsigned long long)s.left_out, SNAPSHOT_DEVICES_MAX);
    snapshot_release(&s);
    return code;
}

static enum exit_code write_all(struct memory_report *m, struct call_tree *tree, const char *output)
{
    uint32_t count = 0;
    enum exit_code code = EXIT_OK;
    for (uint32_t i = 0; i < m->rec->count; i++)
        count += m->gets_memory[i];
    if (!count)
        message("memory: no call that gets memory was recorded: %s is not written", output);
    for (uint32_t i = 0; code == EXIT_OK && i < m->rec->count; i++) {
        const struct process *p = m->rec->processes[i];
        char *path = count == 1 ? strdup(output) : file_of(m, p, output);
        if (!path)
            code = verb_output_failed(output, GPUPROF_NO_MEMORY);
        else if (m->gets_memory[i])
            code = write_one(m, tree, p, path);
        free(path);
    }
    return count ? code : EXIT_ENVIRONMENT;
}

enum exit_code snapshot_files(struct recording *rec, const struct options *options,
                              double at_seconds)
{
    struct memory_report m;
    struct call_tree tree;
    struct memory_wish wish = {.by = MEMORY_BY_STACK, .at_seconds = at_seconds};
    enum exit_code code = EXIT_ENVIRONMENT;
    if (memory_report_learn(&m, rec, &wish) == 0) {
        for (uint32_t i = 0; i < rec->count; i++)
            m.end_ns = m.walk.last_ns[i] > m.end_ns ? m.walk.last_ns[i] : m.end_ns;
        enum exit_code late = memory_check_moment(&m);
        if (call_tree_init(&tree, &m.walk.survey, options->symbols) == 0)
            code = late != EXIT_OK ? late : write_all(&m, &tree, options->output);
        else
            verb_output_failed(options->output, GPUPROF_NO_MEMORY);
        call_tree_release(&tree);
    }
    if (code == EXIT_OK)
        code = walk_verdict(&m.walk, options->strict);
    memory_report_release(&m);
    return code;
}
