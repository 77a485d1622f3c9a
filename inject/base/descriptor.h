/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that we keep in somebody else's process. Programs close those that they do not know,
 * and open files under their numbers: look before each use.
 */
#ifndef GPUPROF_INJECT_DESCRIPTOR_H
#define GPUPROF_INJECT_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Gives `fd` a number out of the way of programs that count on low ones; not even RLIMIT_NOFILE may
 * put us where the program's standard output is to be. -1 stays -1. Returns the new number, or -1
 * with `fd` closed: errno.
 */
int descriptor_move_high(int fd);

/* A file of the kernel's that is kept open, since opening it takes far longer than reading it. */
struct kept_file {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

/* Only under a high number: programs that may have few files need the others. */
bool kept_file_open(struct kept_file *f, const char *path);

/* Reads it from its begin, and ends it with a zero. Its length; 0: it is closed, or says nothing.
 */
size_t kept_file_read(const struct kept_file *f, char *text, size_t bytes);

void kept_file_close(struct kept_file *f);

/* Does it stand for that file? It need not have a name any more. */
bool descriptor_is(int fd, dev_t device, ino_t inode);

#endif
