/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread has told NCCL and NCCL does next: from the calls of NCCL that are recorded it is
 * known of which communicator a kernel is that is launched in them, or at the end of their group,
 * and which number the collective has that it is the kernel of: each rank counts its calls on a
 * communicator from its creation on.
 */
#ifndef GPUPROF_COLLECTOR_NCCL_TALK_H
#define GPUPROF_COLLECTOR_NCCL_TALK_H

#include "base/key_map.h"
#include "model/timeline.h"

struct nccl_talk {
    uint64_t communicator; /* of all calls so far; 0: none, or several */
    uint64_t number;       /* of the first collective; 0: none whose kernel would be known */
    uint64_t stream;       /* of that one */
    uint32_t depth;        /* of groups */
    bool is_mixed;         /* several communicators */
    bool is_other;         /* not only collectives of one communicator on one stream */
    bool is_rooted;        /* there is one that has a root */
    bool is_open;          /* a call of NCCL's has not returned */
};

/* The begin or the end of a library's call; `handles`: (process, handle) -> communicator. */
void nccl_talk_call(struct nccl_talk *t, const struct key_map *handles, const struct event *e);

/* The number of the collective whose kernel that call launches; 0: not known, or of none. */
uint64_t nccl_talk_launch(struct nccl_talk *t, const struct event *e);

#endif
