/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of `gpuprof ctl` ask for, and what a process's answer says. */
#ifndef GPUPROF_COLLECTOR_CTL_COMMAND_H
#define GPUPROF_COLLECTOR_CTL_COMMAND_H

#include <stdbool.h>

#include "base/exit_code.h"
#include "base/options.h"
#include "control_text.h"

/*
 * Fills the command, but for whom it is. *is_ahead: its `at` is so many steps ahead of the process
 * that is farthest. EXIT_OK, or EXIT_USAGE after one line.
 */
enum exit_code ctl_command_parse(const struct options *o, struct control_command *command,
                                 bool *is_ahead);

/* To standard output, from ": " on, with the line's end. */
void ctl_status_print(const struct control_status *s, const struct control_command *asked);

/* What it says to the command: ANSWER_DONE where it says nothing. */
enum control_answer ctl_answer(const struct control_status *s, uint64_t id);

#endif
