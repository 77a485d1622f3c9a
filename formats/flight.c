/* SPDX-License-Identifier: Apache-2.0 */
#include "flight.h"

#include <stddef.h>
#include <string.h>

#include "unit_word.h"

static bool parse_part(const char *text, size_t length, struct flight *f)
{
    struct amount amount;
    const char *end = text + length, *word = amount_read(text, end, &amount);
    uint64_t ns = word ? unit_ns(word, (size_t)(end - word)) : 0;
    uint64_t bytes = word && !ns ? unit_bytes(word, (size_t)(end - word)) : 0;
    uint64_t *value = ns ? &f->ns : &f->bytes, unit = ns ? ns : bytes;
    uint64_t low = ns ? FLIGHT_NS_MIN : FLIGHT_BYTES_MIN;
    uint64_t high = ns ? FLIGHT_NS_MAX : FLIGHT_BYTES_MAX;
    return !*value && unit && amount_times(&amount, unit, value) && *value >= low && *value <= high;
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
