/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves a fixed table of resources to browsers of this machine, on 127.0.0.1, by one thread: one
 * GET or HEAD without a body a connection. A resource is found by comparing names, behind a secret
 * that begins every path: nothing of a request ever names a file. Requests must come under the
 * address that we gave out (Host), or a page of somebody else's could have its own name mean our
 * address. What comes may be from anybody: whatever the standard leaves open is refused.
 *
 * Memory: HTTP_CONNECTIONS_MAX connections of HTTP_REQUEST_BYTES; what is sent is read by the
 * kernel.
 */
#ifndef GPUPROF_COLLECTOR_HTTP_SERVER_H
#define GPUPROF_COLLECTOR_HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_CONNECTIONS_MAX 32
#define HTTP_REQUEST_BYTES   8192         /* of a request with its headers */
#define HTTP_WAIT_NS         10000000000u /* for a request, and for the other side to close */
#define HTTP_IDLE_NS         60000000000u /* for a reader who takes nothing */
#define HTTP_REST_NS         200000000u   /* when no connection could be accepted */
#define HTTP_SECRET_BYTES    33           /* 128 random bits as text */

struct http_resource {
    const char *name; /* behind the secret; "" is the first page */
    const char *type;
    const char *policy;   /* Content-Security-Policy */
    const char *download; /* the name of the file that it is saved as; NULL: it is shown */
    int fd;               /* a regular file's */
};

struct http_connection {
    int fd;            /* -1: free */
    bool is_ended;     /* answered: what still comes is read, or the answer would be lost */
    uint64_t since_ns; /* of what it is waited for */
    size_t used;
    char request[HTTP_REQUEST_BYTES + 1];
    const struct http_resource *body; /* that is being sent; NULL: none */
    off_t sent;                       /* of it */
};

struct http_server {
    const struct http_resource *resources; /* a view; ended by one without a name */
    int fd;
    unsigned port;
    char secret[HTTP_SECRET_BYTES];
    char once[HTTP_SECRET_BYTES]; /* leads to the first page, one time; empty: nothing does */
    uint64_t rest_until_ns;       /* no connection is accepted before */
    struct http_connection connections[HTTP_CONNECTIONS_MAX];
};

/* Listens on that port, 0: any that is free. 0 or GPUPROF_IO (errno); http_server_release in both
 * cases. */
int http_server_init(struct http_server *s, unsigned port, const struct http_resource *resources);
void http_server_release(struct http_server *s);

/* Answers until `stop_fd` can be read or `hangup_fd` (-1: none) is hung up. 0 or GPUPROF_IO. */
int http_server_run(struct http_server *s, int stop_fd, int hangup_fd);

#endif
