/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program has given names to: domains, registered strings, categories, threads, resources.
 * Kept from the first on, recording or not, in one bounded table, so that each process's file says
 * them all; a LABEL record is written once, by the first thread that can. Nothing is ever removed:
 * the same name is the same entry, however often it is given.
 */
#ifndef GPUPROF_INJECT_LABELS_H
#define GPUPROF_INJECT_LABELS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

#define LABEL_DOMAIN_MAX 1024 /* numbers of domains are below it */

/*
 * The number of the domain of that name, from 1 on, new or not. When there are too many, the same
 * last one stands for all others, and they are counted.
 */
uint32_t label_domain(const char *text, uint32_t byte_count);

/* The handle of that string in its domain, never 0; 0 and counted if there is no room. */
uint64_t label_string(uint32_t domain, const char *text, uint32_t byte_count);

/* The text of that handle, not 0 terminated, for good. False: there is none. */
bool label_string_text(uint64_t handle, const char **text, uint32_t *byte_count);

/* `handle` has this name from now on. The number of the entry, or 0 and counted. */
uint64_t label_name(uint32_t kind, uint64_t handle, uint32_t domain, const char *text,
                    uint32_t byte_count);

/* True if there may be labels that are not in this process's file. */
bool labels_are_due(void);

/* Writes them; by a thread that takes part. */
void labels_write(struct thread *t);

/* In the child of a fork. */
void labels_reset(void);

#endif
