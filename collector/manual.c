/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs `help` and `manual`: both are made of the tables of verbs and of settings. */
#include <stdio.h>
#include <string.h>

#include "launch.h"
#include "message.h"
#include "settings.h"
#include "verbs.h"

#define HELP_COLUMN 26 /* where the explanations begin */
#define HELP_WIDTH  92

/* What is not a verb of the collector: the front command adds it. */
static const struct verb front_verbs[] = {
    {"demo", NULL, "[DIR]", "record a small program on the simulated CUDA, merge it and report",
     NULL},
};

static const char intro[] =
    "gpuprof records the CUDA calls of a program, in all its processes and threads, and makes a "
    "timeline and tables of them. The program is not changed, and no root rights are needed.";

/* ---- text ----------------------------------------------------------------------------------- */

/* Words of `text` from column `column` on, the first line beginning at `at`. */
static void print_wrapped(const char *text, size_t at, size_t column)
{
    if (at > 0 && at >= column) {
        putchar('\n');
        at = 0;
    }
    while (*text) {
        size_t length = strcspn(text, " ");
        if (at > column && at + 1 + length > HELP_WIDTH) {
            putchar('\n');
            at = 0;
        }
        if (at < column)
            printf("%*s", (int)(column - at), "");
        else if (at > column)
            putchar(' ');
        at = at < column ? column : at > column ? at + 1 : at;
        printf("%.*s", (int)length, text);
        at += length;
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

static void print_row(const char *name, const char *text)
{
    print_wrapped(text, (size_t)printf("  %s ", name), HELP_COLUMN);
}

/* "--buffer SIZE", "--nested". */
static void option_name(const struct setting_info *info, char *name, size_t name_bytes)
{
    snprintf(name, name_bytes, "--%s%s%s", info->option, *info->value ? " " : "", info->value);
}

static void setting_text(int index, char *text, size_t text_bytes)
{
    const struct setting_info *info = &setting_infos[index];
    const char *standard = index == SETTING_OUT ? LAUNCH_FOLDER_PATTERN : info->standard;
    snprintf(text, text_bytes, "%s (%s%s%s)", info->help, info->variable,
             *standard ? "; standard: " : "", standard);
}

static void print_settings(void)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        char name[64];
        char text[256];
        option_name(&setting_infos[i], name, sizeof name);
        setting_text(i, text, sizeof text);
        print_row(name, text);
    }
}

static void print_options(const struct verb_option *options)
{
    for (; options && options->option; options++)
        print_row(options->option, options->help);
}

static void help_all(void)
{
    char name[64];
    printf("usage: gpuprof VERB [OPTIONS] ...\n\n");
    print_wrapped(intro, 0, 0);
    printf("\n  gpuprof run python train.py\n  gpuprof merge DIR -o trace.json\n"
           "  gpuprof report DIR\n\nverbs:\n");
    for (size_t i = 0; i < verb_count; i++)
        print_row(verbs[i].name, verbs[i].help);
    for (size_t i = 0; i < sizeof front_verbs / sizeof front_verbs[0]; i++) {
        snprintf(name, sizeof name, "%s %s", front_verbs[i].name, front_verbs[i].arguments);
        print_row(name, front_verbs[i].help);
    }
    print_row("--version", "print the version");
    printf("\n'gpuprof help VERB' prints a verb's options.\n");
}

static void help_one(const struct verb *verb)
{
    printf("usage: gpuprof %s%s%s\n\n", verb->name, *verb->arguments ? " " : "", verb->arguments);
    print_wrapped(verb->help, 0, 0);
    if (strcmp(verb->name, "run") == 0) {
        printf("\noptions:\n");
        print_options(launch_options);
        printf("\nsettings, as an option or as an environment variable (an option wins):\n");
        print_settings();
    } else if (verb->options) {
        printf("\noptions:\n");
        print_options(verb->options);
    }
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < verb_count; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    for (size_t i = 0; i < sizeof front_verbs / sizeof front_verbs[0]; i++) {
        if (strcmp(front_verbs[i].name, name) == 0)
            return &front_verbs[i];
    }
    return NULL;
}

static int end_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_OK;
    message("help: standard output: it could not be written");
    return EXIT_ENVIRONMENT;
}

int help_verb(int argc, char **argv)
{
    if (argc > 2)
        return usage_error("help: too many arguments");
    if (argc < 2) {
        help_all();
        return end_output();
    }
    const struct verb *verb = find_verb(argv[1]);
    if (!verb)
        return usage_error("help: unknown verb '%s'; try 'gpuprof help'", argv[1]);
    help_one(verb);
    return end_output();
}

/* ---- troff ---------------------------------------------------------------------------------- */

/* Backslashes and hyphens escaped; a leading dot or quote is no request. */
static void roff_text(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            fputs(*text == '-' ? "\\-" : "\\e", stdout);
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

static void roff_options(const struct verb_option *options)
{
    for (; options && options->option; options++)
        roff_item(options->option, options->help);
}

static void roff_verb(const struct verb *verb)
{
    printf(".SS \"gpuprof %s ", verb->name);
    for (const char *p = verb->arguments; *p; p++)
        printf("%s%c", *p == '-' ? "\\" : "", *p);
    printf("\"\n");
    roff_text(verb->help);
    if (strcmp(verb->name, "run") == 0)
        roff_options(launch_options);
    else
        roff_options(verb->options);
}

static void roff_settings(void)
{
    printf(".SH SETTINGS\n");
    roff_text("Each setting is an option of gpuprof run and an environment variable that the "
              "library reads; an option wins.");
    for (int i = 0; i < SETTING_COUNT; i++) {
        char name[64];
        char text[256];
        option_name(&setting_infos[i], name, sizeof name);
        setting_text(i, text, sizeof text);
        roff_item(name, text);
    }
}

struct section {
    const char *title;
    const char *text;
};

static const struct section sections[] = {
    {"THE DATA FOLDER",
     "gpuprof run records into ./gpuprof.PROGRAM.TIME, or where \\-o or GPUPROF_OUT says; a "
     "program "
     "started with LD_PRELOAD alone into ./gpuprof\\-out. The folder is made at the first recorded "
     "call: a program that makes none leaves nothing. There is one file for each process. In a job "
     "of several ranks, give \\-o, so that all ranks share a folder; rank 0 prints the summary."},
    {"SIGNALS",
     "The program runs in the launcher's process group, with its terminal and its files. Signals "
     "sent to the launcher are passed on; a program ended by a signal ends the launcher by the "
     "same signal. When the launcher is killed, the program is, too."},
    {"WHAT CANNOT BE RECORDED",
     "Programs that are statically linked, setuid, or that clear LD_PRELOAD."},
};

static void roff_sections(void)
{
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        printf(".SH \"%s\"\n%s\n", sections[i].title, sections[i].text);
    printf(".SH \"EXIT STATUS\"\n");
    roff_text("gpuprof run exits with the program's own status. The other verbs:");
    roff_item("0", "everything that was recorded was read");
    roff_item("1", "input or output failed");
    roff_item("2", "a wrong option, a missing program, or a file that is not a recording");
    roff_item("3", "something recorded is missing or damaged; what is whole was used");
}

int manual_verb(int argc, char **argv)
{
    if (argc > 1)
        return usage_error("manual: unknown argument '%s'", argv[1]);
    printf(".TH GPUPROF 1 \"\" \"gpuprof %s\" \"User Commands\"\n", GPUPROF_RELEASE);
    printf(".SH NAME\ngpuprof \\- record the CUDA calls of a program\n"
           ".SH SYNOPSIS\n.B gpuprof run\n[OPTIONS] [\\-\\-] PROGRAM [ARGUMENTS]\n.br\n"
           ".B gpuprof merge\nDIR \\-o trace.json\n.br\n.B gpuprof report\nDIR\n"
           ".SH DESCRIPTION\n");
    roff_text(intro);
    printf(".SH VERBS\n");
    for (size_t i = 0; i < verb_count; i++)
        roff_verb(&verbs[i]);
    for (size_t i = 0; i < sizeof front_verbs / sizeof front_verbs[0]; i++)
        roff_verb(&front_verbs[i]);
    roff_settings();
    roff_sections();
    return end_output();
}
