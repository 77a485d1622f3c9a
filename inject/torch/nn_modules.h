/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's modules (--pytorch=modules): the module in which a call was made, such as
 * "layers.3.attn". Only Python knows them, so this is the one place where we make Python run
 * something: a fixed text, once per process, that sets PyTorch's two global hooks around each
 * module's forward. It runs on Python's main thread when that takes pending calls; the environment
 * stays unchanged, and nothing is imported. The hooks call the two functions below, and return at
 * once while torch.compile traces the program.
 */
#ifndef GPUPROF_INJECT_NN_MODULES_H
#define GPUPROF_INJECT_NN_MODULES_H

#include <stdbool.h>

struct thread;

/* Called by the writer once a second while PyTorch is loaded, until the hooks are set. */
void nn_modules_look(void);

/* Writes the META record "modules", and again when it has changed. */
void nn_modules_describe(struct thread *writer);

#endif
