/* SPDX-License-Identifier: Apache-2.0 */
/* Telling NVTX and the driver which library to load for a tool: this one. */
#ifndef GPUPROF_INJECT_ANNOUNCE_H
#define GPUPROF_INJECT_ANNOUNCE_H

/*
 * Sets the environment variable to our own path, unless it is set: somebody else was first. From
 * the constructor, while there is one thread.
 */
void announce_by(const char *variable);

#endif
