/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sim_cupti.h"

/* The environment, read once, when the library is loaded. */

struct cupti_switches cupti_switches;

static int64_t number(const char *name, int64_t fallback)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 0) : fallback;
}

static bool is_set(const char *name)
{
    const char *text = getenv(name);
    return text && *text && strcmp(text, "0") != 0;
}

static bool is_word(const char *name, const char *word)
{
    const char *text = getenv(name);
    return text && strcmp(text, word) == 0;
}

static void kinds(const char *text)
{
    while (text && *text) {
        char *end;
        unsigned long kind = strtoul(text, &end, 10);
        if (end == text)
            break;
        if (kind < SIM_CUPTI_KIND_COUNT)
            cupti_switches.unsupported[kind] = 1;
        text = *end ? end + 1 : end;
    }
}

__attribute__((constructor)) static void switches_read(void)
{
    const char *holder = getenv("SIMCUPTI_HOLDER");
    cupti_switches.holder = holder && *holder ? strdup(holder) : NULL;
    cupti_switches.subscribe_code = (int)number("SIMCUPTI_SUBSCRIBE", 0);
    Dl_info own; /* another driver's: those below that folder */
    const char *refused = getenv("SIMCUPTI_REFUSED_BELOW");
    cupti_switches.is_refused = refused && dladdr(&cupti_switches, &own) &&
                                strncmp(own.dli_fname, refused, strlen(refused)) == 0;
    cupti_switches.flush_hang = (uint64_t)number("SIMCUPTI_FLUSH_HANG", 0);
    cupti_switches.late = (uint64_t)number("SIMCUPTI_LATE", 0);
    cupti_switches.disorder = (uint64_t)number("SIMCUPTI_DISORDER", 4);
    cupti_switches.zero = (uint64_t)number("SIMCUPTI_ZERO", 0);
    cupti_switches.strange = (uint64_t)number("SIMCUPTI_STRANGE", 0);
    cupti_switches.damage = (uint64_t)number("SIMCUPTI_DAMAGE", 0);
    cupti_switches.drop = (uint64_t)number("SIMCUPTI_DROP", 0);
    cupti_switches.buffer_bytes = (uint64_t)number("SIMCUPTI_BUFFER_BYTES", 0);
    cupti_switches.command_buffer = (uint64_t)number("SIMCUPTI_COMMAND_BUFFER", 1024);
    cupti_switches.enable_us = (uint64_t)number("SIMCUPTI_ENABLE_US", 0);
    cupti_switches.lock_ms = (uint64_t)number("SIMCUPTI_LOCK_MS", 10000);
    cupti_switches.drift_ppm = number("SIMCUPTI_DRIFT_PPM", 0);
    cupti_switches.is_realtime = is_word("SIMCUPTI_CLOCK", "realtime");
    cupti_switches.has_early_domain = is_word("SIMCUPTI_CLOCK", "early");
    cupti_switches.is_newer = is_set("SIMCUPTI_NEWER");
    cupti_switches.log = is_set("SIMCUPTI_LOG");
    cupti_switches.has_graph_defect = is_set("SIMCUPTI_GRAPH_DEFECT");
    cupti_switches.is_sole_clock = is_set("SIMCUPTI_SOLE_CLOCK");
    cupti_switches.is_sole = is_set("SIMCUPTI_SOLE");
    cupti_switches.may_finalize = is_word("SIMCUPTI_FINALIZE", "allow");
    kinds(getenv("SIMCUPTI_UNSUPPORTED"));
}
