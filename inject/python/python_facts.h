/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the interpreter from which something was concluded, with the values read: the
 * conclusion is valid as long as they are the same. Checking takes one or two system calls,
 * whatever the number of reads.
 */
#ifndef GPUPROF_INJECT_PYTHON_FACTS_H
#define GPUPROF_INJECT_PYTHON_FACTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FACTS_MAX       512u
#define FACTS_WORDS_MAX 4096u
#define FACT_BYTES_MAX  256u

/* Bytes at an address; their values are in the words from `first` on. */
struct python_fact {
    _Atomic uint64_t address;
    _Atomic uint32_t first;
    _Atomic uint32_t bytes;
};

/* Written by one thread at a time. Other threads may read it meanwhile, for an answer that they
 * discard. */
struct python_facts {
    _Atomic uint32_t count; /* above FACTS_MAX: some are missing, so they are never valid */
    uint32_t word_count;
    uint32_t next; /* where the next one is written: at the end, or over one of the same size */
    struct python_fact facts[FACTS_MAX];
    _Atomic uint64_t words[FACTS_WORDS_MAX];
};

void python_facts_clear(struct python_facts *f);

/* Adds a fact: at `address` the `bytes` in `read` were read. */
void python_facts_add(struct python_facts *f, uint64_t address, const void *read, uint32_t bytes);

/* The conclusion depends on something that is not noted. */
void python_facts_spoil(struct python_facts *f);

/* All facts are added: sorts them by address and removes duplicates. */
void python_facts_end(struct python_facts *f);

/* Are all facts still valid? Uses checked reads; any thread; needs 3 KiB of stack. */
bool python_facts_hold(const struct python_facts *f);

/* The same from index `from` on: returns the first fact that has changed, or an earlier one; their
 * count if none has. */
uint32_t python_facts_changed(const struct python_facts *f, uint32_t from);

#endif
