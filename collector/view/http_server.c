/* SPDX-License-Identifier: Apache-2.0 */
#include "view/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "error.h"

#define SEND_BYTES (1u << 20) /* at a time, so that the others have their turn */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int secret_make(char *text)
{
    unsigned char bytes[(HTTP_SECRET_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return GPUPROF_IO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* How long it takes does not say how much of it is right. */
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
    /* A port that somebody names can be used again at once; none is shared with who listens. */
    if (s->fd < 0 || setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(s->fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(s->fd, HTTP_CONNECTIONS_MAX) < 0 ||
        getsockname(s->fd, (struct sockaddr *)&address, &length) < 0)
        return GPUPROF_IO;
    s->port = ntohs(address.sin_port);
    return secret_make(s->secret) < 0 ? GPUPROF_IO : secret_make(s->once);
}

static void drop(struct http_connection *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

void http_server_release(struct http_server *s)
{
    for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++)
        drop(&s->connections[i]);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* ---- answers --------------------------------------------------------------------------------- */

static const char *reason_of(int status)
{
    switch (status) {
    case 200: return "OK";
    case 303: return "See Other";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    case 505: return "HTTP Version Not Supported";
    default: return "Bad Request";
    }
}

static bool is_ours(const struct http_server *s, struct http_text host)
{
    char text[2][32];
    snprintf(text[0], sizeof text[0], "127.0.0.1:%u", s->port);
    snprintf(text[1], sizeof text[1], "localhost:%u", s->port);
    return http_text_is(host, text[0]) || http_text_is(host, text[1]);
}

static const struct http_resource *find(const struct http_server *s, struct http_text name)
{
    for (const struct http_resource *r = s->resources; r->name; r++)
        if (http_text_is(name, r->name))
            return r;
    return NULL;
}

/* The status; with 200 *found. */
static int look_up(struct http_server *s, const struct http_request *r,
                   const struct http_resource **found)
{
    struct http_text name = r->target;
    size_t secret_bytes = HTTP_SECRET_BYTES - 1;
    if (!is_ours(s, r->host))
        return 403;
    if (name.length < secret_bytes + 1)
        return 404;
    if (s->once[0] && name.length == secret_bytes + 1 && !r->is_head &&
        secret_is(s->once, name.at + 1)) {
        s->once[0] = '\0';
        return 303;
    }
    if (!secret_is(s->secret, name.at + 1) || name.length < secret_bytes + 2 ||
        name.at[secret_bytes + 1] != '/')
        return 404;
    name.at += secret_bytes + 2;
    name.length -= secret_bytes + 2;
    *found = find(s, name);
    return *found ? 200 : 404;
}

static void answer(struct http_server *s, struct http_connection *c, int status,
                   const struct http_resource *found, bool is_head)
{
    char location[HTTP_SECRET_BYTES + 32] = "", download[96] = "";
    if (status == 303)
        snprintf(location, sizeof location, "Location: /%s/\r\n", s->secret);
    if (found && found->download)
        snprintf(download, sizeof download, "Content-Disposition: attachment; filename=\"%s\"\r\n",
                 found->download);
    c->head_bytes = (uint32_t)snprintf(
        c->head, sizeof c->head,
        "HTTP/1.1 %d %s\r\nContent-Length: %llu\r\nContent-Type: %s\r\n%s%s%s"
        "Content-Security-Policy: %s\r\nX-Content-Type-Options: nosniff\r\n"
        "Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n"
        "Connection: %s\r\n\r\n",
        status, reason_of(status), found ? (unsigned long long)found->bytes : 0ull,
        found ? found->type : "text/plain", status == 405 ? "Allow: GET, HEAD\r\n" : "", location,
        download, found ? found->policy : "default-src 'none'", c->closes ? "close" : "keep-alive");
    c->head_sent = 0;
    c->sent = 0;
    c->body = is_head ? NULL : found;
}

/* Takes a request off what was read, if one is whole. */
static void take_request(struct http_server *s, struct http_connection *c)
{
    struct http_request r;
    const struct http_resource *found = NULL;
    int status = http_request_read(&r, c->request, c->used);
    if (status == 0)
        return;
    c->closes = status != 200 || !r.keeps_open;
    if (status == 200) {
        status = look_up(s, &r, &found);
        c->is_known |= found != NULL;
        c->used -= (uint32_t)r.bytes;
    } else {
        c->used = 0;
    }
    answer(s, c, status, found, status == 200 && r.is_head);
    if (c->used)
        memmove(c->request, c->request + r.bytes, c->used);
    c->is_waiting = c->used == 0;
    c->since_ms = now_ms();
}

/* ---- connections ----------------------------------------------------------------------------- */

static bool is_sending(const struct http_connection *c)
{
    return c->head_sent < c->head_bytes || c->body;
}

/* Of something sent: what there was; else false if the connection is over. */
static bool sent_some(struct http_connection *c, ssize_t bytes)
{
    if (bytes > 0)
        c->since_ms = now_ms();
    return bytes > 0 || (bytes < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool send_body(struct http_connection *c)
{
    const struct http_resource *body = c->body;
    uint64_t left = body->bytes - c->sent;
    size_t part = left < SEND_BYTES ? (size_t)left : SEND_BYTES;
    off_t at = (off_t)c->sent;
    ssize_t bytes = !part        ? 0
                    : body->text ? send(c->fd, body->text + c->sent, part, MSG_NOSIGNAL)
                                 : sendfile(c->fd, body->fd, &at, part);
    if (part && !sent_some(c, bytes))
        return false;
    c->sent += bytes > 0 ? (uint64_t)bytes : 0;
    if (c->sent == body->bytes)
        c->body = NULL;
    return true;
}

/* False: the connection is over. */
static bool go_on(struct http_server *s, struct http_connection *c)
{
    if (c->head_sent < c->head_bytes) {
        ssize_t bytes = send(c->fd, c->head + c->head_sent, c->head_bytes - c->head_sent,
                             MSG_NOSIGNAL | (c->body ? MSG_MORE : 0));
        if (!sent_some(c, bytes))
            return false;
        c->head_sent += bytes > 0 ? (uint32_t)bytes : 0;
    } else if (c->body && !send_body(c)) {
        return false;
    }
    if (is_sending(c))
        return true;
    if (c->closes && c->head_bytes) {
        c->is_ended = true;
        c->is_known = c->is_waiting = false;
        c->since_ms = now_ms();
        return shutdown(c->fd, SHUT_WR) == 0;
    }
    if (c->used)
        take_request(s, c);
    return true;
}

/* Not while something is sent: the kernel's buffer bounds what waits. */
static bool receive(struct http_server *s, struct http_connection *c)
{
    if (c->is_ended)
        c->used = 0;
    ssize_t bytes = recv(c->fd, c->request + c->used, sizeof c->request - c->used, 0);
    if (bytes <= 0)
        return bytes < 0 && (errno == EAGAIN || errno == EINTR);
    if (c->is_waiting)
        c->since_ms = now_ms();
    c->is_waiting = false;
    c->used += (uint32_t)bytes;
    if (!c->is_ended)
        take_request(s, c);
    return true;
}

/* One that is free; or that of who has waited longest without having had the secret. */
static struct http_connection *place_for(struct http_server *s)
{
    struct http_connection *worst = NULL;
    for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
        struct http_connection *c = &s->connections[i];
        if (c->fd < 0)
            return c;
        if (!c->is_known && (!worst || c->since_ms < worst->since_ms))
            worst = c;
    }
    if (worst)
        drop(worst);
    return worst;
}

static void accept_one(struct http_server *s)
{
    int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct http_connection *c = fd < 0 ? NULL : place_for(s);
    /* Who waits makes poll return at once, for as long as there is no file for him. */
    s->rest_until_ms = fd < 0 && errno != EAGAIN && errno != EINTR ? now_ms() + HTTP_REST_MS : 0;
    if (!c) {
        if (fd >= 0)
            close(fd);
        return;
    }
    *c = (struct http_connection){.fd = fd, .since_ms = now_ms()};
}

/* How long it may still take, in ms; 0: it is over. */
static uint64_t time_left(const struct http_connection *c, uint64_t now)
{
    uint64_t allowed =
        is_sending(c) || (c->is_waiting && c->is_known) ? HTTP_IDLE_MS : HTTP_WAIT_MS;
    return now - c->since_ms >= allowed ? 0 : allowed - (now - c->since_ms);
}

static int wait_for(struct http_server *s, struct pollfd *polled)
{
    uint64_t now = now_ms(), soonest = HTTP_IDLE_MS;
    bool rests = now < s->rest_until_ms;
    if (rests)
        soonest = s->rest_until_ms - now;
    polled[HTTP_CONNECTIONS_MAX] = (struct pollfd){.fd = rests ? -1 : s->fd, .events = POLLIN};
    for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
        struct http_connection *c = &s->connections[i];
        uint64_t left = c->fd < 0 ? HTTP_IDLE_MS : time_left(c, now);
        if (!left)
            drop(c);
        else if (left < soonest)
            soonest = left;
        polled[i] = (struct pollfd){.fd = c->fd, .events = is_sending(c) ? POLLOUT : POLLIN};
    }
    return poll(polled, HTTP_CONNECTIONS_MAX + 3, (int)soonest + 1);
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
                         (is_sending(c) ? go_on(s, c) : receive(s, c));
            if (!lives)
                drop(c);
        }
        if (aside[0].revents)
            accept_one(s);
    }
}
