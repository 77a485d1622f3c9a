/* SPDX-License-Identifier: Apache-2.0 */
#include "view/view.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/json_text.h"
#include "base/message.h"
#include "base/options.h"
#include "error.h"
#include "view/http_server.h"

#define NAME_MARK "@NAME@"
#define POLICY                                                                                     \
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "                \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* Of the page, which has its style and its script in it, and in its own policy their hashes: what
 * both policies let through goes. */
#define PAGE_POLICY                                                                                \
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "                  \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

enum resource { INDEX, PERFETTO, SCRIPT, STYLE, PAGE, TRACE, RESOURCES };

/* ---- what is served -------------------------------------------------------------------------- */

typedef enum exit_code verb_fn(const struct options *options);

/*
 * Has another process run the verb, with the file as its standard output: what it takes of memory
 * goes with it. Its exit code.
 */
static enum exit_code run_verb_into(int fd, verb_fn *verb, const struct options *options)
{
    struct options own = *options;
    int status;
    own.output = "-";
    own.format = FORMAT_HTML;
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || dup2(fd, STDOUT_FILENO) < 0)
            _exit(EXIT_ENVIRONMENT);
        exit(verb(&own));
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
    message("view: the process that read the recording was ended by signal %d", WTERMSIG(status));
    return EXIT_ENVIRONMENT;
}

/* The page with the name in place of each mark, in new memory, or NULL. */
static char *fill(const char *page, const char *name)
{
    char *text = NULL, *escaped = xml_string(name);
    size_t bytes;
    FILE *out = escaped ? open_memstream(&text, &bytes) : NULL;
    if (!out) {
        free(escaped);
        return NULL;
    }
    for (const char *mark; (mark = strstr(page, NAME_MARK)); page = mark + strlen(NAME_MARK)) {
        fwrite(page, 1, (size_t)(mark - page), out);
        fputs(escaped, out);
    }
    fputs(page, out);
    free(escaped);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static struct http_resource text_resource(const char *name, const char *type, const char *text)
{
    return (struct http_resource){.name = name,
                                  .type = type,
                                  .policy = POLICY,
                                  .text = text ? text : "",
                                  .fd = -1,
                                  .bytes = text ? strlen(text) : 0};
}

/* ---- until it ends --------------------------------------------------------------------------- */

/* The browser gets an address that works once: others can read the arguments of a process. */
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

/* -1: it is hung up already, so that says nothing. */
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
    message("view: open this address in a browser; Ctrl-C ends it. From another machine, first: "
            "ssh -L %u:127.0.0.1:%u %s",
            s->port, s->port, host);
}

static enum exit_code serve(const struct options *options, const struct http_resource *resources,
                            int stop_fd)
{
    struct http_server *s = calloc(1, sizeof *s);
    if (!s)
        return say_error("view", GPUPROF_NO_MEMORY);
    int error = http_server_init(s, options->port, resources);
    if (error == 0) {
        if (!options->open)
            s->once[0] = '\0';
        say_address(s);
        if (options->open)
            open_browser(s);
        error = http_server_run(s, stop_fd, watched_input());
    }
    if (error < 0)
        message("view: 127.0.0.1:%u: %s%s", options->port, strerror(errno),
                errno == EADDRINUSE ? "; name another --port, or none" : "");
    http_server_release(s);
    free(s);
    return error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
}

static int stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN); /* a browser that goes away while it is sent something */
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static enum exit_code serve_all(const struct options *options, int page, int trace,
                                const char *name)
{
    struct stat of_page, of_trace;
    char *index = fill(view_index, name);
    char *perfetto = fill(view_perfetto, name);
    struct http_resource resources[RESOURCES + 1] = {
        [INDEX] = text_resource("", "text/html; charset=utf-8", index),
        [PERFETTO] = text_resource("perfetto.html", "text/html; charset=utf-8", perfetto),
        [SCRIPT] = text_resource("perfetto.js", "text/javascript; charset=utf-8", view_script),
        [STYLE] = text_resource("view.css", "text/css; charset=utf-8", view_style),
        [PAGE] = {.name = "page.html",
                  .type = "text/html; charset=utf-8",
                  .policy = PAGE_POLICY,
                  .fd = page},
        [TRACE] = {.name = "trace.json",
                   .type = "application/json",
                   .policy = POLICY,
                   .download = "gpuprof-trace.json",
                   .fd = trace},
    };
    enum exit_code code = EXIT_ENVIRONMENT;
    int stop_fd = stop_signals();
    if (!index || !perfetto) {
        say_error("view", GPUPROF_NO_MEMORY);
    } else if (fstat(page, &of_page) < 0 || fstat(trace, &of_trace) < 0 || stop_fd < 0) {
        message("view: %s", strerror(errno));
    } else {
        resources[PAGE].bytes = (uint64_t)of_page.st_size;
        resources[TRACE].bytes = (uint64_t)of_trace.st_size;
        code = serve(options, resources, stop_fd);
    }
    if (stop_fd >= 0)
        close(stop_fd);
    free(index);
    free(perfetto);
    return code;
}

/* What is damaged is shown as far as it goes. */
static bool is_made(enum exit_code code)
{
    return code == EXIT_OK || code == EXIT_DAMAGED;
}

enum exit_code view_verb(const struct options *options)
{
    int page = file_unnamed(), trace = page < 0 ? -1 : file_unnamed();
    enum exit_code made = EXIT_ENVIRONMENT, code = EXIT_ENVIRONMENT;
    if (trace < 0)
        message("view: no file for the trace can be made in %s: %s%s", file_unnamed_folder(),
                strerror(errno), aside_advice(errno));
    else if (is_made(made = run_verb_into(page, page_verb, options)))
        made = run_verb_into(trace, merge_verb, options);
    if (trace >= 0 && is_made(made)) {
        char *name = json_line(options->paths[0]);
        code = name ? serve_all(options, page, trace, name) : EXIT_ENVIRONMENT;
        free(name);
    }
    if (page >= 0)
        close(page);
    if (trace >= 0)
        close(trace);
    return is_made(made) && code != EXIT_OK ? code : made;
}
