/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/message.h"
#include "base/moment.h"
#include "base/nearest.h"
#include "base/workers.h"
#include "settings.h"
#include "stream.h"
#include "unit_word.h"

#define SAMPLES_MAX 1e15
#define SECONDS_MAX 1e9
#define PORT_MAX    65535
#define JOBS_MAX    65536

#define GATE_DEFAULT 0.05 /* as its help says */
#define GATE_MIN     0.001
#define GATE_MAX     10.0

/* Of a row: what it does to which member, of a type that is checked. */
#define AT(member, type)                                                                           \
    offsetof(struct options, member) + 0 * sizeof(&((struct options *)0)->member == (type *)0)
#define FLAG(member)   OPTION_SETS, AT(member, bool)
#define TEXT(member)   OPTION_KEEPS, AT(member, const char *)
#define CHOICE(member) OPTION_CHOOSES, offsetof(struct options, member)
#define OTHER          OPTION_LOOKS, 0

const struct option_info option_infos[] = {
    {OPTION_OUT, 'o', NULL, "DIR", OTHER, "the same as --out DIR"},
    {OPTION_QUIET, 0, "quiet", NULL, OTHER,
     "print no summary and no name of the data folder at the end"},
    {OPTION_EXEC, 0, "exec", NULL, OTHER,
     "replace the launcher by the program; no summary, nothing waits for the program"},
    {OPTION_ON_CYCLE, 0, "on-cycle", "COMMAND", OTHER,
     "start this command, by sh, for each window of --schedule and the like, once its data is "
     "whole: GPUPROF_CYCLE is its number, GPUPROF_OUT the data folder"},
    {OPTION_OUTPUT, 'o', "output", "FILE", TEXT(output),
     "write the trace there (compressed if the name ends in .gz or .zst; one file per rank in an "
     "archive if it ends in .zip); default: standard output"},
    {OPTION_TRACE, 0, "format", "FORMAT", TEXT(trace_format),
     "the format of the trace, such as chrome or perfetto (a wrong name gets a list of all "
     "formats); default: as the name of the file ends"},
    {OPTION_EXPORT_FILE, 'o', "output", "FILE", TEXT(output), "write the export there"},
    {OPTION_EXPORT, 0, "format", "FORMAT", TEXT(trace_format),
     "the format of the export, such as sqlite, pprof or csv (a wrong name gets a list of all "
     "formats); default: as the name of the file ends"},
    {OPTION_PER_RANK, 0, "per-rank", NULL, FLAG(per_rank),
     "write a file for each rank, rank_N.pt.trace.json.gz, into the folder that -o names"},
    {OPTION_SYNC_STREAMS, 0, "sync-streams", NULL, FLAG(sync_streams),
     "synchronisations have the stream that they waited for, as HTA's critical path analysis needs "
     "it; its other analyses then take waits for work"},
    {OPTION_NO_COUNTERS, 0, "no-counters", NULL, FLAG(no_counters),
     "leave out the counter tracks: how busy a GPU was, kernels launched and not finished, the "
     "speed of copies, memory, launches"},
    {OPTION_MEMORY_EVENTS, 0, "memory-events", NULL, FLAG(memory_events),
     "with each block of PyTorch's allocator as it comes and goes, as torch.profiler has them: "
     "TensorBoard's memory view is made of these"},
    {OPTION_TOP_FILE, 'o', "output", "FILE", TEXT(output),
     "write it anew each time, whole; default: standard output"},
    {OPTION_TABLES, 'o', "output", "FILE", TEXT(output),
     "write the tables there (compressed if the name ends in .gz; csv into a folder, DIR/, a file "
     "for each); default: standard output"},
    {OPTION_MEMORY_FILE, 'o', "output", "FILE", TEXT(output),
     "write the tables there (compressed if the name ends in .gz; csv into a folder, DIR/, a file "
     "for each); .html: the page of 'gpuprof report', which has a section of the memory, with "
     "pictures; .pickle: a snapshot as PyTorch makes them, a file for each process; default: "
     "standard output"},
    {OPTION_FORMAT, 0, "format", "text|json|csv|html", CHOICE(format),
     "how the tables are written; default: as the name of the file ends: .json, .csv (DIR/: csv, "
     "too) or .html (a page for a browser), or else text"},
    {OPTION_BY, 0, "by", "name|grid|shape|range|stack|python-line|thread", CHOICE(by),
     "a row of kernels is a name, or a name with its grid and block; a row of operators a name, "
     "or a name with the sizes of its inputs (shape), the label or range around it (range), or the "
     "operators around it (stack). stack, python-line and thread: a table of the calls' stacks, "
     "of the lines of Python, or of the threads that made them, in place of the others (json, csv: "
     "beside them)"},
    {OPTION_TABLE_FORM, 0, "format", "text|json|csv", CHOICE(format),
     "how the tables are written; default: as the name of the file ends: .json or .csv (DIR/: csv, "
     "too), or else text"},
    {OPTION_STATS_FORM, 'f', "format", "text|json|csv", CHOICE(format),
     "how the tables are written (nsys' column and table are text); default: as the name of the "
     "file ends: .json or .csv (DIR/: csv, too), or else text"},
    {OPTION_MEMORY_BY, 0, "by", "python-line|stack|operator|function|kind|library",
     CHOICE(memory_by),
     "who an owner is: the innermost line of Python, the stack, or the operator around the call "
     "that got the memory; the function called; the kind of memory; the call of a library (cuBLAS, "
     "NCCL ...) around it; default: the first of the first four that is recorded"},
    {OPTION_AT, 0, "at", "peak|end|SECONDS", OTHER,
     "show who held how much at that moment: each device's own peak, the end, or so many seconds "
     "after the first event; with -o x.pickle, the snapshot of that moment; default: peak"},
    {OPTION_MEMORY_TABLE, 0, "table", "NAME[,NAME..]", TEXT(tables),
     "show these tables only, by their names in the JSON, such as leaks, kinds, steps or curve"},
    {OPTION_MINE, 0, "mine", NULL, FLAG(is_mine),
     "the same as --by=python-line, but a call counts for its innermost line outside of installed "
     "packages and Python's own library, and lines borrowed from a thread that waits are one row"},
    {OPTION_SOURCE, 0, "source", "DIR", TEXT(source),
     "in place of the tables (in json and csv: beside them) the lines of the files below this "
     "folder that made the calls, within their functions and beside what they cost"},
    {OPTION_NO_GROUP, 0, "no-group", NULL, OTHER,
     "each text of a range or label has a row of its own, also of those that differ in their "
     "numbers alone (\"iteration 17\"); the default in json and csv"},
    {OPTION_GROUP, 0, "group", NULL, OTHER,
     "more than 8 such texts have one row (\"iteration *\"), as in the text, in json and csv, too"},
    {OPTION_REPORT, 'r', "report", "NAME[,NAME..]", TEXT(reports),
     "the reports, as nsys stats has this option; then all words are recordings"},
    {OPTION_TABLE, 0, "table", "NAME[,NAME..]", TEXT(tables),
     "show these tables only, by their names below, which the JSON has, too (steps and phases are "
     "made only if they are named or an option says what a step is, since they take more time)"},
    {OPTION_SORT, 0, "sort", "COLUMN", TEXT(sort),
     "sort the tables that have this column by it, as the text or the JSON names it: numbers from "
     "the largest on; names, processes and moments from the first on"},
    {OPTION_LIMIT, 0, "limit", "N", OTHER,
     "show at most so many rows of each table, and how many more there are"},
    {OPTION_FULL, 0, "full", NULL, FLAG(is_full),
     "show all tables and all their rows, and do not fit them to the terminal's width: leave no "
     "column out, cut no name"},
    {OPTION_PARTIAL, 0, "partial", NULL, FLAG(is_partial),
     "one of several processes that make a report together: read a share of the files and write "
     "what was found into the file that -o names, for --combine"},
    {OPTION_SHARE, 0, "share", "I/N", TEXT(share),
     "of --partial: which share, from 0 on, of how many; default: as torchrun, MPI or Slurm have "
     "numbered this process (RANK, OMPI_COMM_WORLD_RANK, MV2_COMM_WORLD_RANK, PMI_RANK, "
     "HOROVOD_RANK or SLURM_PROCID, and how many there are); then .I is added to the file's name"},
    {OPTION_COMBINE, 0, "combine", NULL, FLAG(is_combined),
     "the files named are all parts of one report: print their tables, which are those that one "
     "report of all recordings has"},
    {OPTION_COLOUR, 0, "color", "auto|always|never", CHOICE(colour),
     "print headings in bold and what went wrong in red; auto: on a terminal, unless NO_COLOR is "
     "set"},
    {OPTION_MAX_SIZE, 0, "max-size", "SIZE", OTHER,
     "leave out the shortest calls, work and ranges, so that each trace has at most so many bytes "
     "before it is compressed, such as 400M (K, M, G, T; KB and KiB mean the same as K, 1024 "
     "bytes); how many of them there were, and when, is in it"},
    {OPTION_JOBS, 'j', "jobs", "N", OTHER,
     "use N processors: N processes share the recordings of an export of csv or jsonl, of merge "
     "--per-rank and of reports of tables that go in parts; what is one trace or one recording a "
     "second processor compresses and writes; what comes out is the same"},
    {OPTION_CYCLE, 0, "cycle", "N|all", OTHER,
     "only what was recorded in this window of run --schedule or --capture-range, by its number "
     "from 1 on; all, with --per-rank: a file for each"},
    {OPTION_WINDOW, 0, "cycle", "N", OTHER,
     "only what was recorded in this window of run --schedule or --capture-range, by its number "
     "from 1 on"},
    {OPTION_TIME, 0, "from", "TIME", OTHER,
     "only events from then on: seconds since the first event of the processes that are read (with "
     "--rank another one than without), which may be long after the program's start (12.5, 800ms, "
     "2m), 2026-11-23T18:00:00 (local, or with Z or +01:00), 2026-11-23 (0:00), 18:00, or @SECONDS "
     "since 1970"},
    {OPTION_TIME, 0, "to", "TIME", OTHER, "only events before that"},
    {OPTION_PLACE, 0, "step", "A:B", OTHER,
     "only steps A to B - 1, A alone, from A on (A:), or those before B (:B): the calls in them, "
     "the work that these made, and what reaches into them; --step-by says what a step is"},
    {OPTION_PLACE, 0, "range", "NAME", OTHER,
     "likewise, only what happened while a range or label of this name was open in the process; "
     "'*' stands for any text, '?' for one byte. Idle time and wall time go from the first one's "
     "begin to the last one's end"},
    {OPTION_PROCESSES, 0, "job", "N[,M-K]", OTHER,
     "of several jobs in one folder only the processes of these, numbered from 0 on by their "
     "begin; they are told apart by what their launchers say, and by time"},
    {OPTION_PROCESSES, 0, "rank", "N[,M-K]", OTHER, "only the processes of these ranks"},
    {OPTION_PROCESSES, 0, "pid", "N[,M-K]", OTHER,
     "only the processes of these numbers, as they see them themselves"},
    {OPTION_EVENTS, 0, "tid", "N[,M-K]", OTHER,
     "only what these threads did, by the system's numbers, and the work that they made"},
    {OPTION_PLACE, 0, "device", "N[,M-K]", OTHER,
     "of the work of devices only that of these; what the host did stays"},
    {OPTION_EVENTS, 0, "kind", "KIND[,KIND..]", OTHER,
     "only events of these kinds: calls by what they do (launch, alloc, copy, sync, graph, other; "
     "call: all), work of devices (kernel, gpu_memcpy, gpu_memset, gpu_graph; work: all), "
     "cuda_sync, overhead, memory, range, mark, operator, library"},
    {OPTION_EVENTS, 0, "name", "REGEX", OTHER,
     "only events with a name that this extended regular expression is found in"},
    {OPTION_EVENTS, 0, "min-duration", "TIME", OTHER,
     "only events that took at least so long: 10us"},
    {OPTION_CLOCK, 0, "clock", "collectives|wall", CHOICE(clock),
     "how hosts come to one clock: by the ends of collectives that they share, where NCCL's calls "
     "are recorded, or by each host's own clock, as the system has it; default: collectives"},
    {OPTION_STEP_RANGE, 0, "step-range", "PATTERN", TEXT(step_range),
     "each range of this name is a step of the program; '*' stands for any text, '?' for one byte: "
     "'iteration *'"},
    {OPTION_STEP_BY, 0, "step-by", "range|profiler|optimizer|dataloader|graph|NAME", TEXT(step_by),
     "what a step is: the calls of gpuprof_step; PyTorch's labels ProfilerStep#N, Optimizer.step# "
     "(from one update to the next), or enumerate(DataLoader)#; launches of one graph; or ranges, "
     "labels, or a class of optimizers of that name; default: the first of these that is there"},
    {OPTION_SAMPLES, 0, "samples-per-step", "N", OTHER,
     "samples that a process works on in a step: the tables of steps have its throughput"},
    {OPTION_GRAPH, 'o', "output", "FILE", TEXT(output),
     "write the graph there (compressed if the name ends in .gz); default: standard output"},
    {OPTION_FORM, 0, "format", "folded|speedscope|svg", CHOICE(flame_format),
     "how the graph is written; default: as the name of the file ends: .svg, or .json for "
     "speedscope, or else folded"},
    {OPTION_WEIGHT, 0, "weight", "host|gpu|calls|bytes", CHOICE(weight),
     "what a frame's width means: the calls' time, the time of the work that they launched, "
     "their number, or bytes allocated; default: host"},
    {OPTION_OWN_FRAMES, 0, "mine", NULL, FLAG(is_mine),
     "show frames of your own code only: none of installed packages, of Python or of the system's "
     "libraries"},
    {OPTION_FOLD, 0, "fold-unnamed", NULL, FLAG(folds_unnamed),
     "leave out frames without a name: what they called stands at the frame that called them"},
    {OPTION_MERGE_RANKS, 0, "merge-ranks", NULL, FLAG(merges_ranks),
     "lay the processes of one program over one another, as one"},
    {OPTION_THREADS, 0, "threads", NULL, FLAG(threads), "show each thread of a process apart"},
    {OPTION_SYMBOLS, 0, "symbols", "DIR|none", OTHER,
     "look for binaries and debug files in this folder, too (files, a .build-id tree, or a "
     "system's root); none: look nothing up; default: where they were recorded"},
    {OPTION_AGAINST, 0, "against", NULL, OTHER,
     "what stands behind it is what the runs before it are compared with: what is worse, or more, "
     "is so of those before it"},
    {OPTION_SHARES, 0, "shares", NULL, FLAG(is_shares),
     "with --against: compare shares of the whole, and not what a run took; for runs of different "
     "length"},
    {OPTION_GATE, 0, "gate", "PERCENT", OTHER,
     "the smallest regression that is to be found; worse is what is worse by more than half of it, "
     "surely; default: 5%"},
    {OPTION_INCONCLUSIVE, 0, "inconclusive", "pass|fail", CHOICE(inconclusive),
     "exit with 0 or 1 where nothing can be said, or the runs cannot be compared; default: with "
     "3"},
    {OPTION_FORCE, 0, "force", NULL, FLAG(force),
     "compare runs of different GPUs, drivers, versions, or with losses, too, and say what "
     "differs"},
    {OPTION_DIFF_FILE, 'o', "output", "FILE", OTHER,
     "write the comparison there; may be given several times, each file in the form that its name "
     "has; default: standard output"},
    {OPTION_DIFF_FORM, 0, "format", "text|junit|json|html", CHOICE(diff_format),
     "how it is written; default: as the name of the file ends: .xml (JUnit), .json or .html (a "
     "page for a browser), or else text"},
    {OPTION_FOLDER, 0, "dir", "DIR", TEXT(folder),
     "the folder of baselines; default: .gpuprof/baselines"},
    {OPTION_PORT, 0, "port", "N", OTHER,
     "serve on this port of 127.0.0.1; default: one that is free"},
    {OPTION_PID, 0, "pid", "N", OTHER, "the process of that number only, as it sees it itself"},
    {OPTION_RANK, 0, "rank", "N", OTHER, "the processes of that rank only"},
    {OPTION_TIMEOUT, 0, "timeout", "SECONDS", OTHER,
     "how long answers are waited for; default: 10"},
    {OPTION_WHEN, 0, "at", "TIME", TEXT(at),
     "when to: 2026-11-23T18:00:00 (local, or with Z or +01:00), 18:00, +30s, or @SECONDS since "
     "1970"},
    {OPTION_ONCE, 0, "once", NULL, FLAG(is_once),
     "print one answer of each process, after some seconds, and end"},
    {OPTION_INTERVAL, 0, "interval", "SECONDS", OTHER, "print so often; default: 1"},
    {OPTION_TOP_FORM, 0, "format", "text|json|openmetrics", CHOICE(top_format),
     "print text, or a line of JSON each time, or what Prometheus reads; default: text"},
    {OPTION_AT_STEP, 0, "at-step", "N|+N", TEXT(at_step),
     "with which step to, so that all ranks do so with the same one; +N: so many ahead of the rank "
     "that is farthest"},
    {OPTION_OPEN, 0, "open", NULL, FLAG(open), "start the browser, by xdg-open"},
    {OPTION_BLOCKS, 0, "blocks", NULL, FLAG(blocks),
     "print the files' headers and blocks only, no events"},
    {OPTION_STRICT, 0, "strict", NULL, FLAG(strict),
     "exit with 3 if anything at all was lost, not only if a file is damaged"},
    {OPTION_KEEP_LIVE, 0, "keep-live", NULL, FLAG(keep_live),
     "leave the live files of ended processes where they are"},
    {OPTION_JSON, 0, "json", NULL, OTHER, "print JSON instead of lines"},
    {OPTION_HELP, 'h', "help", NULL, FLAG(help), "print this help"},
    {0, 0, NULL, NULL, OTHER, NULL},
};

#undef AT
#undef FLAG
#undef TEXT
#undef CHOICE
#undef OTHER

_Static_assert(sizeof option_infos / sizeof option_infos[0] <= OPTION_ROWS_MAX,
               "struct options says which were given");

const char *option_given(const struct options *o, option_set set)
{
    for (const struct option_info *info = option_infos; info->bit; info++)
        if (set & info->bit && o->given[info - option_infos])
            return info->name;
    return NULL;
}

/* Is `word` this option? Then *value is what stands in the same word, or NULL. */
static bool is_option(const struct option_info *info, char *word, char **value)
{
    char *rest = word + 2;
    if (word[1] != '-') {
        if (!info->letter || word[1] != info->letter)
            return false;
        *value = *rest ? rest : NULL;
    } else {
        size_t length = info->name ? strlen(info->name) : 0;
        if (!length || strncmp(rest, info->name, length) != 0)
            return false;
        rest += length;
        if (*rest && *rest != '=')
            return false;
        *value = *rest ? rest + 1 : NULL;
    }
    return !*value || info->value;
}

const struct option_info *option_take(option_set set, char **argv, int *at, char **value)
{
    for (const struct option_info *info = option_infos; info->bit; info++) {
        if (!(set & info->bit) || !is_option(info, argv[*at], value))
            continue;
        if (info->value && !*value && argv[*at + 1])
            *value = argv[++*at];
        return info;
    }
    return NULL;
}

/* What is said instead of nsys' options of stats that are not here. */
static const struct {
    const char *name, *hint;
} nsys_options[] = {
    {"-q", " (leave it out: nothing is said but what differs from nsys)"},
    {"--quiet", " (leave it out: nothing is said but what differs from nsys)"},
    {"--force-export", " (leave it out: no database is made)"},
    {"--force-overwrite", " (leave it out: -o always replaces a file)"},
    {"--sqlite", " (gpuprof export -o x.sqlite makes a database)"},
    {"--timeunit", " (leave it out: text has the unit that fits, csv and json have ns)"},
    {"--filter-time", " (--from and --to)"},
    {"--filter-nvtx", " (--range)"},
};

static const char *nsys_hint(const char *word)
{
    for (unsigned i = 0; i < sizeof nsys_options / sizeof nsys_options[0]; i++)
        if (strlen(nsys_options[i].name) == strcspn(word, "=") &&
            strncmp(nsys_options[i].name, word, strcspn(word, "=")) == 0)
            return nsys_options[i].hint;
    return "";
}

/* Which verb has the option of this name, of those that do not accept it; "": none. */
static const char *elsewhere_text(const char *name, size_t length)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strlen(setting_infos[i].option) == length &&
            memcmp(setting_infos[i].option, name, length) == 0)
            return " (gpuprof run has it)";
    for (const struct option_info *info = option_infos; info->bit; info++)
        if (info->name && strlen(info->name) == length && memcmp(info->name, name, length) == 0)
            return " (another verb has it)";
    return "";
}

enum exit_code option_unknown(const char *verb, option_set set, const char *word)
{
    char text[NEAREST_TEXT_BYTES];
    bool is_long = word[0] == '-' && word[1] == '-';
    size_t length = is_long ? strcspn(word + 2, "=") : 0;
    struct nearest nearest = nearest_to(word + 2, length);
    for (const struct option_info *info = option_infos; info->bit; info++)
        if (set & info->bit && info->name)
            nearest_offer(&nearest, info->name);
    for (int i = 0; set & OPTION_SETTINGS && i < SETTING_COUNT; i++)
        nearest_offer(&nearest, setting_infos[i].option);
    if (nearest.found && nearest.distance == 0)
        return usage_error("%s: --%s takes no value", verb, nearest.found);
    /* A name that another verb has was not mistyped, though one of this verb's may be near it. */
    const char *hint = set & OPTION_REPORT ? nsys_hint(word) : "";
    hint = *hint ? hint : elsewhere_text(word + 2, length);
    return usage_error("%s: unknown option '%s'%s; try 'gpuprof help %s'", verb, word,
                       *hint ? hint : nearest_text(&nearest, "--", text), verb);
}

/* The index of `text` among the words of `choices`, a|b|c; -1: it is none of them. */
static int choice_index(const char *choices, const char *text)
{
    size_t length = strlen(text);
    for (int index = 0; *choices; index++) {
        size_t word = strcspn(choices, "|");
        if (word == length && memcmp(choices, text, length) == 0)
            return index;
        choices += word + (choices[word] == '|');
    }
    return -1;
}

static bool is_stream_name(const char *path)
{
    size_t length = strlen(path), end = strlen(STREAM_SUFFIX);
    return length >= end && strcmp(path + length - end, STREAM_SUFFIX) == 0;
}

static bool take_seconds(const char *value, double *seconds)
{
    uint64_t ns;
    if (!duration_parse(value, &ns))
        return false;
    *seconds = (double)ns / 1e9;
    return *seconds <= SECONDS_MAX;
}

/* A number, with "%" or nothing behind it. */
static bool take_amount(const char *value, bool is_share, double *number)
{
    struct amount amount;
    const char *end = amount_read(value, value + strlen(value), &amount);
    *number = end ? (double)amount.whole + amount.billionths / 1e9 : 0;
    return end && (!*end || (is_share && strcmp(end, "%") == 0));
}

/* One that is a number, or has a unit. */
static enum exit_code take_number(struct options *o, const char *verb,
                                  const struct option_info *info, const char *value)
{
    char *end;
    errno = 0;
    switch (info->bit) {
    case OPTION_GATE:
        if (!take_amount(value, true, &o->gate))
            return usage_error("%s: --gate: '%s' is no percentage, such as 5%%", verb, value);
        o->gate /= 100;
        if (!(o->gate >= GATE_MIN && o->gate <= GATE_MAX))
            return usage_error("%s: --gate: '%s' is not between %g%% and %g%%", verb, value,
                               100 * GATE_MIN, 100 * GATE_MAX);
        break;
    case OPTION_SAMPLES:
        if (!take_amount(value, false, &o->step_samples) || !(o->step_samples > 0) ||
            o->step_samples > SAMPLES_MAX)
            return usage_error("%s: --samples-per-step: '%s' is not a number of samples", verb,
                               value);
        break;
    case OPTION_AT:
        o->memory_at = MEMORY_AT_TIME;
        if (strcmp(value, "peak") == 0 || strcmp(value, "end") == 0)
            o->memory_at = *value == 'p' ? MEMORY_AT_PEAK : MEMORY_AT_END;
        else if (!take_seconds(value, &o->at_seconds))
            return usage_error("%s: --at: '%s' is neither peak nor end nor a number of seconds, "
                               "or 500ms",
                               verb, value);
        break;
    case OPTION_LIMIT:
        o->limit = strtoull(value, &end, 10);
        if (*end || errno || !isdigit((unsigned char)value[0]))
            return usage_error("%s: --limit: '%s' is not a number of rows", verb, value);
        break;
    case OPTION_MAX_SIZE:
        if (!settings_size(value, &o->max_size) || !o->max_size)
            return usage_error("%s: --max-size: '%s' is no size, such as 400M (K, M, G, T; KB and "
                               "KiB mean the same as K)",
                               verb, value);
        break;
    case OPTION_JOBS: {
        unsigned long jobs = strtoul(value, &end, 10);
        if (*end || !isdigit((unsigned char)value[0]) || jobs < 1 || jobs > JOBS_MAX)
            return usage_error("%s: --jobs: '%s' is no number of processors, from 1 on", verb,
                               value);
        if (jobs > WORKERS_MAX)
            message("%s: --jobs: %lu: %u processes share the work, which is the most", verb, jobs,
                    WORKERS_MAX);
        o->jobs = jobs < WORKERS_MAX ? (unsigned)jobs : WORKERS_MAX;
        break;
    }
    case OPTION_PORT: {
        unsigned long port = strtoul(value, &end, 10);
        if (*end || !isdigit((unsigned char)value[0]) || port > PORT_MAX)
            return usage_error("%s: --port: '%s' is not the number of a port", verb, value);
        o->port = (unsigned)port;
        break;
    }
    case OPTION_PID:
    case OPTION_RANK: {
        unsigned long long number = strtoull(value, &end, 10);
        bool is_pid = info->bit == OPTION_PID;
        if (*end || errno || !isdigit((unsigned char)value[0]) || number > INT32_MAX ||
            (is_pid && number == 0))
            return usage_error("%s: --%s: '%s' is no such number", verb, info->name, value);
        if (is_pid)
            o->pid = (uint32_t)number;
        else
            o->rank = number;
        break;
    }
    case OPTION_TIMEOUT:
    case OPTION_INTERVAL: {
        double *seconds = info->bit == OPTION_TIMEOUT ? &o->timeout : &o->interval;
        if (!take_seconds(value, seconds))
            return usage_error("%s: --%s: '%s' is not a time such as 2 (seconds), 500ms or 1min",
                               verb, info->name, value);
        break;
    }
    default: break;
    }
    return EXIT_OK;
}

_Static_assert(sizeof(enum report_format) == sizeof(int), "a choice is kept as a number");

/* One of some words. */
static enum exit_code take_choice(void *at, const char *verb, const struct option_info *info,
                                  const char *value)
{
    const char *word = value;
    if (info->bit == OPTION_DIFF_FORM && strcmp(value, "xml") == 0)
        word = "junit"; /* as its file's name ends */
    bool is_nsys = strcmp(value, "column") == 0 || strcmp(value, "table") == 0;
    if (info->bit == OPTION_STATS_FORM && is_nsys)
        word = "text";
    int choice = choice_index(info->value, word);
    if (choice < 0)
        return usage_error("%s: --%s: '%s' is not one of %s", verb, info->name, value, info->value);
    memcpy(at, &choice, sizeof choice);
    return EXIT_OK;
}

static enum exit_code take_symbols(struct options *o, const char *verb, const char *value)
{
    struct stat status;
    o->symbols = value;
    if (strcmp(value, SYMBOLS_OFF) == 0)
        return EXIT_OK;
    errno = stat(value, &status) < 0 ? errno : S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
    return errno ? usage_error("%s: --symbols: %s: %s; name a folder with binaries or debug files, "
                               "or none",
                               verb, value, strerror(errno))
                 : EXIT_OK;
}

/* Options that name a file to be written, which of a recording would be its end. */
#define FILES_WRITTEN                                                                              \
    (OPTION_OUTPUT | OPTION_GRAPH | OPTION_TABLES | OPTION_MEMORY_FILE | OPTION_EXPORT_FILE |      \
     OPTION_DIFF_FILE)

/* What is said of any option, whatever it does. */
static enum exit_code check_option(struct options *o, const char *verb, const char *word,
                                   const struct option_info *info, const char *value)
{
    bool *given = &o->given[info - option_infos];
    if (info->value && (!value || !*value))
        return usage_error("%s: %s needs a value: %s", verb, word, info->value);
    if (info->bit & (OPTION_SELECT | OPTION_PROCESSES | OPTION_TABLE | OPTION_REPORT) && *given)
        return usage_error("%s: --%s is there twice; say it once%s", verb, info->name,
                           strchr(info->value, ',') ? ", with a comma between the values" : "");
    if (info->bit & (FILES_WRITTEN | OPTION_TOP_FILE) & ~OPTION_DIFF_FILE && *given)
        return usage_error("%s: -o is there twice (%s, %s): %s writes one file at a time", verb,
                           o->output, value, verb);
    *given = true;
    if (info->bit & FILES_WRITTEN && is_stream_name(value))
        return usage_error("%s: %s: is a recording or would be taken for one, and is not "
                           "overwritten or made; name another file",
                           verb, value);
    return EXIT_OK;
}

static enum exit_code take_other(struct options *o, const char *verb,
                                 const struct option_info *info, char *value)
{
    switch (info->bit) {
    case OPTION_DIFF_FILE:
        if (o->output_count == OUTPUTS_MAX)
            return usage_error("%s: -o: at most %d files at a time", verb, OUTPUTS_MAX);
        o->outputs[o->output_count++] = value;
        break;
    case OPTION_AGAINST:
        if (o->against >= 0)
            return usage_error(
                "%s: --against: may be given once; it takes all that stand behind it", verb);
        o->against = o->path_count;
        break;
    case OPTION_WINDOW:
    case OPTION_CYCLE: return select_cycle_take(&o->select, verb, info->bit == OPTION_CYCLE, value);
    case OPTION_GROUP: o->groups = GROUPS_ALWAYS; break;
    case OPTION_NO_GROUP: o->groups = GROUPS_NEVER; break;
    case OPTION_PROCESSES:
    case OPTION_PLACE:
    case OPTION_TIME:
    case OPTION_EVENTS: return select_wish_take(&o->select, verb, info->name, value);
    case OPTION_SYMBOLS: return take_symbols(o, verb, value);
    default: return take_number(o, verb, info, value);
    }
    return EXIT_OK;
}

static enum exit_code parse_option(struct options *o, char **argv, int *at, option_set set)
{
    char *word = argv[*at];
    char *value;
    const struct option_info *info = option_take(set, argv, at, &value);
    enum exit_code code =
        info ? check_option(o, argv[0], word, info, value) : option_unknown(argv[0], set, word);
    if (code != EXIT_OK)
        return code;
    void *member = (char *)o + info->at;
    switch (info->use) {
    case OPTION_SETS: *(bool *)member = true; break;
    case OPTION_KEEPS: *(const char **)member = value; break;
    case OPTION_CHOOSES: return take_choice(member, argv[0], info, value);
    default: return take_other(o, argv[0], info, value);
    }
    return EXIT_OK;
}

enum exit_code options_parse(struct options *o, int argc, char **argv, option_set set)
{
    *o = (struct options){.paths = argv + 1,
                          .format = FORMAT_BY_NAME,
                          .memory_by = MEMORY_BY_BEST,
                          .flame_format = FLAME_BY_NAME,
                          .diff_format = DIFF_BY_NAME,
                          .inconclusive = INCONCLUSIVE_SAID,
                          .against = -1,
                          .gate = GATE_DEFAULT,
                          .limit = ROWS_UNLIMITED,
                          .rank = UINT64_MAX,
                          .timeout = -1,
                          .interval = -1};
    bool words_only = false;
    for (int at = 1; at < argc && !o->help; at++) {
        char *word = argv[at];
        if (!words_only && strcmp(word, "--") == 0) {
            words_only = true;
        } else if (!words_only && word[0] == '-' && word[1]) {
            enum exit_code code = parse_option(o, argv, &at, set);
            if (code != EXIT_OK)
                return code;
        } else {
            o->paths[o->path_count++] = word; /* never ahead of `at` */
        }
    }
    if (o->step_range && o->step_by && strcmp(o->step_by, "range") != 0)
        return usage_error("%s: --step-range names ranges, --step-by=%s something else", argv[0],
                           o->step_by);
    if (o->is_mine && set & OPTION_MINE && o->by != BY_NAME && o->by != BY_PYTHON_LINE)
        return usage_error("%s: --mine goes with --by=python-line", argv[0]);
    if (o->is_mine && set & OPTION_MINE)
        o->by = BY_PYTHON_LINE;
    if (o->source && o->by != BY_NAME)
        return usage_error("%s: --source is a table of its own: leave --by or --mine out", argv[0]);
    if (o->source)
        o->by = BY_SOURCE;
    if (o->path_count == 0 && o->is_combined && !o->help)
        return usage_error("%s: --combine: no part named: name the files that --partial has made",
                           argv[0]);
    if (o->path_count == 0 && (set & OPTION_RECORDINGS) && !o->help)
        return usage_error("%s: no folder or file named (. is this one); try 'gpuprof help %s'",
                           argv[0], argv[0]);
    return EXIT_OK;
}
