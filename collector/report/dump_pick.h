/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which records `gpuprof dump` prints with --from, --to, --tid, --kind, --name or --min-duration:
 * those that match every filter. Records are not correlated, so no event walk is needed. GPU work
 * counts for the thread that recorded it. Records that only describe others have no kind.
 */
#ifndef GPUPROF_COLLECTOR_DUMP_PICK_H
#define GPUPROF_COLLECTOR_DUMP_PICK_H

#include <regex.h>

#include "base/select_request.h"
#include "read/process.h"
#include "symbol/kernel_names.h"

struct dump_pick {
    const struct select_request *request; /* NULL: every record is printed */
    uint64_t from_ns;
    uint64_t to_ns;
    regex_t name;
    bool has_name;
};

/* Makes the filter; `origin_ns` is the time of the recording's first event. Returns EXIT_OK, or
 * EXIT_USAGE after one line on stderr. Call dump_pick_release in both cases. */
enum exit_code dump_pick_make(struct dump_pick *p, const struct select_request *request,
                              uint64_t origin_ns);
void dump_pick_release(struct dump_pick *p);

/* Returns whether `r` matches. `f` is its function, or NULL; `kernel` the kernel's name, or
 * NULL. */
bool dump_pick_has(const struct dump_pick *p, struct process *process, const struct thread *thread,
                   const struct record *r, const struct function *f,
                   const struct kernel_name *kernel);

#endif
