/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves a fixed table of resources to browsers on this machine (127.0.0.1), with one GET or HEAD
 * per connection, each in a process of its own; a body is not read. Resources are found by name
 * after a secret that begins every path, so requests never name files. The Host header must have
 * our address; otherwise a foreign page could let its own name resolve to it.
 *
 * Memory: HTTP_CONNECTIONS_MAX requests; the kernel reads the files it sends.
 */
#ifndef GPUPROF_COLLECTOR_HTTP_SERVER_H
#define GPUPROF_COLLECTOR_HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_CONNECTIONS_MAX 32
#define HTTP_SECRET_BYTES    33 /* 128 random bits as text */

struct http_resource {
    const char *name; /* path after the secret; "" is the first page */
    const char *type;
    const char *policy;   /* Content-Security-Policy */
    const char *download; /* the file name to save it under; NULL: shown */
    int fd;               /* of a regular file */
};

struct http_server {
    const struct http_resource *resources; /* a view; ended by one without a name */
    int fd;
    unsigned port;
    char secret[HTTP_SECRET_BYTES];
    char once[HTTP_SECRET_BYTES];         /* opens the first page once */
    bool *is_opened;                      /* owned, shared with the children: `once` is used up */
    pid_t children[HTTP_CONNECTIONS_MAX]; /* of the connections, in turn; 0: none */
    unsigned next;                        /* the oldest of them */
};

/* Listens on that port; 0: any free one. Returns 0 or GPUPROF_IO (errno); call http_server_release
 * in both cases. */
int http_server_init(struct http_server *s, unsigned port, const struct http_resource *resources);
void http_server_release(struct http_server *s);

/* Serves until `stop_fd` is readable or `hangup_fd` (-1: none) hangs up. Returns 0 or
 * GPUPROF_IO. */
int http_server_run(struct http_server *s, int stop_fd, int hangup_fd);

#endif
