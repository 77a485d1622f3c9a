/* SPDX-License-Identifier: Apache-2.0 */
#include "model/contents.h"

#include "error.h"
#include "record/gpu_record.h"

void contents_release(struct contents *c)
{
    key_map_release(&c->hashes);
}

int contents_take(struct contents *c, const struct event *e)
{
    const struct record *r = e->record;
    if (!r->correlation || !record_arg(r, CONTENT_HASH))
        return 0;
    return key_map_set_anew(&c->hashes, (struct key){e->process->index, r->correlation, 0},
                            record_arg(r, CONTENT_HASH), CONTENTS_MAX);
}

uint64_t contents_hash(const struct contents *c, uint32_t process, uint32_t correlation)
{
    return c->hashes.count ? key_map_get(&c->hashes, (struct key){process, correlation, 0}) : 0;
}
