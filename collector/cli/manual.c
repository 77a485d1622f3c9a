/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `manual`: pages of troff, made from the tables of verbs, options and topics. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "cli/help.h"
#include "output/output.h"

static const char *const manual_part_titles[PART_COUNT] = {"EXAMPLES", "ENVIRONMENT", "FILES",
                                                           "EXIT STATUS"};

#define ALL "*"

/* Rows that many verbs share, unless a verb has its own. */
static const struct manual_rule {
    const char
        *option; /* verbs with this option; NULL: verbs that read recordings; ALL: all but run */
    struct manual_row row;
} manual_rules[] = {
    {"symbols",
     {PART_VARIABLE, "DEBUGINFOD_URLS", "servers from which to fetch missing debug files"}},
    {"color",
     {PART_VARIABLE, "NO_COLOR, TERM", "no colours if NO_COLOR is set, or if TERM is dumb"}},
    {"keep-live", {PART_VARIABLE, "TMPDIR", "a folder for data that does not fit into memory"}},
    {NULL, {PART_FILE, "DIR/*.gpuprof", "a recording each, specified in event-stream.md"}},
    {"keep-live",
     {PART_FILE, "DIR/*.live",
      "the last events of a killed process; moved there from /dev/shm, unless --keep-live"}},
    {"dir", {PART_FILE, ".gpuprof/baselines/NAME.json", "a baseline; --dir names another folder"}},
    {NULL, {PART_STATUS, "0", "everything that was recorded was read"}},
    {ALL, {PART_STATUS, "1", "input or output failed"}},
    {ALL, {PART_STATUS, "2", "a wrong option, or nothing to read, or to show"}},
    {NULL, {PART_STATUS, "3", "something is damaged, or, with --strict, something was lost"}},
    {0},
};

static const struct {
    const char *prototype;
    const char *text;
} functions[] = {
    {"int gpuprof_range_push(const char *text);",
     "Begins a range on the calling thread. Returns its level among the open ranges, counted from "
     "0, or -2 without gpuprof."},
    {"int gpuprof_range_pop(void);",
     "Ends the thread's innermost range. Returns its level, -1 without an open range, or -2 "
     "without gpuprof."},
    {"void gpuprof_mark(const char *text);", "Marks a moment."},
    {"void gpuprof_step(uint64_t number);",
     "Begins an iteration, which lasts until the next call. Use the program's own number, so that "
     "it means the same after a restart and on all ranks."},
    {"void gpuprof_stop(void);",
     "Stops recording CUDA calls in all threads. Allocations, frees and the limits of stream "
     "captures are still recorded. A call that is open is recorded to its end."},
    {"void gpuprof_start(void);",
     "Resumes recording. In a program started by gpuprof run --start-paused, the first call starts "
     "it."},
    {"int gpuprof_dump(const char *why);",
     "Asks gpuprof's own thread to write the events that gpuprof run --flight keeps; the text is "
     "shown with them. Returns 0, -1 without a flight recorder, or -2 without gpuprof."},
};

/* ---- troff ----------------------------------------------------------------------------------- */

/* Escapes backslashes and hyphens, keeps lines, and protects a leading dot or quote. */
static void roff_text(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            fputs(*text == '-' ? "\\-" : "\\e", stdout);
        else if (*text == '\n')
            fputs("\n.br\n", stdout);
        else
            putchar(*text);
    }
    putchar('\n');
}

static void roff_item(const char *name, const char *text)
{
    fputs(".TP\n.B ", stdout);
    roff_text(name);
    roff_text(text);
}

static void roff_column(const char *name, const char *text)
{
    fputs(".br\n.I ", stdout);
    roff_text(name);
    roff_text(text);
}

/* Whether the rule applies to the verb, which has no row of its own for this. */
static bool applies(const struct manual_rule *rule, const struct verb *verb)
{
    for (const struct manual_row *own = verb->manual; own->name; own++)
        if (own->part == rule->row.part && strcmp(own->name, rule->row.name) == 0)
            return false;
    return !rule->option                    ? verb->takes & TAKES_RECORDINGS
           : strcmp(rule->option, ALL) == 0 ? !(verb->takes & LISTS_SETTINGS)
                                            : option_named(verb, rule->option) != NULL;
}

static void roff_parts(const struct verb *verb, const char *heading)
{
    for (enum manual_part part = 0; part < PART_COUNT; part++) {
        unsigned count = 0;
        printf("%s%s\n", heading, manual_part_titles[part]);
        for (const struct manual_row *row = verb->manual; row->name; row++)
            if (row->part == part && ++count)
                roff_item(row->name, row->text);
        for (const struct manual_rule *rule = manual_rules; rule->row.name; rule++)
            if (rule->row.part == part && applies(rule, verb) && ++count)
                roff_item(rule->row.name, rule->row.text);
        if (!count)
            roff_item("none", "");
    }
}

static void roff_synopsis(const struct verb *verb)
{
    printf("%s", verb->options ? "[OPTIONS] " : "");
    for (const char *p = verb->operands; *p; p++)
        printf("%s%c", *p == '-' ? "\\" : "", *p);
}

static void roff_settings(const struct verb *verb)
{
    printf(".SH SETTINGS\n");
    roff_text("A setting is an option of gpuprof run, and an environment variable that the library "
              "reads; the option wins. " UNITS_TEXT " --tune NAME=VALUE sets the following; the "
              "defaults suit most programs:");
    each_option(verb, HELP_TUNING, true, roff_item);
}

/* The options, tables and parts of a verb, on a page of its own or as a section of gpuprof(1). */
static void roff_verb(const struct verb *verb, bool is_page)
{
    const char *heading = is_page ? ".SH " : ".PP\n.B ";
    for (enum help_group group = HELP_OTHER; group < HELP_TUNING; group++)
        each_option(verb, group, true, roff_item);
    if (verb->takes & TAKES_PROGRAM && !(verb->takes & LISTS_SETTINGS))
        printf(".PP\n" RUN_OPTIONS_TEXT "\n");
    if (help_table_at(verb, 0)) {
        printf("%s%s\n", heading, is_page ? "TABLES" : "Tables");
        each_table(verb, roff_item, roff_column);
    }
    if (is_page && verb->takes & LISTS_SETTINGS)
        roff_settings(verb);
    roff_parts(verb, heading);
}

static const struct {
    const char *title, *text;
} sections[] = {
    {"THE DATA FOLDER",
     "gpuprof run records into ./gpuprof.PROGRAM.TIME, or into the folder that \\-o or "
     "GPUPROF_OUT names. A program started with LD_PRELOAD alone records into ./gpuprof\\-out. "
     "The folder is made at the first recorded call, so a program without CUDA calls leaves "
     "nothing. Each process has a file. Give all ranks of a job the same folder with \\-o; rank "
     "0 prints the summary."},
    {"SIGNALS",
     "The program runs in the launcher's process group, with its terminal and its files. The "
     "launcher passes on the signals that it gets. If a signal ends the program, it also ends the "
     "launcher. If the launcher is killed, the program is killed too."},
    {"RANGES AND STEPS",
     "NVTX ranges and marks are recorded, unless NVTX_INJECTION64_PATH names another library than "
     "gpuprof\\(aqs. A program can also include gpuprof.h, without linking anything. No call of "
     "it starts a recording. Ranges that are open at the first recorded call are recorded with "
     "their true start, and earlier ones are not recorded."},
    {"WHO MADE THE CALLS",
     "Slow calls, and those selected by \\-\\-backtrace, have stacks. gpuprof flame draws them; "
     "gpuprof report \\-\\-by=stack and \\-\\-by=python\\-line show them as tables. A call counts "
     "for its innermost Python line, and under \"all\" once for each line that led to it. Traces "
     "have each stack as sf and stackFrames, and as a text argument.\n.PP\nNative frames are "
     "resolved when they are read: in the recorded files if their build id is unchanged, in their "
     "debug files (.gnu_debuglink, .build\\-id), below \\-\\-symbols, and at DEBUGINFOD_URLS. "
     "Others are shown as module+offset."},
    {"TRACES OF RANKS",
     "gpuprof merge \\-\\-per\\-rank \\-o DIR writes rank_N.pt.trace.json.gz for each rank, for "
     "HTA and TensorBoard. Processes without GPU work, or that share a rank with one that has "
     "some, go to DIR/others. With \\-o x.zip the files are members of an archive, which "
     "Perfetto opens as one trace. All of them share their time zero."},
    {"WHAT CANNOT BE RECORDED",
     "Statically linked programs, setuid programs, and programs that clear LD_PRELOAD.\n.PP\n"
     "GUIDE.md explains tasks step by step, and answers.md the rules behind answers."},
};

static void roff_sections(void)
{
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        printf(".SH \"%s\"\n%s\n", sections[i].title, sections[i].text);
    printf(".SH \"EXIT STATUS\"\n");
    topic_each(topic_find("exit-status"), &(struct topic_rows){.item = roff_item});
}

/* ---- pages ----------------------------------------------------------------------------------- */

static enum exit_code roff_end(void)
{
    printf(".SH \"SEE ALSO\"\n.BR gpuprof (1)\n");
    return standard_output_end();
}

static enum exit_code manual_of_header(void)
{
    printf(".TH GPUPROF.H 3 \"\" \"gpuprof %s\" \"Library Functions\"\n", GPUPROF_RELEASE);
    printf(".SH NAME\ngpuprof.h \\- control the profiler gpuprof from a program\n"
           ".SH SYNOPSIS\n.nf\n.B #include <gpuprof.h>\n.PP\n");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        printf(".B %s\n", functions[i].prototype);
    printf(".fi\n.SH DESCRIPTION\n");
    roff_text(
        "The header is for C and C++. There is nothing to link (before glibc 2.34: -ldl). Without "
        "gpuprof each call costs a load and a branch. Texts are UTF-8, copied, and cut at "
        "4096 bytes; NULL is an empty text. Any thread may call any function. None starts a "
        "recording.");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        roff_item(functions[i].prototype, functions[i].text);
    roff_item("GPUPROF_H_VERSION", "A number that grows when the header declares more.");
    printf(".SH EXAMPLES\n.nf\n"
           "for (uint64_t i = 0; i < steps; i++) {\n    gpuprof_step(i);\n"
           "    gpuprof_range_push(\"forward\");\n    forward();\n    gpuprof_range_pop();\n}\n"
           ".fi\n.SH ENVIRONMENT\n");
    roff_text("GPUPROF_START_PAUSED=1 begins as if gpuprof_stop() had been called.");
    printf(".SH FILES\n");
    roff_text("gpuprof.pc tells pkg-config the header's folder.");
    printf(".SH \"EXIT STATUS\"\n");
    roff_text("No function ends the program.");
    return roff_end();
}

/* Begins the page of a verb or a topic. */
static void roff_head(const char *name, const char *section, const char *about)
{
    printf(".TH GPUPROF\\-%s %s \"gpuprof %s\"\n.SH NAME\ngpuprof\\-%s \\- ", name, section,
           GPUPROF_RELEASE, name);
    roff_text(about);
}

static enum exit_code manual_of_verb(const struct verb *verb)
{
    roff_head(verb->name, "1 \"\"", verb->help);
    printf(".SH SYNOPSIS\n.B gpuprof %s\n", verb->name);
    roff_synopsis(verb);
    printf("\n.SH OPTIONS\n");
    roff_verb(verb, true);
    return roff_end();
}

static enum exit_code manual_of_topic(const struct verb *const *verbs, const struct topic *topic)
{
    roff_head(topic->name, "7 \"\"", topic->title);
    printf(".SH DESCRIPTION\n");
    if (*topic->about)
        roff_text(topic->about);
    topic_each(topic, &(struct topic_rows){verbs, roff_item, roff_column});
    return roff_end();
}

static enum exit_code manual_of_all(const struct verb *const *verbs)
{
    printf(".TH GPUPROF 1 \"\" \"gpuprof %s\" \"User Commands\"\n", GPUPROF_RELEASE);
    printf(".SH NAME\ngpuprof \\- record the CUDA calls of a program\n"
           ".SH SYNOPSIS\n.B gpuprof\nVERB [OPTIONS] ...\n"
           ".SH DESCRIPTION\n" INTRO_TEXT "\n.SH VERBS\n");
    for (const struct verb *const *verb = verbs; *verb; verb++) {
        if ((*verb)->takes & VERB_OLD)
            continue;
        printf(".SS \"gpuprof %s ", (*verb)->name);
        roff_synopsis(*verb);
        printf("\"\n");
        roff_text((*verb)->help);
        roff_verb(*verb, false);
    }
    roff_settings(verbs[0]);
    roff_sections();
    printf(".SH \"SEE ALSO\"\n");
    for (; *verbs; verbs++)
        if ((*verbs)->run && !((*verbs)->takes & VERB_OLD))
            printf(".BR gpuprof\\-%s (1),\n", (*verbs)->name);
    for (const struct topic *topic = topics; topic->name; topic++)
        printf(".BR gpuprof\\-%s (7),\n", topic->name);
    printf(".BR gpuprof.h (3)\n");
    return standard_output_end();
}

static enum exit_code manual(const struct options *options)
{
    const char *of = options->path_count ? options->paths[0] : NULL;
    const struct verb *verb = of ? verb_find(options->verbs, of) : NULL;
    const struct topic *topic = of && !verb ? topic_find(of) : NULL;
    bool of_header = of && strcmp(of, "gpuprof.h") == 0;
    if (of && !verb && !topic && !of_header)
        return verb_unknown(options->verbs, "manual: ", "verb or topic", of);
    if (options->path_count > 1)
        return usage_error("manual: unknown argument '%s'; try 'gpuprof help manual'",
                           options->paths[1]);
    return verb        ? manual_of_verb(verb)
           : topic     ? manual_of_topic(options->verbs, topic)
           : of_header ? manual_of_header()
                       : manual_of_all(options->verbs);
}

VERB_IS(manual, manual, NULL, VERB_NO_OWN, VERB_MORE, "[VERB|TOPIC|gpuprof.h]",
        "print the manual page of gpuprof, a verb, a topic or the header",
        {PART_EXAMPLE, "gpuprof manual | man -l -", "read this page"},
        {PART_EXAMPLE, "gpuprof manual run | man -l -", "read the page of a verb, gpuprof-run(1)"},
        {PART_EXAMPLE, "gpuprof manual gpuprof.h | man -l -", "read the page of the header"},
        {PART_STATUS, "0", "it was printed"});
