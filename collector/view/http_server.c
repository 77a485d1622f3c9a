/* SPDX-License-Identifier: Apache-2.0 */
#include "view/http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"

#define REQUEST_BYTES 8192 /* of a request with its headers */
#define WAIT_SECONDS  10   /* for a request, and for the other side to close */
#define IDLE_SECONDS  60   /* for a reader that takes nothing */
#define REST_MS       200  /* pause after a failed accept */

enum { OK = 200, BAD = 400, NOT_ALLOWED = 405, TOO_LARGE = 431 };

static int secret_make(char *text)
{
    unsigned char bytes[(HTTP_SECRET_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return GPUPROF_IO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* Compares in constant time, so that the time does not reveal matching characters. */
static bool secret_is(const char *secret, const char *text)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < HTTP_SECRET_BYTES - 1; i++)
        differs |= (unsigned char)(secret[i] ^ text[i]);
    return differs == 0;
}

int http_server_init(struct http_server *s, unsigned port, const struct http_resource *resources)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int yes = 1;
    *s = (struct http_server){.resources = resources, .fd = -1};
    s->is_opened =
        mmap(NULL, sizeof *s->is_opened, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* A port can be reused at once, but not shared with another listener. */
    if (s->is_opened == MAP_FAILED || s->fd < 0 ||
        setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(s->fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(s->fd, HTTP_CONNECTIONS_MAX) < 0 ||
        getsockname(s->fd, (struct sockaddr *)&address, &length) < 0)
        return GPUPROF_IO;
    s->port = ntohs(address.sin_port);
    return secret_make(s->secret) < 0 ? GPUPROF_IO : secret_make(s->once);
}

void http_server_release(struct http_server *s)
{
    for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++)
        if (s->children[i])
            kill(s->children[i], SIGKILL);
    if (s->is_opened != MAP_FAILED)
        munmap(s->is_opened, sizeof *s->is_opened);
    if (s->fd >= 0)
        close(s->fd);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct request {
    const char *target; /* begins with a slash; a view, like the next */
    const char *host;   /* NULL: no Host header */
    bool is_head;
};

/* Returns the line at *at without CR LF and moves *at behind it. NULL: it has a control character
 * other than tab. */
static char *http_server_take_line(char **at)
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

static int read_first_line(struct request *r, char *method)
{
    char *target = strchr(method, ' ');
    char *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version)
        return BAD;
    *target++ = *version++ = '\0';
    if (*target != '/' || (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0))
        return BAD;
    r->target = target;
    r->is_head = strcmp(method, "HEAD") == 0;
    return r->is_head || strcmp(method, "GET") == 0 ? OK : NOT_ALLOWED;
}

/* Parses `length` bytes, which it modifies. Returns the answer's status; 0: incomplete. */
static int read_request(struct request *r, char *text, size_t length)
{
    char *line;
    *r = (struct request){0};
    if (!memmem(text, length, "\r\n\r\n", 4))
        return length == REQUEST_BYTES ? TOO_LARGE : 0;
    if (!(line = http_server_take_line(&text)))
        return BAD;
    int status = read_first_line(r, line);
    while ((line = http_server_take_line(&text)) && *line) {
        if (strncasecmp(line, "Host:", 5) != 0)
            continue;
        if (r->host)
            return BAD;
        r->host = line + 5 + strspn(line + 5, " \t");
    }
    return !line || (status == OK && !r->host) ? BAD : status;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool http_server_is_ours(const struct http_server *s, const char *host)
{
    char text[2][32];
    snprintf(text[0], sizeof text[0], "127.0.0.1:%u", s->port);
    snprintf(text[1], sizeof text[1], "localhost:%u", s->port);
    return strcmp(host, text[0]) == 0 || strcmp(host, text[1]) == 0;
}

/* Returns the status, and sets *found if it is OK. */
static int http_server_look_up(const struct http_server *s, const struct request *r,
                               const struct http_resource **found)
{
    const char *name = r->target + 1;
    size_t length = strlen(name), secret_bytes = HTTP_SECRET_BYTES - 1;
    if (!http_server_is_ours(s, r->host))
        return 403;
    if (length < secret_bytes)
        return 404;
    if (length == secret_bytes && !r->is_head && secret_is(s->once, name))
        return __atomic_exchange_n(s->is_opened, true, __ATOMIC_RELAXED) ? 404 : 303;
    if (!secret_is(s->secret, name) || name[secret_bytes] != '/')
        return 404;
    for (const struct http_resource *at = s->resources; at->name; at++)
        if (strcmp(name + secret_bytes + 1, at->name) == 0) {
            *found = at;
            return OK;
        }
    return 404;
}

/* Answers a complete request, with the file as body unless it is for the head only. */
static void http_server_answer(const struct http_server *s, int fd, const struct request *r,
                               int status)
{
    const struct http_resource *found = NULL;
    struct stat st = {.st_size = 0};
    char head[1024], location[HTTP_SECRET_BYTES + 32] = "", download[96] = "";
    if (status == OK)
        status = http_server_look_up(s, r, &found);
    if (found && fstat(found->fd, &st) < 0)
        return;
    if (status == 303)
        snprintf(location, sizeof location, "Location: /%s/\r\n", s->secret);
    if (found && found->download)
        snprintf(download, sizeof download, "Content-Disposition: attachment; filename=\"%s\"\r\n",
                 found->download);
    int bytes = snprintf(head, sizeof head,
                         "HTTP/1.1 %d \r\nContent-Length: %llu\r\nContent-Type: %s\r\n%s%s%s"
                         "Content-Security-Policy: %s\r\nX-Content-Type-Options: nosniff\r\n"
                         "Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n"
                         "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n"
                         "Connection: close\r\n\r\n",
                         status, (unsigned long long)st.st_size, found ? found->type : "text/plain",
                         status == NOT_ALLOWED ? "Allow: GET, HEAD\r\n" : "", location, download,
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
static void serve_connection(const struct http_server *s, int fd)
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
    http_server_answer(s, fd, &r, status);
    /* A reset would lose the answer: the other side closes first. */
    alarm(WAIT_SECONDS);
    shutdown(fd, SHUT_WR);
    while (recv(fd, text, REQUEST_BYTES, 0) > 0)
        continue;
}

/* Accepts a connection; if there are too many, the oldest one ends. */
static void accept_one(struct http_server *s)
{
    pid_t *child = &s->children[s->next];
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) { /* without room for it, poll would return at once */
        poll(NULL, 0, errno == EAGAIN || errno == EINTR ? 0 : REST_MS);
        return;
    }
    if (*child)
        kill(*child, SIGKILL);
    s->next = (s->next + 1) % HTTP_CONNECTIONS_MAX;
    pid_t parent = getpid();
    *child = fork();
    if (*child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(s->fd);
        if (getppid() == parent)
            serve_connection(s, fd);
        _exit(0);
    }
    *child = *child > 0 ? *child : 0;
    close(fd);
}

/* Forgets connections that have ended. */
static void reap(struct http_server *s)
{
    pid_t ended;
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
        for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++)
            if (s->children[i] == ended)
                s->children[i] = 0;
}

int http_server_run(struct http_server *s, int stop_fd, int hangup_fd)
{
    for (;;) {
        struct pollfd polled[] = {
            {.fd = s->fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}, {.fd = hangup_fd}};
        if (poll(polled, 3, -1) < 0 && errno != EINTR)
            return GPUPROF_IO;
        if (polled[1].revents || polled[2].revents)
            return 0;
        reap(s);
        if (polled[0].revents)
            accept_one(s);
    }
}
