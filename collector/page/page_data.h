/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a page: JSON inside of a <script> element. Nothing of it ends that element, since `<`
 * is written as \u003c, and no string is longer than PAGE_TEXT_BYTES: what goes through `stream` is
 * changed so on its way.
 */
#ifndef GPUPROF_COLLECTOR_PAGE_DATA_H
#define GPUPROF_COLLECTOR_PAGE_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PAGE_TEXT_BYTES 1000 /* of a string, escapes and all; what is longer is cut */

struct page_data {
    FILE *stream; /* takes JSON */
    FILE *out;    /* a view */
    uint64_t written;
    uint32_t text_bytes; /* of the string that is being written */
    uint8_t escape;      /* bytes that its escape still has */
    bool in_text;
    bool is_cut;
};

/* 0 or GPUPROF_NO_MEMORY. */
int page_data_open(struct page_data *d, FILE *out);
void page_data_close(struct page_data *d);

/* A JSON string; NULL: null. */
void page_put_text(struct page_data *d, const char *text);

/* How much has been written, all in all. */
uint64_t page_data_written(struct page_data *d);

#endif
