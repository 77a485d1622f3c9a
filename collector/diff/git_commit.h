/* SPDX-License-Identifier: Apache-2.0 */
/* Which commit is checked out: read from git's own files, since there may be no git to be asked. */
#ifndef GPUPROF_COLLECTOR_GIT_COMMIT_H
#define GPUPROF_COLLECTOR_GIT_COMMIT_H

#include <stdbool.h>

#define GIT_COMMIT_BYTES 65 /* 40 digits, or 64 with SHA-256 */

/* The commit of the working tree around the current folder. False: it is in none, or the files say
 * nothing. Neither changes nor runs anything, and takes what it reads for anyone's. */
bool git_commit_here(char commit[GIT_COMMIT_BYTES]);

#endif
