/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that the program has given: of domains, registered strings, categories, threads, resources.
 * Kept from the first one on, recorded or not, in one bounded table, so that each process's file
 * has them all. The first thread that can writes each LABEL record, once. Entries are never
 * removed: the same name is the same entry, however often it is given.
 */
#ifndef GPUPROF_INJECT_LABELS_H
#define GPUPROF_INJECT_LABELS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

#define LABEL_DOMAIN_MAX 1024 /* domain numbers are below this */

/* Returns the number of the domain with that name, from 1. Beyond the limit, all further domains
 * share the last number, and are counted. */
uint32_t label_domain(const char *text, uint32_t byte_count);

/* Returns the handle of that string in its domain. 0, and counted, if there is no space. */
uint64_t label_string(uint32_t domain, const char *text, uint32_t byte_count);

/*
 * Finds the text of the handle, not terminated, which stays valid. Returns false if there is none.
 */
bool label_string_text(uint64_t handle, const char **text, uint32_t *byte_count);

/* `handle` has this name from now on. Returns the number of the entry; 0, and counted, if there is
 * no space. */
uint64_t label_name(uint32_t kind, uint64_t handle, uint32_t domain, const char *text,
                    uint32_t byte_count);

/* Returns whether there may be labels that are not in this process's file. */
bool labels_are_due(void);

/* Writes them; called by a thread that takes part. */
void labels_write(struct thread *t);

/* Call it in the child of a fork. */
void labels_reset(void);

#endif
