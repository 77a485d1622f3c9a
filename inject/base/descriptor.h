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

/* Does it stand for that file? It need not have a name any more. */
bool descriptor_is(int fd, dev_t device, ino_t inode);

#endif
