/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `gpuprof top` shows of this process: counted by the writer from the records that it seals,
 * so that calls cost nothing more, and only while somebody asks; but which memory is held it must
 * always know. By the writer, but for figures_start.
 */
#ifndef GPUPROF_INJECT_FIGURES_H
#define GPUPROF_INJECT_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

/* A recording begins: by who begins it. */
void figures_start(void);

/* Fills the figures. `is_watched`: those that are counted only then, too; from the first of such
 * calls on. */
struct control_status;
void figures_fill(struct control_status *status, bool is_watched);

#endif
