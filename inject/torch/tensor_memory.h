/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks that PyTorch's caching allocator hands out and takes back, and those that it could not
 * have. It tells a function of libc10's of each, whether there is a profiler or not, by a symbol
 * that we define first; what libc10 has by that name is called as well, since torch.profiler lives
 * by it.
 *
 * The allocator holds its lock meanwhile, and the thread often Python's: nothing waits here, for
 * room neither; no function of CUDA's or Python's is called; what has no room is dropped and
 * counted. Goes on while calls are left out: who has which memory would not be known afterwards.
 * None of it starts a recording.
 */
#ifndef GPUPROF_INJECT_TENSOR_MEMORY_H
#define GPUPROF_INJECT_TENSOR_MEMORY_H

/* After each dlclose: libc10 may be another one from now on. */
void tensor_memory_unloaded(void);

#endif
