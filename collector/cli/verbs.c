/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs.h"

#include "diff/diff_verb.h"

const struct verb verbs[] = {
    {"run", NULL, run_verb, OPTION_OUT | OPTION_QUIET | OPTION_EXEC | OPTION_HELP | OPTION_SETTINGS,
     "[--] PROGRAM [ARGUMENTS]", "run a program and record it"},
    {"merge", merge_verb, NULL,
     OPTION_OUTPUT | OPTION_TRACE | OPTION_PER_RANK | OPTION_SYNC_STREAMS | OPTION_NO_COUNTERS |
         OPTION_MEMORY_EVENTS | OPTION_CYCLE | OPTION_JOBS | OPTION_MAX_SIZE | OPTION_PROCESSES |
         OPTION_SELECT | OPTION_STEP_RANGE | OPTION_STEP_BY | OPTION_CLOCK | OPTION_SYMBOLS |
         OPTION_STRICT | OPTION_KEEP_LIVE | OPTION_HELP | OPTION_RECORDINGS,
     "DIR|FILE...", "make one trace of recordings for Perfetto, or one for each rank"},
    {"report", page_verb, NULL,
     OPTION_TABLES | OPTION_FORMAT | OPTION_BY | OPTION_MINE | OPTION_SOURCE | OPTION_NO_GROUP |
         OPTION_GROUP | OPTION_TABLE | OPTION_SORT | OPTION_LIMIT | OPTION_FULL | OPTION_COLOUR |
         OPTION_PROCESSES | OPTION_SELECT | OPTION_WINDOW | OPTION_STEP_RANGE | OPTION_STEP_BY |
         OPTION_SAMPLES | OPTION_PARTIAL | OPTION_SHARE | OPTION_COMBINE | OPTION_CLOCK |
         OPTION_SYMBOLS | OPTION_JOBS | OPTION_STRICT | OPTION_KEEP_LIVE | OPTION_HELP |
         OPTION_RECORDINGS,
     "DIR|FILE...", "say where the time went and what to change first, and print tables"},
    {"stats", stats_verb, NULL,
     OPTION_REPORT | OPTION_TABLES | OPTION_STATS_FORM | OPTION_SORT | OPTION_LIMIT | OPTION_FULL |
         OPTION_COLOUR | OPTION_PROCESSES | OPTION_SELECT | OPTION_WINDOW | OPTION_STEP_RANGE |
         OPTION_STEP_BY | OPTION_CLOCK | OPTION_SYMBOLS | OPTION_JOBS | OPTION_STRICT |
         OPTION_KEEP_LIVE | OPTION_HELP | OPTION_RECORDINGS,
     "REPORT[,REPORT..] DIR|FILE...",
     "print the report's tables, or a row an event, by the names that nsys stats has for them"},
    {"export", export_verb, NULL,
     OPTION_EXPORT_FILE | OPTION_EXPORT | OPTION_WEIGHT | OPTION_CLOCK | OPTION_SYMBOLS |
         OPTION_PROCESSES | OPTION_SELECT | OPTION_WINDOW | OPTION_STEP_RANGE | OPTION_STEP_BY |
         OPTION_JOBS | OPTION_STRICT | OPTION_KEEP_LIVE | OPTION_HELP | OPTION_RECORDINGS,
     "DIR|FILE...",
     "make a file of recordings that other programs read: SQLite, pprof, stacks, csv"},
    {"flame", flame_verb, NULL,
     OPTION_GRAPH | OPTION_FORM | OPTION_WEIGHT | OPTION_OWN_FRAMES | OPTION_FOLD |
         OPTION_MERGE_RANKS | OPTION_THREADS | OPTION_PROCESSES | OPTION_SELECT | OPTION_WINDOW |
         OPTION_STEP_RANGE | OPTION_STEP_BY | OPTION_SYMBOLS | OPTION_JOBS | OPTION_STRICT |
         OPTION_KEEP_LIVE | OPTION_AGAINST | OPTION_SHARES | OPTION_HELP | OPTION_RECORDINGS,
     "DIR|FILE...", "make a flame graph of the stacks that made the calls"},
    {"memory", memory_page_verb, NULL,
     OPTION_MEMORY_FILE | OPTION_TABLE_FORM | OPTION_MEMORY_BY | OPTION_AT | OPTION_MEMORY_TABLE |
         OPTION_SORT | OPTION_LIMIT | OPTION_FULL | OPTION_COLOUR | OPTION_PROCESSES | OPTION_TIME |
         OPTION_STEP_RANGE | OPTION_STEP_BY | OPTION_SYMBOLS | OPTION_JOBS | OPTION_STRICT |
         OPTION_KEEP_LIVE | OPTION_HELP | OPTION_RECORDINGS,
     "DIR|FILE...", "say who held the memory of the devices, and what grows"},
    {"diff", diff_page_verb, NULL,
     OPTION_AGAINST | OPTION_GATE | OPTION_INCONCLUSIVE | OPTION_FORCE | OPTION_DIFF_FILE |
         OPTION_DIFF_FORM | OPTION_FOLDER | OPTION_STEP_RANGE | OPTION_STEP_BY | OPTION_SYMBOLS |
         OPTION_KEEP_LIVE | OPTION_HELP | OPTION_RECORDINGS,
     "NEW... --against OLD...",
     "say whether runs (recordings, or baselines) became worse than others, and how surely"},
    {"baseline", baseline_verb, NULL,
     OPTION_FOLDER | OPTION_STEP_RANGE | OPTION_STEP_BY | OPTION_SYMBOLS | OPTION_KEEP_LIVE |
         OPTION_HELP,
     "save NAME DIR|FILE... | list | remove NAME",
     "keep runs as a small file, for later ones to be compared with; list or remove such"},
    {"view", view_verb, NULL,
     OPTION_PORT | OPTION_OPEN | OPTION_PROCESSES | OPTION_SELECT | OPTION_WINDOW |
         OPTION_STEP_RANGE | OPTION_STEP_BY | OPTION_CLOCK | OPTION_SYMBOLS | OPTION_STRICT |
         OPTION_KEEP_LIVE | OPTION_HELP | OPTION_RECORDINGS,
     "DIR|FILE...", "show the page and the trace of recordings in a browser"},
    {"ctl", ctl_verb, NULL,
     OPTION_WHEN | OPTION_AT_STEP | OPTION_PID | OPTION_RANK | OPTION_TIMEOUT | OPTION_HELP,
     "DIR start|stop|status|dump|schedule STEPS",
     "have running processes start or stop recording, now or with a step, record certain steps, "
     "say whether they record, or write what --flight keeps"},
    {"top", top_verb, NULL,
     OPTION_ONCE | OPTION_TIMEOUT | OPTION_INTERVAL | OPTION_TOP_FORM | OPTION_TOP_FILE |
         OPTION_PID | OPTION_RANK | OPTION_HELP,
     "DIR", "show what running processes do: calls, the GPU, memory, steps, what they wait in"},
    {"dump", dump_verb, NULL,
     OPTION_BLOCKS | OPTION_PROCESSES | OPTION_TIME | OPTION_EVENTS | OPTION_STRICT | OPTION_HELP |
         OPTION_RECORDINGS,
     "DIR|FILE...", "print blocks and events of recordings as text"},
    {"doctor", NULL, doctor_verb, OPTION_OUT | OPTION_JSON | OPTION_HELP | OPTION_SETTINGS,
     "[[--] PROGRAM [ARGUMENTS]]",
     "say what would be recorded here, of a program, and what not, and what to do about it"},
    {"recover", recover_verb, NULL, OPTION_HELP | OPTION_RECORDINGS, "DIR|FILE...",
     "make whole files of what killed processes have left (merge and report need no such thing)"},
    {"manual", manual_verb, NULL, OPTION_HELP, "[VERB|gpuprof.h]",
     "print the manual page, or that of a verb or the header"},
    {"completion", completion_verb, NULL, OPTION_HELP, "bash|zsh|fish",
     "print what a shell needs to complete gpuprof's command lines"},
    {"help", help_verb, NULL, OPTION_HELP, "[VERB]", "print what a verb does and its options"},
};
const size_t verb_count = sizeof verbs / sizeof verbs[0];

const struct verb front_verbs[] = {
    {"demo", NULL, NULL, OPTION_HELP, "[DIR]",
     "record a small program on the simulated CUDA, merge it and report"},
};
const size_t front_verb_count = sizeof front_verbs / sizeof front_verbs[0];
