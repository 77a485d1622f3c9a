/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors that we keep open in another program's process. Programs close descriptors that
 * they do not know, and then open files under the same numbers: check before each use. */
#ifndef GPUPROF_INJECT_DESCRIPTOR_H
#define GPUPROF_INJECT_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Moves `fd` to a high number, since programs count on low ones. Even a small RLIMIT_NOFILE must
 * not put us on the number of standard output. -1 stays -1. Returns the new number, or -1 with
 * errno set and `fd` closed.
 */
int descriptor_move_high(int fd);

/* A file of /proc that is kept open: opening it takes far longer than reading it. */
struct kept_file {
    int fd; /* -1: not open */
    dev_t device;
    ino_t inode;
};

/* Opens the file, but only under a high number: programs with few descriptors need the others. */
bool kept_file_open(struct kept_file *f, const char *path);

/* Reads the file from its start into `text` and terminates it with a zero. Returns its length, or 0
 * if the file is closed or empty. */
size_t kept_file_read(const struct kept_file *f, char *text, size_t bytes);

void kept_file_close(struct kept_file *f);

/* Returns whether `fd` still refers to that file. The file may have lost its name. */
bool descriptor_is(int fd, dev_t device, ino_t inode);

#endif
