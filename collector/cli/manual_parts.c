/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual.h"

#include <stdio.h>
#include <string.h>

#include "output/verb_output.h"

static const char *const manual_part_titles[PART_COUNT] = {"EXAMPLES", "ENVIRONMENT", "FILES",
                                                           "EXIT STATUS"};

/* What many verbs say alike, of those that do not say it themselves. */
static const struct manual_rule {
    const char *option; /* verbs that have this option; NULL: that read recordings */
    struct manual_row row;
} manual_rules[] = {
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

static const struct {
    const char *prototype;
    const char *text;
} manual_functions[] = {
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

/* ---- as troff -------------------------------------------------------------------------------- */

/* Backslashes and hyphens escaped, lines kept; a leading dot or quote is no request. */
void roff_text(const char *text)
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

void roff_item(const char *name, const char *text)
{
    fputs(".TP\n.B ", stdout);
    roff_text(name);
    roff_text(text);
}

void roff_column(const char *name, const char *text)
{
    fputs(".br\n.I ", stdout);
    roff_text(name);
    roff_text(text);
}

/* Does the verb say this itself? */
static bool has_own(const struct verb *verb, const struct manual_row *row)
{
    const struct manual_row *own = verb->manual;
    while (own->name && !(own->part == row->part && strcmp(own->name, row->name) == 0))
        own++;
    return own->name != NULL;
}

/* `heading` is the macro, with what follows it, of a part's title. */
void roff_parts(const struct verb *verb, const char *heading)
{
    for (enum manual_part part = 0; part < PART_COUNT; part++) {
        bool is_empty = true;
        printf("%s%s\n", heading, manual_part_titles[part]);
        for (const struct manual_row *row = verb->manual; row->name; row++)
            if (row->part == part) {
                roff_item(row->name, row->text);
                is_empty = false;
            }
        for (const struct manual_rule *rule = manual_rules; rule->row.name; rule++)
            if (rule->row.part == part && !has_own(verb, &rule->row) &&
                (rule->option ? option_named(verb, rule->option) != NULL
                              : (verb->takes & TAKES_RECORDINGS) != 0)) {
                roff_item(rule->row.name, rule->row.text);
                is_empty = false;
            }
        if (is_empty)
            roff_item("none", "");
    }
}

struct section {
    const char *title;
    const char *text;
};

static const struct section sections[] = {
    {"THE DATA FOLDER",
     "gpuprof run records into ./gpuprof.PROGRAM.TIME, or where \\-o or GPUPROF_OUT says; a "
     "program started with LD_PRELOAD alone into ./gpuprof\\-out. The folder is made at the first "
     "recorded call: a program that makes none leaves nothing. There is one file for each process. "
     "In a job of several ranks, give \\-o, so that all ranks share a folder; rank 0 prints the "
     "summary."},
    {"SIGNALS",
     "The program runs in the launcher's process group, with its terminal and its files. Signals "
     "sent to the launcher are passed on; a program ended by a signal ends the launcher by the "
     "same signal. When the launcher is killed, the program is, too."},
    {"RANGES AND STEPS",
     "Ranges and marks that the program makes with NVTX are recorded, unless NVTX_INJECTION64_PATH "
     "names another library than gpuprof\\(aqs. A program can also include gpuprof.h, which needs "
     "nothing to link with: gpuprof_range_push(text), gpuprof_range_pop(), gpuprof_mark(text), "
     "gpuprof_step(number) at the begin of each iteration, and gpuprof_stop() and gpuprof_start(), "
     "between which no CUDA call is recorded. None of them starts a recording. What is open at the "
     "first recorded call is recorded with its true begin; what was over by then is not."},
    {"WHO MADE THE CALLS",
     "Calls that are slow, or that \\-\\-backtrace names, have stacks. gpuprof flame draws them as "
     "a flame graph, with callers below: as an SVG file for a browser, where a click zooms, as a "
     "file for speedscope, or folded, for other tools. gpuprof report \\-\\-by=stack and "
     "\\-\\-by=python\\-line are tables of them; a call counts for its innermost line of Python, "
     "and under \"all\" once for each line that led to it. GPU time is that of the work that a "
     "call "
     "launched. In traces each such call has its stack as sf and stackFrames, and as a text among "
     "its arguments. Time without a stack is listed separately. Marks in brackets stand among the "
     "frames: [borrowed: ...], what is around it is the stack of the thread that waits for this "
     "one, as for the threads of PyTorch\\(aqs autograd; [range NAME], a thread of Python without "
     "Python frames, in this range; [cut: ...], deeper frames were not kept.\n.PP\n"
     "Native frames are looked up when they are read: in the files that were recorded, if they "
     "still have the recorded build id, in their debug files (.gnu_debuglink, .build\\-id), in "
     "what \\-\\-symbols names, and from debuginfod if DEBUGINFOD_URLS says where. What is not "
     "found is shown as module+offset."},
    {"STEPS",
     "gpuprof report \\-\\-table=steps,phases says what the time of each step of a program was "
     "spent "
     "on, and what the slowest one does otherwise. A step is the first of these that is recorded, "
     "or what \\-\\-step\\-by and \\-\\-step\\-range say: from one gpuprof_step() to the next; "
     "PyTorch\\(aqs label ProfilerStep#N; from one update of an optimizer to the next "
     "(Optimizer.step#); from one fetch of a batch to the next (enumerate(DataLoader)#); from one "
     "launch of a CUDA graph to its next. PyTorch\\(aqs labels are there with gpuprof run "
     "\\-\\-pytorch=names. Traces have the same steps."},
    {"TRACES OF RANKS",
     "gpuprof merge \\-\\-per\\-rank \\-o DIR writes rank_N.pt.trace.json.gz for each rank, as HTA "
     "and TensorBoard want them. Processes that share a rank with the one that has GPU work, or "
     "have none, go to DIR/others. With \\-o x.zip the same files are the members of an archive, "
     "which Perfetto opens as one trace. All of them share their time zero."},
    {"WHAT CANNOT BE RECORDED",
     "Programs that are statically linked, setuid, or that clear LD_PRELOAD."},
};

void roff_sections(void)
{
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        printf(".SH \"%s\"\n%s\n", sections[i].title, sections[i].text);
    printf(".SH \"THE REPORT AS CSV\"\n");
    roff_text(
        "Each table has the columns of its rows in the JSON, and numbers are plain, in the unit "
        "that the column's name ends with. What is not known is an empty cell. One table "
        "(--table=NAME) is a heading and its rows. Several are blocks: a line '# NAME', the "
        "heading, the rows, and an empty line. With -o DIR each is a file, DIR/NAME.csv.");
    printf(".SH \"EXIT STATUS\"\n");
    topic_find("exit-status")->each(NULL, roff_item, true);
}

enum exit_code manual_of_header(void)
{
    printf(".TH GPUPROF.H 3 \"\" \"gpuprof %s\" \"Library Functions\"\n", GPUPROF_RELEASE);
    printf(".SH NAME\ngpuprof.h \\- what a program can say to the profiler gpuprof\n"
           ".SH SYNOPSIS\n.nf\n.B #include <gpuprof.h>\n.PP\n");
    for (unsigned i = 0; manual_functions[i].prototype; i++)
        printf(".B %s\n", manual_functions[i].prototype);
    printf(".fi\n.SH DESCRIPTION\n");
    roff_text("For C and C++. There is nothing to link with (before glibc 2.34: -ldl). Without "
              "gpuprof each call costs a load and a branch. Texts are UTF-8, copied, and cut at "
              "4096 bytes; NULL is an empty one. Any thread may call any of the functions; none "
              "starts a recording.");
    for (unsigned i = 0; manual_functions[i].prototype; i++)
        roff_item(manual_functions[i].prototype, manual_functions[i].text);
    roff_item("GPUPROF_H_VERSION", "A number that grows with what the header declares.");
    printf(".SH EXAMPLES\n.nf\n"
           "for (uint64_t i = 0; i < steps; i++) {\n    gpuprof_step(i);\n"
           "    gpuprof_range_push(\"forward\");\n    forward();\n    gpuprof_range_pop();\n}\n"
           ".fi\n.SH ENVIRONMENT\n");
    roff_text("GPUPROF_START_PAUSED=1 begins as if gpuprof_stop() had been called.");
    printf(".SH FILES\n");
    roff_text("gpuprof.pc has the header's folder for pkg-config.");
    printf(".SH \"EXIT STATUS\"\n");
    roff_text("No function ends the program.");
    printf(".SH \"SEE ALSO\"\n.BR gpuprof (1)\n");
    return standard_output_end();
}
