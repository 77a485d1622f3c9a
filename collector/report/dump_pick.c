/* SPDX-License-Identifier: Apache-2.0 */
#include "report/dump_pick.h"

#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "record/gpu_record.h"
#include "resolve/selection.h"

#define PICK_NAME_BYTES 1024 /* the length to which a record's text is matched */

static uint64_t moment_ns(const struct select_moment *m, uint64_t origin_ns, uint64_t otherwise)
{
    if (!m->is_given || m->is_absolute)
        return m->is_given ? m->ns : otherwise;
    return origin_ns < UINT64_MAX - m->ns ? origin_ns + m->ns : UINT64_MAX;
}

enum exit_code dump_pick_make(struct dump_pick *p, const struct select_request *request,
                              uint64_t origin_ns)
{
    *p = (struct dump_pick){.request = request->is_given ? request : NULL};
    p->from_ns = moment_ns(&request->from, origin_ns, 0);
    p->to_ns = moment_ns(&request->to, origin_ns, UINT64_MAX);
    p->has_name = request->name && regcomp(&p->name, request->name, REG_EXTENDED | REG_NOSUB) == 0;
    return p->from_ns < p->to_ns ? EXIT_OK : usage_error("dump: --to must be later than --from");
}

void dump_pick_release(struct dump_pick *p)
{
    if (p->has_name)
        regfree(&p->name);
    *p = (struct dump_pick){0};
}

/* Returns the name as in a trace, or the record's text; NULL: it has no name. */
static const char *dump_pick_name_of(const struct record *r, const struct function *f,
                                     const struct kernel_name *kernel, char text[PICK_NAME_BYTES])
{
    if (f)
        return f->name;
    if (kernel)
        return kernel->shown;
    const char *title = record_title(r, text);
    if (title || !r->bytes)
        return title;
    snprintf(text, PICK_NAME_BYTES, "%.*s",
             r->byte_count < PICK_NAME_BYTES ? (int)r->byte_count : PICK_NAME_BYTES,
             (const char *)r->bytes);
    return text;
}

bool dump_pick_has(const struct dump_pick *p, struct process *process, const struct thread *thread,
                   const struct record *r, const struct function *f,
                   const struct kernel_name *kernel)
{
    const struct select_request *w = p->request;
    char text[PICK_NAME_BYTES];
    if (!w)
        return true;
    uint64_t begin_ns = clock_map_ns(&process->clock, r->begin);
    if (begin_ns < p->from_ns || begin_ns >= p->to_ns || r->duration < w->min_ns ||
        !number_list_has(&w->tids, thread->tid))
        return false;
    enum select_kind kind = selection_kind_of(r, f);
    if (w->kinds && (kind == SELECT_KINDS || !(w->kinds & 1u << kind)))
        return false;
    const char *name = p->has_name ? dump_pick_name_of(r, f, kernel, text) : NULL;
    return !p->has_name || (name && regexec(&p->name, name, 0, NULL, 0) == 0);
}
