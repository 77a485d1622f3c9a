/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `run`: starts a program with libgpuprof.so preloaded, and prints a summary when it has
 * ended. Its exit code is the program's; a signal that ended the program also ends the launcher.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/next_words.h"
#include "base/options.h"
#include "base/text.h"
#include "error.h"
#include "file/live_file.h"
#include "rank.h"
#include "read/process.h"
#include "report/report.h"
#include "run/child.h"
#include "run/ctl_folder.h"
#include "run/program.h"
#include "settings.h"

#define LAUNCH_ADOPT_SECONDS   30
#define LAUNCH_SUMMARY_SECONDS 5
#define LAUNCH_WALK_NS         2000000000u /* maximum duration of each of the summary's two walks */
#define LAUNCH_PEERS_SECONDS   60          /* time within which the ranks of a job start */
#define SETTING_PREFIX         "GPUPROF_"
#define WINDOWS_META           "windows" /* written by windows.c */
#define WINDOWS_MAX            1000000000u

/* --on-cycle: a command for each window of the job, once its data is complete in all processes with
 * steps. The processes report that while they run, and their files do so afterwards. One command
 * runs at a time, and the job does not wait for it. */
struct cycles {
    const char *command; /* for sh -c; NULL: none, and the struct is unused */
    char **environment;  /* a view: of the command, without GPUPROF_OUT and GPUPROF_CYCLE */
    struct ctl_folder folder;
    uint64_t begun;  /* window number of the last started command */
    bool has_failed; /* a command failed; later failures are not reported */
};

/* Options besides settings. */
struct run_options {
    bool quiet;
    bool exec;
    const char *on_cycle; /* command; NULL: none */
};

struct launch {
    const char *command;       /* how the user called gpuprof: words for a shell */
    const char *const *values; /* settings given as options; NULL: not given */
    bool quiet;
    char **argv;                          /* the program and its arguments */
    char out[SETTING_TEXT_BYTES_MAX + 1]; /* the data folder, absolute */
    char *out_shown;          /* name of the folder for the user: a view of `out`, or as given */
    struct path_list earlier; /* files in the folder from earlier runs */
    struct path_list now;     /* files in it from this run, at its end */
    struct program program;
    struct child child;
    struct cycles cycles;
    struct next_words next; /* for the commands proposed at the end */
};

static enum exit_code check_options(const struct options *o)
{
    static const enum setting_index windows[] = {SETTING_SCHEDULE, SETTING_CAPTURE_RANGE,
                                                 SETTING_DELAY, SETTING_DURATION};
    const struct run_options *own = o->own;
    if (!o->path_count)
        return usage_error("run: name a program; try 'gpuprof help run'");
    for (unsigned i = 0; i < sizeof windows / sizeof windows[0]; i++)
        if (o->settings[SETTING_FLIGHT] && o->settings[windows[i]])
            return usage_error("run: --flight and --%s cannot be combined; leave out one of them",
                               setting_infos[windows[i]].option);
    if (own->on_cycle && own->exec)
        return usage_error("run: --exec and --on-cycle cannot be combined: with --exec no launcher "
                           "remains to start the command");
    return EXIT_OK;
}

/* ---- the data folder ------------------------------------------------------------------------ */

/* Whether the file is from another rank of this job, which may have started just before. */
static bool is_peer(const struct launch *l, char *path)
{
    struct stat st;
    (void)l;
    return *environment_rank() && stat(path, &st) == 0 &&
           st.st_mtim.tv_sec + LAUNCH_PEERS_SECONDS >= time(NULL);
}

static bool is_earlier(const struct launch *l, char *path)
{
    return l->earlier.count &&
           bsearch(&path, l->earlier.paths, l->earlier.count, sizeof(char *), compare_texts);
}

/* Lists the files in the data folder, except those that are to be left out. */
static void list_files(const struct launch *l, struct path_list *list,
                       bool (*is_out)(const struct launch *l, char *path))
{
    uint32_t count = 0;
    path_list_read(list, l->out);
    for (uint32_t i = 0; i < list->count; i++)
        if (is_out(l, list->paths[i]))
            free(list->paths[i]);
        else
            list->paths[count++] = list->paths[i];
    list->count = count;
}

/* ---- the environment ------------------------------------------------------------------------ */

/* Exports all settings; options win. Paths become absolute: the program may change its folder. */
static enum exit_code export_settings(struct launch *l)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_info *info = &setting_infos[i];
        const char *value = l->values[i] ? l->values[i] : getenv(info->variable);
        char path[SETTING_TEXT_BYTES_MAX + 1];
        enum exit_code code = EXIT_OK;
        if (info->kind == SETTING_KIND_PATH && value && *value) {
            code = environment_absolute(value, path, sizeof path);
            if (i == SETTING_OUT) {
                memcpy(l->out, path, sizeof path);
                l->out_shown = (char *)value;
            }
            value = path;
        } else if (i == SETTING_OUT) {
            code = environment_name_folder(l->argv[0], l->out, sizeof l->out);
            l->out_shown = code ? NULL : strrchr(l->out, '/') + 1;
            value = l->out;
        }
        if (code)
            return code;
        if (value && setenv(info->variable, value, 1) != 0)
            return usage_error("run: %s: %s", info->variable, strerror(errno));
    }
    return EXIT_OK;
}

/* Warns of variables that are not settings, and suggests a similar name. */
static void warn_of_variables(void)
{
    const size_t head = strlen(SETTING_PREFIX);
    for (char **at = environ; *at; at++) {
        if (strncmp(*at, SETTING_PREFIX, head) != 0)
            continue;
        char text[NEAREST_TEXT_BYTES];
        size_t length = strcspn(*at, "=");
        struct nearest nearest = nearest_to(*at + head, length - head);
        for (int i = 0; i < SETTING_COUNT; i++)
            nearest_offer(&nearest, setting_infos[i].variable + head);
        if (nearest.found && nearest.distance)
            message("run: %.*s is not a setting%s", (int)length, *at,
                    nearest_text(&nearest, SETTING_PREFIX, text));
    }
}

/* ---- cycles --------------------------------------------------------------------------------- */

/* Runs in the child process of the command. */
static int run_command(void *context)
{
    const struct launch *l = context;
    const struct cycles *c = &l->cycles;
    char number[24];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    snprintf(number, sizeof number, "%" PRIu64, c->begun);
    environ = c->environment;
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
        setenv("GPUPROF_OUT", l->out, 1) != 0 || setenv("GPUPROF_CYCLE", number, 1) != 0)
        return 127;
    execl("/bin/sh", "sh", "-c", c->command, (char *)NULL);
    return 127;
}

/* Whether a command is running. Otherwise reports a failure of the last one. */
static bool is_busy(struct launch *l)
{
    struct cycles *c = &l->cycles;
    int status = l->child.helper_status;
    if (l->child.helper > 0)
        return true;
    l->child.helper_status = 0;
    if (status == 0 || c->has_failed)
        return false;
    c->has_failed = true;
    message("run: --on-cycle: the command for cycle %" PRIu64
            " ended with %s %d; later failures are not shown",
            c->begun, WIFSIGNALED(status) ? "signal" : "exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

/* The last window that is complete in all processes with steps. */
static uint64_t whole_now(struct cycles *c)
{
    uint64_t whole = UINT64_MAX;
    for (uint32_t i = 0; i < c->folder.count; i++) {
        struct ctl_process *p = &c->folder.processes[i];
        p->has_ended = p->has_ended || live_owner(&p->header) == LIVE_OWNER_ENDED;
        if (p->has_ended || !ctl_process_read(p) ||
            p->status.figures[FIGURE_STEPS] == CONTROL_UNKNOWN)
            continue;
        uint64_t window = p->status.figures[FIGURE_WINDOW];
        window = window == CONTROL_UNKNOWN ? 0 : window;
        whole = window < whole ? window : whole;
    }
    return whole == UINT64_MAX ? 0 : whole;
}

/* Called about once a second while the program runs: starts a command that is due. */
static void begin_cycle(void *context)
{
    struct launch *l = context;
    struct cycles *c = &l->cycles;
    c->folder.path = l->out;
    if (is_busy(l) || access(l->out, F_OK) != 0 || ctl_folder_look(&c->folder) < 0 ||
        !c->folder.count)
        return;
    ctl_folder_watch(&c->folder);
    if (whole_now(c) <= c->begun)
        return;
    c->begun++;
    child_begin_helper(&l->child, run_command, l);
}

/* The number of the last window, from the files of this run. */
static uint64_t last_window(const struct launch *l)
{
    uint64_t last = 0;
    struct reader reader;
    struct process process;
    reader_init(&reader);
    reader.keep_live = true;
    for (uint32_t i = 0; i < l->now.count; i++)
        if (process_load(&process, &reader, l->now.paths[i], 0, NULL, NULL) == 0) {
            uint64_t number = rank_number(process_meta(&process, WINDOWS_META));
            last = number != RANK_NONE && number > last ? number : last;
            process_release(&process, &reader);
        }
    reader_release(&reader);
    return last < WINDOWS_MAX ? last : 0;
}

/* After the program: runs the commands that are still due, one after another. */
static void end_cycles(struct launch *l)
{
    struct cycles *c = &l->cycles;
    if (!c->command)
        return;
    child_await_helper(&l->child);
    uint64_t last = last_window(l);
    while (!is_busy(l) && c->begun < last) {
        c->begun++;
        if (!child_begin_helper(&l->child, run_command, l) || !child_await_helper(&l->child))
            break; /* interrupted */
    }
    ctl_folder_release(&c->folder);
}

/* ---- after the program ----------------------------------------------------------------------- */

/* Stores events that a killed process left in memory, before the machine or container goes away. */
static int work_adopt(void *context)
{
    const struct launch *l = context;
    for (uint32_t i = 0; i < l->now.count; i++) {
        int error = live_adopt(l->now.paths[i]);
        if (error < 0)
            message("%s: cannot store its last events: %s", l->now.paths[i],
                    error == GPUPROF_IO ? strerror(errno) : gpuprof_error_text(error));
    }
    return 0;
}

static int work_summary(void *context)
{
    const struct launch *l = context;
    return report_summary(l->now.paths, (int)l->now.count, LAUNCH_WALK_NS, &l->next, stderr);
}

/* Whether this launcher prints: of a job, only the first rank does. */
static bool speaks(void)
{
    return !*environment_rank() || strcmp(environment_rank(), "0") == 0;
}

static void launch_report(struct launch *l)
{
    struct child *c = &l->child;
    list_files(l, &l->now, is_earlier);
    next_words_init(&l->next, l->command, &l->out_shown, 1); /* never freed */
    for (char **word = l->argv; *word && next_words_add_argument(&l->next, *word); word++)
        ;
    const char *word = l->next.data ? l->next.data : "DATA";
    if (child_aside(c, work_adopt, l, LAUNCH_ADOPT_SECONDS) < 0)
        message("data of ended processes is still in memory; store it with: %s report %s",
                l->command, word);
    end_cycles(l);
    if (l->quiet || !speaks())
        return;
    if (!l->now.count) {
        char *next = next_line(&l->next, "gpuprof doctor PROGRAM");
        message("nothing was recorded: unless a line above says why, '%s' made no CUDA call, or "
                "gpuprof was not loaded in it; find out with: %s",
                l->argv[0], next);
        free(next);
        return;
    }
    if (child_aside(c, work_summary, l, LAUNCH_SUMMARY_SECONDS) < 0)
        message("the summary was cut short; for all of it: %s report %s", l->command, word);
    message("data in %s", l->out_shown);
    message("next: %s report %s; %s merge %s -o trace.json", l->command, word, l->command, word);
}

/* Copies the environment before it is changed, for unrecorded processes beside the program. */
static char **environment_now(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **copy = memory_new(count + 1, sizeof *copy);
    return memcpy(copy, environ, count * sizeof *copy);
}

static enum exit_code launch_prepare(struct launch *l)
{
    char reason[ENVIRONMENT_REASON_BYTES];
    int error = program_find(&l->program, l->argv[0]);
    if (error == ENOENT && !strchr(l->argv[0], '/'))
        return usage_error("run: %s: not found in PATH; give the program's path",
                           *l->argv[0] ? l->argv[0] : "''");
    if (error)
        return usage_error("run: %s: %s%s", l->argv[0], strerror(error),
                           error == EACCES ? "; name a file that you may execute" : "");
    enum exit_code code = export_settings(l);
    if (code == EXIT_OK)
        code = environment_check_folder(l->out, l->out_shown);
    if (code == EXIT_OK && !environment_prepare(&l->program, reason))
        code = usage_error("run: %s", reason);
    if (code == EXIT_OK)
        warn_of_variables();
    if (code == EXIT_OK && l->program.obstacle)
        message("%s: %s; nothing can be recorded", l->argv[0], l->program.obstacle);
    return code;
}

static enum exit_code run(const struct options *options)
{
    const struct run_options *own = options->own;
    struct launch l = {.command = options->command,
                       .values = options->settings,
                       .quiet = own->quiet,
                       .argv = options->paths,
                       .cycles = {.command = own->on_cycle}};
    enum exit_code code = check_options(options);
    if (code != EXIT_OK)
        return code;
    if (own->on_cycle)
        l.cycles.environment = environment_now();
    code = launch_prepare(&l);
    if (code)
        return code;
    l.child.tick = l.cycles.command ? begin_cycle : NULL;
    l.child.context = &l;
    list_files(&l, &l.earlier, is_peer);
    if (l.earlier.count && speaks()) /* with --quiet, too, since diff would take them for one run */
        message("run: %s has recordings of earlier runs: %u; report and merge will include them; "
                "use -o to name another folder",
                l.out_shown, l.earlier.count);
    int error = 0;
    if (own->exec) {
        execvp(l.program.path, l.argv);
        error = errno;
    } else {
        error = child_start(&l.child, l.program.path, l.argv);
    }
    if (error)
        return usage_error("run: %s: %s", l.argv[0], strerror(error));
    int status = child_wait(&l.child);
    launch_report(&l);
    child_end_like(status);
}

static const struct option own_options[] = {
    {OPTIONS_OF(program_options, 0)},
    {0, "quiet", NULL, OPTION_FLAG(struct run_options, quiet),
     "Print neither the summary nor the name of the data folder at the end", .in = HELP_OUTPUT},
    {0, "exec", NULL, OPTION_FLAG(struct run_options, exec),
     "Replace the launcher by the program; there is no summary, and nothing waits for the program",
     .in = HELP_OUTPUT | HELP_MORE},
    {0, "on-cycle", "COMMAND", OPTION_TEXT(struct run_options, on_cycle),
     "Run this shell command after each window of --schedule or --capture-range is stored. "
     "GPUPROF_CYCLE has the window's number, GPUPROF_OUT the data folder.",
     .in = HELP_WHEN | HELP_MORE},
    {0},
};

VERB_IS(run, run, own_options, VERB_OWN(struct run_options, 0), TAKES_PROGRAM | LISTS_SETTINGS,
        "[--] PROGRAM [ARGUMENTS]", "run a program and record it",
        {PART_EXAMPLE, "gpuprof run python train.py",
         "record a program into a new folder; its name is printed at the end"},
        {PART_EXAMPLE, "gpuprof run -o data --pytorch=shapes --schedule=10-20 torchrun train.py",
         "record steps 10 to 20 of all ranks into one folder, with PyTorch's operators"},
        {PART_EXAMPLE, "gpuprof run --overhead-max=2% -- ./solver --steps 100",
         "record less if gpuprof costs more than 2 % of a thread's time"},
        {PART_VARIABLE, "GPUPROF_...", "the settings; an option wins"},
        {PART_VARIABLE, "RANK, LOCAL_RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK ...",
         "the rank of the process; MASTER_ADDR, SLURM_JOB_ID, PMIX_NAMESPACE ...: its job"},
        {PART_VARIABLE, "LD_PRELOAD, NVTX_INJECTION64_PATH, CUDA_INJECTION64_PATH",
         "set for the program; libraries that they already name stay"},
        {PART_VARIABLE, "PATH", "the folders in which to look for the program"},
        {PART_VARIABLE, "CUDA_HOME", "a toolkit in which to look for libcupti, too"},
        {PART_VARIABLE, "NO_COLOR, TERM", "no colours if NO_COLOR is set, or if TERM is dumb"},
        {PART_FILE, "gpuprof.PROGRAM.TIME/", "the data folder, unless -o or GPUPROF_OUT names one"},
        {PART_FILE, "/dev/shm/gpuprof-ID.live",
         "events of a running process that are not stored yet; --live names another folder"},
        {PART_STATUS, "the program's own",
         "a signal that ended the program also ends gpuprof; 2 if no program was started"});
