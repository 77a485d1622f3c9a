/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Python's pickle format, protocol 2: dictionaries, lists, texts and whole numbers, and no
 * opcode that PyTorch's viewer of memory snapshots, which has a reader of its own, does not know.
 * What is used again is remembered under a number (the memo), and then takes three bytes or six.
 *
 * An item is what one of the pickle_... calls puts there; in a dictionary keys and values take
 * turns. Nothing is returned: errors stick to the output.
 */
#ifndef GPUPROF_COLLECTOR_PICKLE_H
#define GPUPROF_COLLECTOR_PICKLE_H

#include "output/output.h"

#define PICKLE_BATCH     1000 /* items of a list that readers have on their stack at a time */
#define PICKLE_DEPTH_MAX 8
#define PICKLE_TEXT_MAX  65536 /* bytes; what is longer is cut */

struct pickle {
    struct output *out;
    uint32_t memo_count;
    unsigned depth;
    struct {
        bool is_list;
        uint32_t items; /* since its last mark */
    } open[PICKLE_DEPTH_MAX];
};

void pickle_begin(struct pickle *p, struct output *out);
void pickle_end(struct pickle *p);

/* From one to the other an item. */
void pickle_open_dict(struct pickle *p);
void pickle_open_list(struct pickle *p);
void pickle_close(struct pickle *p);

/* A text: valid UTF-8. */
void pickle_text(struct pickle *p, const char *text);
void pickle_number(struct pickle *p, uint64_t number);
void pickle_bool(struct pickle *p, bool value);
void pickle_pair(struct pickle *p, uint64_t first, uint64_t second);

/* The item that is complete is remembered, under the number returned, from 1 on, and put there
 * again. */
uint32_t pickle_remember(struct pickle *p);
void pickle_again(struct pickle *p, uint32_t remembered);

#endif
