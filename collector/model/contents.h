/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What copies to a device copied, as CONTENT records tell it: a hash by the correlation id of the
 * call. A record stands where its call begins, so the work of that call comes soon behind it. What
 * is kept is forgotten when there is too much of it. Memory: 2 MiB.
 */
#ifndef GPUPROF_COLLECTOR_CONTENTS_H
#define GPUPROF_COLLECTOR_CONTENTS_H

#include "base/key_map.h"
#include "model/timeline.h"

#define CONTENTS_MAX (1u << 15)

struct contents {
    struct key_map hashes; /* (process, correlation id) -> hash */
};

void contents_release(struct contents *c);

/* A CONTENT record. 0 or GPUPROF_NO_MEMORY. */
int contents_take(struct contents *c, const struct event *e);

/* What the call with that id copied; 0: not known. */
uint64_t contents_hash(const struct contents *c, uint32_t process, uint32_t correlation);

#endif
