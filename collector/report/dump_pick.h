/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which records dump prints, where --from, --to, --tid, --kind, --name or --min-duration are given:
 * those of which all of it is true by themselves. Nothing is tied, and so no walk is needed: work
 * is where it ran, on the thread that recorded it, and what only describes others has no kind.
 */
#ifndef GPUPROF_COLLECTOR_DUMP_PICK_H
#define GPUPROF_COLLECTOR_DUMP_PICK_H

#include <regex.h>

#include "base/select_request.h"
#include "read/process.h"
#include "symbol/kernel_names.h"

struct dump_pick {
    const struct select_request *request; /* NULL: all are */
    uint64_t from_ns;
    uint64_t to_ns;
    regex_t name;
    bool has_name;
};

/* `origin_ns`: of the recording's first event. EXIT_OK, or EXIT_USAGE after one line on stderr;
 * dump_pick_release in both cases. */
enum exit_code dump_pick_make(struct dump_pick *p, const struct select_request *request,
                              uint64_t origin_ns);
void dump_pick_release(struct dump_pick *p);

/* `f`: of a call or what else has one; `kernel`: the name of one; NULL: it is not known. */
bool dump_pick_has(const struct dump_pick *p, struct process *process, const struct thread *thread,
                   const struct record *r, const struct function *f,
                   const struct kernel_name *kernel);

#endif
