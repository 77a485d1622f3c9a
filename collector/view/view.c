/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `view`: makes a page and a trace of recordings and serves them to a browser on this
 * machine (http_server.h), until the terminal or the parent ends it. The results are unnamed files,
 * which vanish with the process however it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/json_text.h"
#include "base/message.h"
#include "base/options.h"
#include "error.h"
#include "page/page.h"
#include "report/report.h"
#include "trace/merge_trace.h"
#include "view/http_server.h"

#define NAME_MARK "@NAME@"
#define PORT_MAX  65535
#define POLICY                                                                                     \
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "                \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* For the page, which contains its style and script, and in its own policy their hashes: both
 * policies must allow something. */
#define PAGE_POLICY                                                                                \
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "                  \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* The assembler embeds the files. Link-time optimisation cannot see that, so the Makefile compiles
 * this file without it. */
#define EMBED(symbol, file)                                                                        \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"collector/view/" file                   \
            "\"\n.byte 0\n.popsection\n");                                                         \
    extern const char symbol[]

EMBED(view_index, "index.html");
EMBED(view_perfetto, "perfetto.html");
EMBED(view_script, "perfetto.js");
EMBED(view_style, "view.css");

/* The options that only `view` has. */
struct view_options {
    uint64_t port; /* 0: any */
    bool open;
};

/* ---- what is served -------------------------------------------------------------------------- */

/* Runs the verb in a child with the file as standard output, which also frees its memory. Returns
 * its exit code. */
static enum exit_code run_verb_into(int fd, const struct verb *verb, const void *its_own,
                                    const struct options *options)
{
    struct options of_verb = *options;
    int status;
    of_verb.output = "-";
    of_verb.own = its_own;
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || dup2(fd, STDOUT_FILENO) < 0)
            _exit(EXIT_ENVIRONMENT);
        exit(verb->run(&of_verb));
    }
    if (child < 0) {
        message("view: fork: %s", strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_ENVIRONMENT;
    if (WIFEXITED(status))
        return (enum exit_code)WEXITSTATUS(status);
    message("view: signal %d ended the process that read the recording", WTERMSIG(status));
    return EXIT_ENVIRONMENT;
}

/* Returns a memory file with the text, its marks replaced by the name. -1: errno. */
static int view_fill(const char *text, const char *name)
{
    int fd = memfd_create("gpuprof view", MFD_CLOEXEC);
    for (const char *mark; (mark = strstr(text, NAME_MARK)); text = mark + strlen(NAME_MARK))
        dprintf(fd, "%.*s%s", (int)(mark - text), text, name);
    if (fd >= 0 && dprintf(fd, "%s", text) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- until it ends --------------------------------------------------------------------------- */

/* The address for the browser works only once: other users can read a process's arguments. */
static void open_browser(const struct http_server *s)
{
    char address[96];
    snprintf(address, sizeof address, "http://127.0.0.1:%u/%s", s->port, s->once);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        for (int fd = 0; fd < 3; fd++)
            dup2(null, fd);
        setsid();
        if (fork() == 0) {
            execlp("xdg-open", "xdg-open", address, (char *)NULL);
            _exit(127);
        }
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* -1: already hung up, so it cannot signal the end. */
static int watched_input(void)
{
    struct pollfd input = {.fd = STDIN_FILENO};
    return poll(&input, 1, 0) == 0 ? STDIN_FILENO : -1;
}

static void say_address(const struct http_server *s)
{
    char host[256] = "HOST";
    gethostname(host, sizeof host - 1);
    printf("http://127.0.0.1:%u/%s/\n", s->port, s->secret);
    fflush(stdout);
    message("view: open this address in a browser; Ctrl-C ends it; from another machine, first "
            "run: ssh -L %u:127.0.0.1:%u %s",
            s->port, s->port, host);
}

static enum exit_code serve(const struct options *options, const struct http_resource *resources,
                            int stop_fd)
{
    const struct view_options *own = options->own;
    struct http_server s;
    int error = http_server_init(&s, (unsigned)own->port, resources);
    if (error == 0) {
        *s.is_opened = !own->open;
        say_address(&s);
        if (own->open)
            open_browser(&s);
        error = http_server_run(&s, stop_fd, watched_input());
    }
    if (error < 0)
        message("view: cannot listen on 127.0.0.1:%u: %s%s", (unsigned)own->port, strerror(errno),
                errno == EADDRINUSE ? "; name another --port, or leave it out" : "");
    http_server_release(&s);
    return error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
}

static int stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN); /* for browsers that disconnect during an answer */
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static enum exit_code serve_all(const struct options *options, int page, int trace)
{
    char *name = xml_string(options->paths[0]);
    const char *escaped = name ? name : "?";
    struct http_resource resources[] = {
        {"", "text/html; charset=utf-8", POLICY, NULL, view_fill(view_index, escaped)},
        {"perfetto.html", "text/html; charset=utf-8", POLICY, NULL,
         view_fill(view_perfetto, escaped)},
        {"perfetto.js", "text/javascript; charset=utf-8", POLICY, NULL, view_fill(view_script, "")},
        {"view.css", "text/css; charset=utf-8", POLICY, NULL, view_fill(view_style, "")},
        {"page.html", "text/html; charset=utf-8", PAGE_POLICY, NULL, page},
        {"trace.json", "application/json", POLICY, "gpuprof-trace.json", trace},
        {.name = NULL},
    };
    int stop_fd = stop_signals();
    bool is_whole = stop_fd >= 0;
    for (const struct http_resource *r = resources; r->name; r++)
        is_whole &= r->fd >= 0;
    enum exit_code code = is_whole ? serve(options, resources, stop_fd) : EXIT_ENVIRONMENT;
    if (!is_whole)
        message("view: %s", strerror(errno));
    for (const struct http_resource *r = resources; r->name; r++)
        close(r->fd);
    close(stop_fd);
    free(name);
    return code;
}

/* Damaged recordings are shown as far as possible. */
static bool is_made(enum exit_code code)
{
    return code == EXIT_OK || code == EXIT_DAMAGED;
}

static enum exit_code view_run(const struct options *options)
{
    static const struct report_options of_page = {
        .table = {.format = FORMAT_HTML, .limit = ROWS_UNLIMITED}};
    int page = file_unnamed(), trace = page < 0 ? -1 : file_unnamed();
    enum exit_code made = EXIT_ENVIRONMENT, code = EXIT_OK;
    if (trace < 0)
        message("view: cannot create a file for the trace in %s: %s%s", file_unnamed_folder(),
                strerror(errno), aside_advice(errno));
    else if (is_made(made = run_verb_into(page, &report_verb, &of_page, options)))
        made = run_verb_into(trace, &merge_verb, merge_verb.usual, options);
    if (is_made(made))
        code = serve_all(options, page, trace);
    return code != EXIT_OK ? code : made;
}

static const struct option own_options[] = {
    {0, "port", "N", OPTION_NUMBER(struct view_options, port, 0, PORT_MAX, "is not a port number"),
     "Serve on this port of 127.0.0.1; default: a free one"},
    {0, "open", NULL, OPTION_FLAG(struct view_options, open), "Start the browser with xdg-open"},
    {OPTIONS_OF(read_options, READ_PIECE | READ_CLOCK | READ_STEPS | READ_SYMBOLS | READ_STRICT |
                                  READ_KEEP_LIVE)},
    {0},
};

VERB_IS(view, view_run, own_options, VERB_OWN(struct view_options, 0), TAKES_RECORDINGS,
        "DIR|FILE...", "show the report and the trace in a browser",
        {PART_EXAMPLE, "gpuprof view data", "print an address to open; Ctrl-C ends it"},
        {PART_EXAMPLE, "gpuprof view --port=8080 data",
         "serve on a remote machine, reached by ssh -L 8080:127.0.0.1:8080 HOST"},
        {PART_VARIABLE, "TMPDIR", "a folder for the trace, an unnamed file"});
