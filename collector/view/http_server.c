/* SPDX-License-Identifier: Apache-2.0 */
#include "view/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/moment.h"
#include "error.h"

#define SEND_BYTES (1u << 20) /* per turn, to be fair to other connections */

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
    for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++)
        s->connections[i].fd = -1;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* A port can be reused at once, but not shared with another listener. */
    if (s->fd < 0 || setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(s->fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(s->fd, HTTP_CONNECTIONS_MAX) < 0 ||
        getsockname(s->fd, (struct sockaddr *)&address, &length) < 0)
        return GPUPROF_IO;
    s->port = ntohs(address.sin_port);
    return secret_make(s->secret) < 0 ? GPUPROF_IO : secret_make(s->once);
}

static void http_server_drop(struct http_connection *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

void http_server_release(struct http_server *s)
{
    for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++)
        http_server_drop(&s->connections[i]);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
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
        return length == HTTP_REQUEST_BYTES ? TOO_LARGE : 0;
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
static int http_server_look_up(struct http_server *s, const struct request *r,
                               const struct http_resource **found)
{
    const char *name = r->target + 1;
    size_t length = strlen(name), secret_bytes = HTTP_SECRET_BYTES - 1;
    if (!http_server_is_ours(s, r->host))
        return 403;
    if (length < secret_bytes)
        return 404;
    if (s->once[0] && length == secret_bytes && !r->is_head && secret_is(s->once, name)) {
        s->once[0] = '\0';
        return 303;
    }
    if (!secret_is(s->secret, name) || name[secret_bytes] != '/')
        return 404;
    for (const struct http_resource *at = s->resources; at->name; at++)
        if (strcmp(name + secret_bytes + 1, at->name) == 0) {
            *found = at;
            return OK;
        }
    return 404;
}

/* Ends the answer; the connection ends when the other side closes it too. */
static bool end_answer(struct http_connection *c)
{
    c->body = NULL;
    c->is_ended = true;
    c->since_ns = monotonic_ns();
    return shutdown(c->fd, SHUT_WR) == 0;
}

/* Answers a complete request. Returns false if the connection has ended. */
static bool http_server_answer(struct http_server *s, struct http_connection *c)
{
    struct request r;
    const struct http_resource *found = NULL;
    struct stat st = {.st_size = 0};
    char head[1024], location[HTTP_SECRET_BYTES + 32] = "", download[96] = "";
    int status = read_request(&r, c->request, c->used);
    if (status == 0)
        return true;
    if (status == OK)
        status = http_server_look_up(s, &r, &found);
    if (found && fstat(found->fd, &st) < 0)
        return false;
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
    c->body = r.is_head ? NULL : found;
    c->since_ns = monotonic_ns();
    /* The first bytes always fit into the kernel's buffer. */
    return send(c->fd, head, (size_t)bytes, MSG_NOSIGNAL | (c->body ? MSG_MORE : 0)) == bytes &&
           (c->body || end_answer(c));
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Returns false if the connection has ended. */
static bool send_body(struct http_connection *c)
{
    ssize_t bytes = sendfile(c->fd, c->body->fd, &c->sent, SEND_BYTES);
    if (bytes > 0)
        c->since_ns = monotonic_ns();
    return bytes > 0 ? true : bytes == 0 ? end_answer(c) : errno == EAGAIN || errno == EINTR;
}

/* Not called while a body is sent, so the kernel's buffer bounds further requests. */
static bool receive(struct http_server *s, struct http_connection *c)
{
    if (c->is_ended)
        c->used = 0;
    ssize_t bytes = recv(c->fd, c->request + c->used, HTTP_REQUEST_BYTES - c->used, 0);
    if (bytes <= 0)
        return bytes < 0 && (errno == EAGAIN || errno == EINTR);
    c->used += (size_t)bytes;
    c->request[c->used] = '\0';
    return c->is_ended || http_server_answer(s, c);
}

/* Returns a free connection, or drops the oldest one that receives no body. */
static struct http_connection *place_for(struct http_server *s)
{
    struct http_connection *worst = NULL;
    for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
        struct http_connection *c = &s->connections[i];
        if (c->fd < 0)
            return c;
        if (!c->body && (!worst || c->since_ns < worst->since_ns))
            worst = c;
    }
    if (worst)
        http_server_drop(worst);
    return worst;
}

static void accept_one(struct http_server *s)
{
    int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct http_connection *c = fd < 0 ? NULL : place_for(s);
    /* If accept failed for lack of descriptors, poll would return at once: pauses accepting. */
    s->rest_until_ns =
        fd < 0 && errno != EAGAIN && errno != EINTR ? monotonic_ns() + HTTP_REST_NS : 0;
    if (!c) {
        if (fd >= 0)
            close(fd);
        return;
    }
    *c = (struct http_connection){.fd = fd, .since_ns = monotonic_ns()};
}

/* Returns the time left before a timeout; 0: timed out. */
static uint64_t time_left(const struct http_connection *c, uint64_t now)
{
    uint64_t allowed = c->body ? HTTP_IDLE_NS : HTTP_WAIT_NS;
    return now - c->since_ns >= allowed ? 0 : allowed - (now - c->since_ns);
}

static int wait_for(struct http_server *s, struct pollfd *polled)
{
    uint64_t now = monotonic_ns(), soonest = HTTP_IDLE_NS;
    bool rests = now < s->rest_until_ns;
    if (rests)
        soonest = s->rest_until_ns - now;
    polled[HTTP_CONNECTIONS_MAX] = (struct pollfd){.fd = rests ? -1 : s->fd, .events = POLLIN};
    for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
        struct http_connection *c = &s->connections[i];
        uint64_t left = c->fd < 0 ? HTTP_IDLE_NS : time_left(c, now);
        if (!left)
            http_server_drop(c);
        else if (left < soonest)
            soonest = left;
        polled[i] = (struct pollfd){.fd = c->fd, .events = c->body ? POLLOUT : POLLIN};
    }
    return poll(polled, HTTP_CONNECTIONS_MAX + 3, (int)(soonest / 1000000) + 1);
}

int http_server_run(struct http_server *s, int stop_fd, int hangup_fd)
{
    struct pollfd polled[HTTP_CONNECTIONS_MAX + 3];
    struct pollfd *aside = polled + HTTP_CONNECTIONS_MAX;
    for (;;) {
        aside[1] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
        aside[2] = (struct pollfd){.fd = hangup_fd};
        if (wait_for(s, polled) < 0) {
            if (errno != EINTR)
                return GPUPROF_IO;
            continue;
        }
        if (aside[1].revents || aside[2].revents)
            return 0;
        for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
            struct http_connection *c = &s->connections[i];
            if (polled[i].fd < 0 || !polled[i].revents)
                continue;
            bool lives = !(polled[i].revents & (POLLERR | POLLNVAL)) &&
                         (c->body ? send_body(c) : receive(s, c));
            if (!lives)
                http_server_drop(c);
        }
        if (aside[0].revents)
            accept_one(s);
    }
}
