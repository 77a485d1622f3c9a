/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the blocks that PyTorch's caching allocator hands out and takes back, and failed
 * requests. The allocator reports each to a function of libc10, with or without a profiler. We
 * define that symbol first, and call libc10's function, too, since torch.profiler needs it.
 *
 * The allocator holds its lock meanwhile, and the thread often holds the GIL. So nothing here
 * waits, not even for space: records without space are dropped and counted. It calls no function of
 * CUDA or Python. It goes on while calls are not recorded, since otherwise the owner of memory
 * would not be known later. Never starts a recording.
 */
#ifndef GPUPROF_INJECT_TENSOR_MEMORY_H
#define GPUPROF_INJECT_TENSOR_MEMORY_H

/* Call it after each dlclose: another libc10 may be loaded later. */
void tensor_memory_unloaded(void);

#endif
