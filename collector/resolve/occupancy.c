/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/occupancy.h"

#include "base/array.h"

#define REGISTER_UNIT    256  /* registers of a warp are allocated in multiples of this */
#define WARP_UNIT        4    /* warps limited by registers are allocated in groups of this */
#define SHARED_RESERVED  1024 /* bytes reserved for each block, from compute capability 8 on */
#define SHARED_UNIT      128
#define SHARED_UNIT_OLD  256          /* before compute capability 8 */
#define LIMIT_MAX        (1ull << 28) /* the product of two does not overflow */
#define MILLI_BLOCKS_MAX (1ull << 50)

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Limits a number from a file, so that calculations below cannot overflow. */
static uint64_t sane(uint64_t value)
{
    return min_of(value, LIMIT_MAX);
}

static uint64_t resident_blocks(const struct device_limits *d, const struct launch_shape *shape)
{
    uint64_t warp = sane(d->warp);
    uint64_t warps = round_up(sane(shape->threads), warp) / warp;
    uint64_t blocks = sane(d->threads_max) / warp / warps;
    if (d->blocks_max)
        blocks = min_of(blocks, sane(d->blocks_max));
    if (shape->registers && d->registers_max) {
        uint64_t of_warp = round_up(sane(shape->registers) * warp, REGISTER_UNIT);
        uint64_t fit = sane(d->registers_max) / of_warp / WARP_UNIT * WARP_UNIT;
        blocks = min_of(blocks, fit / warps);
    }
    uint64_t shared = sane(shape->shared) + (d->major >= 8 ? SHARED_RESERVED : 0);
    shared = round_up(shared, d->major >= 8 ? SHARED_UNIT : SHARED_UNIT_OLD);
    if (shared && d->shared_max)
        blocks = min_of(blocks, sane(d->shared_max) / shared);
    return blocks;
}

struct occupancy occupancy_of(const struct device_limits *d, const struct launch_shape *shape)
{
    struct occupancy o = {0};
    if (!d || !d->multiprocessors || !d->warp || !shape->threads)
        return o;
    uint64_t threads = sane(shape->threads);
    uint64_t blocks_milli = shape->blocks < MILLI_BLOCKS_MAX / 1000
                                ? shape->blocks * 1000 / d->multiprocessors
                                : MILLI_BLOCKS_MAX;
    o.blocks_milli = blocks_milli;
    unsigned __int128 warps_milli = (unsigned __int128)blocks_milli * threads / sane(d->warp);
    o.warps_milli = warps_milli < MILLI_BLOCKS_MAX ? (uint64_t)warps_milli : MILLI_BLOCKS_MAX;
    o.spread = true;
    if (!d->threads_max)
        return o;
    o.limited = true;
    o.resident = resident_blocks(d, shape);
    uint64_t limit = sane(d->threads_max);
    /* The limit counts warps, like CUDA; the achieved part counts threads, like Kineto. */
    uint64_t warps = round_up(threads, sane(d->warp)) / sane(d->warp);
    uint64_t warps_max = limit / sane(d->warp);
    if (warps_max)
        o.percent_limited =
            (unsigned)min_of(100, (o.resident * warps * 100 + warps_max / 2) / warps_max);
    uint64_t active_milli = min_of(blocks_milli, o.resident * 1000);
    o.percent = (unsigned)min_of(100, (active_milli * threads / 10 + limit / 2) / limit);
    return o;
}
