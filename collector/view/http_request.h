/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of HTTP/1.1 that `view` answers: GET and HEAD without a body. What comes may be from
 * anybody: whatever the standard leaves open is refused, so that no two readers take one request
 * for two different ones.
 */
#ifndef GPUPROF_COLLECTOR_HTTP_REQUEST_H
#define GPUPROF_COLLECTOR_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_REQUEST_BYTES 8192 /* of a request with its headers */
#define HTTP_HEADERS_MAX   64

/* A piece of the bytes that were read. */
struct http_text {
    const char *at;
    size_t length;
};

struct http_request {
    struct http_text target; /* begins with a slash */
    struct http_text host;
    size_t bytes; /* of it all: what is behind is the next one */
    bool is_head;
    bool keeps_open; /* the connection, after the answer */
};

/*
 * Reads what stands at the begin of `bytes`, of which it keeps views. 0: more is needed; 200: it is
 * whole; or the status of the answer that it gets, after which nothing can be read any more.
 */
int http_request_read(struct http_request *r, const char *bytes, size_t length);

/* Is it this text, letters as they are? */
bool http_text_is(struct http_text text, const char *expected);

#endif
