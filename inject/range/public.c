/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that gpuprof.h finds when the library is preloaded; also for other languages
 * (ctypes). */
#include "range/user_ranges.h"
#include "record/start.h"
#include "record/state.h"
#include "store/flight_watch.h"

EXPORT int gpuprof_range_push(const char *text);
EXPORT int gpuprof_range_pop(void);
EXPORT void gpuprof_mark(const char *text);
EXPORT void gpuprof_step(uint64_t number);
EXPORT void gpuprof_start(void);
EXPORT void gpuprof_stop(void);
EXPORT int gpuprof_dump(const char *why);

EXPORT int gpuprof_range_push(const char *text)
{
    struct range_event e = {.text = text, .byte_count = range_text_bytes(text)};
    return start_is_possible() ? range_push(&e) : RANGE_NO_LEVEL;
}

EXPORT int gpuprof_range_pop(void)
{
    return start_is_possible() ? range_pop(0) : RANGE_NO_LEVEL;
}

EXPORT void gpuprof_mark(const char *text)
{
    struct range_event e = {.text = text, .byte_count = range_text_bytes(text)};
    if (start_is_possible())
        range_mark(&e);
}

EXPORT void gpuprof_step(uint64_t number)
{
    if (start_is_possible())
        range_step(number);
}

EXPORT void gpuprof_start(void)
{
    if (start_is_possible())
        range_pause(false);
}

EXPORT void gpuprof_stop(void)
{
    if (start_is_possible())
        range_pause(true);
}

EXPORT int gpuprof_dump(const char *why)
{
    return start_is_possible() ? flight_watch_ask(DUMP_ASKED, why) : -1;
}
