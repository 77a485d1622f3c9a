/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's modules (--pytorch=modules): which one a call was made in, as "layers.3.attn". Only
 * Python knows them, so this is the one place where we have Python run something: a fixed text,
 * once in a process, that sets PyTorch's own two global hooks around each module's forward. It runs
 * on Python's main thread, where Python next takes pending calls; the environment stays as it is,
 * and nothing is imported. The hooks call the two functions below, and return at once while
 * torch.compile looks at the program.
 */
#ifndef GPUPROF_INJECT_NN_MODULES_H
#define GPUPROF_INJECT_NN_MODULES_H

#include <stdbool.h>

struct thread;

/* By the writer, once a second while PyTorch is loaded: asks Python, until the hooks are set. */
void nn_modules_look(void);

/* META record "modules", and again when that has changed. */
void nn_modules_describe(struct thread *writer);

#endif
