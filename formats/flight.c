/* SPDX-License-Identifier: Apache-2.0 */
#include "flight.h"

#include <stddef.h>
#include <string.h>

#include "unit_word.h"

static bool parse_part(const char *text, size_t length, struct flight *f)
{
    uint64_t number = 0;
    size_t at = 0;
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
        if (number > FLIGHT_NS_MAX)
            return false;
        number = 10 * number + (uint64_t)(text[at] - '0');
    }
    uint64_t ns = at ? unit_ns(text + at, length - at) : 0;
    uint64_t bytes = at && !ns ? unit_bytes(text + at, length - at) : 0;
    uint64_t *value = ns ? &f->ns : &f->bytes, unit = ns ? ns : bytes;
    uint64_t low = ns ? FLIGHT_NS_MIN : FLIGHT_BYTES_MIN;
    uint64_t high = ns ? FLIGHT_NS_MAX : FLIGHT_BYTES_MAX;
    if (!unit || *value || number > high / unit)
        return false;
    *value = number * unit;
    return *value >= low;
}

bool flight_parse(const char *text, struct flight *f)
{
    *f = (struct flight){0};
    const char *comma = strchr(text, ',');
    size_t first = comma ? (size_t)(comma - text) : strlen(text);
    if (!parse_part(text, first, f) || (comma && !parse_part(comma + 1, strlen(comma + 1), f)))
        return false;
    if (!f->bytes)
        f->bytes = FLIGHT_BYTES_DEFAULT;
    return true;
}

const char *dump_reason_text(uint64_t reason)
{
    static const char *const texts[DUMP_REASON_COUNT] = {
        [DUMP_END] = "the process ended",          [DUMP_KILL] = "the process was killed",
        [DUMP_ASKED] = "the program asked for it", [DUMP_CONTROL] = "gpuprof ctl asked for it",
        [DUMP_SIGNAL] = "a signal asked for it",   [DUMP_ERROR] = "a CUDA call failed",
        [DUMP_MEMORY] = "out of memory",           [DUMP_STEP] = "a step was slow",
        [DUMP_IDLE] = "nothing was launched",      [DUMP_COLLECTIVE] = "a collective did not end",
    };
    return reason < DUMP_REASON_COUNT ? texts[reason] : NULL;
}
