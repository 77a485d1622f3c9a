/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the interpreter's that something was concluded from, with what was read there: the
 * conclusion holds as long as it reads the same. To look again takes a system call or two, whatever
 * number of reads it was made of.
 */
#ifndef GPUPROF_INJECT_PYTHON_FACTS_H
#define GPUPROF_INJECT_PYTHON_FACTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FACTS_MAX       512u
#define FACTS_WORDS_MAX 4096u
#define FACT_BYTES_MAX  256u

/* Bytes at an address; what they were is in the words from `first` on. */
struct python_fact {
    _Atomic uint64_t address;
    _Atomic uint32_t first;
    _Atomic uint32_t bytes;
};

/* Written by one thread at a time; the rest may look at them meanwhile, for an answer that they
 * throw away. */
struct python_facts {
    _Atomic uint32_t count; /* beyond FACTS_MAX: not all are here, and so they never hold */
    uint32_t word_count;
    uint32_t next; /* where one is added: at the end, or in the place of one of as many bytes */
    struct python_fact facts[FACTS_MAX];
    _Atomic uint64_t words[FACTS_WORDS_MAX];
};

void python_facts_clear(struct python_facts *f);

/* At `address` the `bytes` in `read` were read. */
void python_facts_add(struct python_facts *f, uint64_t address, const void *read, uint32_t bytes);

/* They depend on something that is not here. */
void python_facts_spoil(struct python_facts *f);

/* All are added: puts them in the order of their addresses, each once. */
void python_facts_end(struct python_facts *f);

/* Is all of it there still? By checked reads; any thread, with 3 KiB of stack. */
bool python_facts_hold(const struct python_facts *f);

/* The same from `from` on: which one is not, or one before it. Their count: all are. */
uint32_t python_facts_changed(const struct python_facts *f, uint32_t from);

#endif
