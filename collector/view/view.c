/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `view`: makes a page and a trace of recordings and serves them to a browser on this
 * machine (127.0.0.1), until the terminal or the parent ends it. The results are unnamed files,
 * which vanish with the process however it ends.
 * Each connection has one GET or HEAD, in a process of its own; a body is not read. Resources are
 * found by name after a secret that begins every path, so requests never name files. The Host
 * header must have our address; otherwise a foreign page could let its own name resolve to it.
 * Memory: CONNECTIONS_MAX requests; the kernel reads the files it sends.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

#define REQUEST_BYTES 8192 /* of a request with its headers */
#define WAIT_SECONDS  10   /* for a request, and for the other side to close */
#define IDLE_SECONDS  60   /* for a reader that takes nothing */
#define REST_MS       200  /* pause after a failed accept */

#define CONNECTIONS_MAX 32
#define SECRET_BYTES    33 /* 128 random bits as text */

enum { OK = 200, BAD = 400, NOT_ALLOWED = 405, TOO_LARGE = 431 };

struct resource {
    const char *name; /* path after the secret; "" is the first page */
    const char *type;
    const char *policy; /* Content-Security-Policy */
    int fd;             /* of a regular file */
};

struct server {
    const struct resource *resources; /* a view; ended by one without a name */
    int fd;
    unsigned port;
    char secret[SECRET_BYTES];
    char once[SECRET_BYTES];         /* opens the first page once */
    bool *is_opened;                 /* owned, shared with the children: `once` is used up */
    pid_t children[CONNECTIONS_MAX]; /* of the connections, in turn; 0 or less: none */
    unsigned next;                   /* the oldest of them */
};

/* Compares in constant time, so that the time does not reveal matching characters. */
static bool secret_is(const char *secret, const char *text)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < SECRET_BYTES - 1; i++)
        differs |= (unsigned char)(secret[i] ^ text[i]);
    return differs == 0;
}

/* Listens on that port; 0: any free one. Returns 0 or GPUPROF_IO (errno). */
static int listen_on(struct server *s, unsigned port, const struct resource *resources)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    uint64_t bits[4];
    int yes = 1;
    *s = (struct server){.resources = resources, .fd = -1};
    s->is_opened =
        mmap(NULL, sizeof *s->is_opened, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* A port can be reused at once, but not shared with another listener. */
    if (s->is_opened == MAP_FAILED || s->fd < 0 ||
        setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(s->fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(s->fd, CONNECTIONS_MAX) < 0 ||
        getsockname(s->fd, (struct sockaddr *)&address, &length) < 0 ||
        getrandom(bits, sizeof bits, 0) != sizeof bits)
        return GPUPROF_IO;
    s->port = ntohs(address.sin_port);
    snprintf(s->secret, SECRET_BYTES, "%016" PRIx64 "%016" PRIx64, bits[0], bits[1]);
    snprintf(s->once, SECRET_BYTES, "%016" PRIx64 "%016" PRIx64, bits[2], bits[3]);
    return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct request {
    const char *target; /* begins with a slash; a view, like the next */
    const char *host;   /* NULL: no Host header */
    bool is_head;
};

/* Returns the line at *at without CR LF and moves *at behind it. NULL: it has a control character
 * other than tab. */
static char *take_line(char **at)
{
    char *line = *at, *end = line;
    while ((unsigned char)*end >= ' ' ? *end != 0x7f : *end == '\t')
        end++;
    if (end[0] != '\r' || end[1] != '\n')
        return NULL;
    *end = '\0';
    *at = end + 2;
    return line;
}

/* Parses `length` bytes, which it modifies. Returns the answer's status; 0: incomplete. */
static int read_request(struct request *r, char *text, size_t length)
{
    *r = (struct request){0};
    if (!memmem(text, length, "\r\n\r\n", 4))
        return length == REQUEST_BYTES ? TOO_LARGE : 0;
    char *method = take_line(&text), *line;
    char *target = method ? strchr(method, ' ') : NULL;
    char *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version)
        return BAD;
    *target++ = *version++ = '\0';
    r->target = target;
    r->is_head = strcmp(method, "HEAD") == 0;
    while ((line = take_line(&text)) && *line) {
        if (strncasecmp(line, "Host:", 5) != 0)
            continue;
        if (r->host)
            return BAD;
        r->host = line + 5 + strspn(line + 5, " \t");
    }
    if (!line || *target != '/' ||
        (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0))
        return BAD;
    if (!r->is_head && strcmp(method, "GET") != 0)
        return NOT_ALLOWED;
    return r->host ? OK : BAD;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool is_ours(const struct server *s, const char *host)
{
    char text[2][32];
    snprintf(text[0], sizeof text[0], "127.0.0.1:%u", s->port);
    snprintf(text[1], sizeof text[1], "localhost:%u", s->port);
    return strcmp(host, text[0]) == 0 || strcmp(host, text[1]) == 0;
}

/* Returns the status, and sets *found if it is OK. */
static int look_up(const struct server *s, const struct request *r, const struct resource **found)
{
    const char *name = r->target + 1;
    size_t length = strlen(name), secret_bytes = SECRET_BYTES - 1;
    if (!is_ours(s, r->host))
        return 403;
    if (length < secret_bytes)
        return 404;
    if (length == secret_bytes && !r->is_head && secret_is(s->once, name))
        return __atomic_exchange_n(s->is_opened, true, __ATOMIC_RELAXED) ? 404 : 303;
    if (!secret_is(s->secret, name) || name[secret_bytes] != '/')
        return 404;
    for (const struct resource *at = s->resources; at->name; at++)
        if (strcmp(name + secret_bytes + 1, at->name) == 0) {
            *found = at;
            return OK;
        }
    return 404;
}

/* Answers a complete request, with the file as body unless it is for the head only. */
static void answer(const struct server *s, int fd, const struct request *r, int status)
{
    const struct resource *found = NULL;
    struct stat st = {.st_size = 0};
    char head[1024], location[SECRET_BYTES + 32] = "";
    if (status == OK)
        status = look_up(s, r, &found);
    if (found && fstat(found->fd, &st) < 0)
        return;
    if (status == 303)
        snprintf(location, sizeof location, "Location: /%s/\r\n", s->secret);
    int bytes = snprintf(head, sizeof head,
                         "HTTP/1.1 %d \r\nContent-Length: %llu\r\nContent-Type: %s\r\n%s%s"
                         "Content-Security-Policy: %s\r\nX-Content-Type-Options: nosniff\r\n"
                         "Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n"
                         "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n"
                         "Connection: close\r\n\r\n",
                         status, (unsigned long long)st.st_size, found ? found->type : "text/plain",
                         status == NOT_ALLOWED ? "Allow: GET, HEAD\r\n" : "", location,
                         found ? found->policy : "default-src 'none'");
    bool has_body = found && !r->is_head;
    off_t sent = 0;
    if (send(fd, head, (size_t)bytes, MSG_NOSIGNAL | (has_body ? MSG_MORE : 0)) == bytes)
        while (has_body && sent < st.st_size &&
               sendfile(fd, found->fd, &sent, (size_t)(st.st_size - sent)) > 0)
            continue;
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Serves a connection, in its process, which a timer or the kernel's timeout ends. */
static void serve_connection(const struct server *s, int fd)
{
    const struct timeval idle = {.tv_sec = IDLE_SECONDS};
    char text[REQUEST_BYTES + 1];
    size_t used = 0;
    struct request r;
    int status = 0;
    alarm(WAIT_SECONDS);
    while (status == 0) {
        ssize_t bytes = recv(fd, text + used, REQUEST_BYTES - used, 0);
        if (bytes <= 0)
            return;
        used += (size_t)bytes;
        text[used] = '\0';
        status = read_request(&r, text, used);
    }
    alarm(0);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &idle, sizeof idle);
    answer(s, fd, &r, status);
    /* A reset would lose the answer: the other side closes first. */
    alarm(WAIT_SECONDS);
    shutdown(fd, SHUT_WR);
    while (recv(fd, text, REQUEST_BYTES, 0) > 0)
        continue;
}

/* Accepts a connection; if there are too many, the oldest one ends. */
static void accept_one(struct server *s)
{
    pid_t *child = &s->children[s->next], parent = getpid();
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) { /* without room for it, poll would return at once */
        poll(NULL, 0, errno == EAGAIN || errno == EINTR ? 0 : REST_MS);
        return;
    }
    if (*child > 0) {
        kill(*child, SIGKILL);
        waitpid(*child, NULL, 0);
    }
    s->next = (s->next + 1) % CONNECTIONS_MAX;
    *child = fork();
    if (*child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(s->fd);
        if (getppid() == parent)
            serve_connection(s, fd);
        _exit(0);
    }
    close(fd);
}

/* Serves until `stop_fd` is readable or `hangup_fd` (-1: none) hangs up. Returns 0 or
 * GPUPROF_IO. */
static int serve_until(struct server *s, int stop_fd, int hangup_fd)
{
    for (;;) {
        struct pollfd polled[] = {
            {.fd = s->fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}, {.fd = hangup_fd}};
        if (poll(polled, 3, -1) < 0 && errno != EINTR)
            return GPUPROF_IO;
        if (polled[1].revents || polled[2].revents)
            return 0;
        for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
            if (s->children[i] > 0 && waitpid(s->children[i], NULL, WNOHANG) != 0)
                s->children[i] = 0;
        if (polled[0].revents)
            accept_one(s);
    }
}

/* ---- the verb ---- */

#define NAME_MARK "@NAME@"
#define PORT_MAX  65535
#define POLICY(sources)                                                                            \
    "default-src 'none'; " sources " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
#define OWN_POLICY POLICY("style-src 'self'; script-src 'self'; connect-src 'self';")

/* For the page, which contains its style and script, and in its own policy their hashes: both
 * policies must allow something. */
#define PAGE_POLICY POLICY("style-src 'unsafe-inline'; script-src 'unsafe-inline';")

/* The assembler embeds the files. Link-time optimisation cannot see that, so the Makefile compiles
 * this file without it. */
#define EMBED(symbol, file)                                                                        \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"collector/view/" file                   \
            "\"\n.byte 0\n.popsection\n");                                                         \
    extern const char symbol[]

EMBED(view_index, "index.html");
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
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
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
    return dprintf(fd, "%s", text) < 0 ? -1 : fd;
}

/* ---- until it ends --------------------------------------------------------------------------- */

/* The address for the browser works only once: other users can read a process's arguments. */
static void open_browser(const struct server *s)
{
    char address[96];
    snprintf(address, sizeof address, "http://127.0.0.1:%u/%s", s->port, s->once);
    if (fork() != 0)
        return;
    int null = open("/dev/null", O_RDWR);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    setsid();
    execlp("xdg-open", "xdg-open", address, (char *)NULL);
    _exit(127);
}

static enum exit_code serve(const struct options *options, const struct resource *resources,
                            int stop_fd)
{
    const struct view_options *own = options->own;
    char host[256] = "HOST";
    struct server s;
    int error = listen_on(&s, (unsigned)own->port, resources);
    if (error == 0) {
        *s.is_opened = !own->open;
        gethostname(host, sizeof host - 1);
        printf("http://127.0.0.1:%u/%s/\n", s.port, s.secret);
        fflush(stdout);
        message("view: open this address in a browser; Ctrl-C ends it; from another machine, first "
                "run: ssh -L %u:127.0.0.1:%u %s",
                s.port, s.port, host);
        if (own->open)
            open_browser(&s);
        /* Input that has already hung up cannot signal the end. */
        struct pollfd input = {.fd = STDIN_FILENO};
        error = serve_until(&s, stop_fd, poll(&input, 1, 0) == 0 ? STDIN_FILENO : -1);
    }
    if (error < 0)
        message("view: cannot listen on 127.0.0.1:%u: %s%s", (unsigned)own->port, strerror(errno),
                errno == EADDRINUSE ? "; name another --port, or leave it out" : "");
    close(s.fd);
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
    struct resource resources[] = {
        {"", "text/html; charset=utf-8", OWN_POLICY, view_fill(view_index, name)},
        {"perfetto.js", "text/javascript; charset=utf-8", OWN_POLICY, view_fill(view_script, "")},
        {"view.css", "text/css; charset=utf-8", OWN_POLICY, view_fill(view_style, "")},
        {"page.html", "text/html; charset=utf-8", PAGE_POLICY, page},
        {"trace.json", "application/json", OWN_POLICY, trace},
        {.name = NULL},
    };
    int stop_fd = stop_signals();
    bool is_whole = stop_fd >= 0;
    for (const struct resource *r = resources; r->name; r++)
        is_whole &= r->fd >= 0;
    enum exit_code code = is_whole ? serve(options, resources, stop_fd) : EXIT_ENVIRONMENT;
    if (!is_whole)
        message("view: %s", strerror(errno));
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
    enum exit_code made, code = EXIT_OK;
    if (trace < 0)
        file_unnamed_failed();
    if (is_made(made = run_verb_into(page, &report_verb, &of_page, options)))
        made = run_verb_into(trace, &merge_verb, merge_verb.usual, options);
    if (is_made(made))
        code = serve_all(options, page, trace);
    return code != EXIT_OK ? code : made;
}

static const struct option own_options[] = {
    {0, "port", "N", OPTION_NUMBER(struct view_options, port, PORT_MAX, "is not a port number"),
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
