/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets the environment variables from which NVTX and the CUDA driver load a tool library: this one.
 */
#ifndef GPUPROF_INJECT_ANNOUNCE_H
#define GPUPROF_INJECT_ANNOUNCE_H

/* Sets the environment variable to the path of this library, unless it is set already: then another
 * tool was first. Call it from the constructor, while the process has one thread. */
void announce_by(const char *variable);

#endif
