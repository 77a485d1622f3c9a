/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual.h"

#include <stddef.h>

const char *const manual_part_titles[PART_COUNT] = {"EXAMPLES", "ENVIRONMENT", "FILES",
                                                    "EXIT STATUS"};

const struct manual_rule manual_rules[] = {
    {"symbols",
     {PART_VARIABLE, "DEBUGINFOD_URLS",
      "where debug files of what is not installed are fetched from"}},
    {"color",
     {PART_VARIABLE, "NO_COLOR, TERM", "no colours if NO_COLOR is set, or if TERM is dumb"}},
    {"keep-live", {PART_VARIABLE, "TMPDIR", "a folder for what does not fit into memory"}},
    {NULL, {PART_FILE, "DIR/*.gpuprof", "a recording each, specified in event-stream.md"}},
    {"keep-live",
     {PART_FILE, "DIR/*.live",
      "the last events of a killed process; moved there from /dev/shm, unless --keep-live"}},
    {"dir", {PART_FILE, ".gpuprof/baselines/NAME.json", "a baseline; --dir names another folder"}},
    {NULL, {PART_STATUS, "0", "everything that was recorded was read"}},
    {NULL, {PART_STATUS, "1", "input or output failed"}},
    {NULL, {PART_STATUS, "2", "a wrong option, or nothing to read, or to show"}},
    {NULL, {PART_STATUS, "3", "something is damaged, or, with --strict, anything at all was lost"}},
    {0},
};

const struct manual_function manual_functions[] = {
    {"int gpuprof_range_push(const char *text);",
     "A range begins on the calling thread. Returns its level among the open ones, from 0 on; -2 "
     "without gpuprof."},
    {"int gpuprof_range_pop(void);",
     "The innermost range of the thread ends. Returns its level; -1 if none is open, -2 without "
     "gpuprof."},
    {"void gpuprof_mark(const char *text);", "Marks a moment."},
    {"void gpuprof_step(uint64_t number);",
     "An iteration begins, and lasts until the next one. The number is the program's own, so that "
     "it means the same after a restart and on all ranks."},
    {"void gpuprof_stop(void);",
     "From here on no CUDA call is recorded, in any thread, except allocations and frees, and "
     "what begins and ends stream captures. A call that is open is recorded to its end."},
    {"void gpuprof_start(void);",
     "CUDA calls are recorded again from here on; for the first time in a program that gpuprof run "
     "--start-paused started."},
    {"int gpuprof_dump(const char *why);",
     "What the flight recorder keeps (gpuprof run --flight) is written, soon, by gpuprof's own "
     "thread; the text is shown with it. Returns 0; -1 without a flight recorder, -2 without "
     "gpuprof."},
    {NULL, NULL},
};
