/* SPDX-License-Identifier: Apache-2.0 */
/* A text as a word of a command line that somebody is to paste into a shell. */
#ifndef GPUPROF_COLLECTOR_SHELL_WORD_H
#define GPUPROF_COLLECTOR_SHELL_WORD_H

/* As a shell wants it that is to read `text` back, in new memory; NULL: no memory. */
char *shell_word(const char *text);

#endif
