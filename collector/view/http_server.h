/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves a fixed table of resources to browsers on this machine (127.0.0.1), in one thread, with
 * one GET or HEAD per connection; a body is not read. Resources are found by name after a secret
 * that begins every path, so requests never name files. The Host header must have our address;
 * otherwise a foreign page could let its own name resolve to it.
 *
 * Memory: HTTP_CONNECTIONS_MAX connections of HTTP_REQUEST_BYTES; the kernel reads the files it
 * sends.
 */
#ifndef GPUPROF_COLLECTOR_HTTP_SERVER_H
#define GPUPROF_COLLECTOR_HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_CONNECTIONS_MAX 32
#define HTTP_REQUEST_BYTES   8192         /* of a request with its headers */
#define HTTP_WAIT_NS         10000000000u /* for a request, and for the other side to close */
#define HTTP_IDLE_NS         60000000000u /* for a reader that takes nothing */
#define HTTP_REST_NS         200000000u   /* pause after a failed accept */
#define HTTP_SECRET_BYTES    33           /* 128 random bits as text */

struct http_resource {
    const char *name; /* path after the secret; "" is the first page */
    const char *type;
    const char *policy;   /* Content-Security-Policy */
    const char *download; /* the file name to save it under; NULL: shown */
    int fd;               /* of a regular file */
};

struct http_connection {
    int fd;            /* -1: unused */
    bool is_ended;     /* answered: further input is read and dropped, since a reset would lose the
                        * answer */
    uint64_t since_ns; /* begin of the current wait */
    size_t used;
    char request[HTTP_REQUEST_BYTES + 1];
    const struct http_resource *body; /* being sent; NULL: none */
    off_t sent;                       /* bytes of it sent */
};

struct http_server {
    const struct http_resource *resources; /* a view; ended by one without a name */
    int fd;
    unsigned port;
    char secret[HTTP_SECRET_BYTES];
    char once[HTTP_SECRET_BYTES]; /* opens the first page once; empty: used up */
    uint64_t rest_until_ns;       /* no connection is accepted before */
    struct http_connection connections[HTTP_CONNECTIONS_MAX];
};

/* Listens on that port; 0: any free one. Returns 0 or GPUPROF_IO (errno); call http_server_release
 * in both cases. */
int http_server_init(struct http_server *s, unsigned port, const struct http_resource *resources);
void http_server_release(struct http_server *s);

/* Serves until `stop_fd` is readable or `hangup_fd` (-1: none) hangs up. Returns 0 or
 * GPUPROF_IO. */
int http_server_run(struct http_server *s, int stop_fd, int hangup_fd);

#endif
