/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define LEAK_SHARE  10 /* a leak of 1 / LEAK_SHARE of the memory comes first */
#define OWNER_SHARE 2
#define BLOCK_SHARE 2
#define JAX_REMEDY  "XLA_PYTHON_CLIENT_PREALLOCATE=false or a lower XLA_PYTHON_CLIENT_MEM_FRACTION"

/* Frameworks, by parts of the names of frames' files and of libraries. */
static const struct framework {
    const char *part;
    const char *name;
    const char *remedy;
} frameworks[] = {
    {"/vllm/", "vLLM", "a lower gpu_memory_utilization"},
    {"/jax/", "JAX", JAX_REMEDY},
    {"jaxlib", "JAX", JAX_REMEDY},
    {"xla_extension", "JAX", JAX_REMEDY},
    {"tensorflow", "TensorFlow", "TF_FORCE_GPU_ALLOW_GROWTH=true"},
};
#define FRAMEWORKS (sizeof frameworks / sizeof frameworks[0])

/* Returns the framework that comes first in the table: `found`, or that of the path. */
static const struct framework *framework_of(const struct kernel_name *path,
                                            const struct framework *found)
{
    const struct framework *f = frameworks;
    while (f < (found ? found : frameworks + FRAMEWORKS) && !(path && strstr(path->raw, f->part)))
        f++;
    return f < frameworks + FRAMEWORKS ? f : NULL;
}

const char *memory_preallocator(const struct memory_report *m, const struct process *p,
                                const char **remedy)
{
    const struct stack_table *t = &m->walk.survey.stacks;
    const struct framework *found = NULL;
    for (uint32_t i = 0; i < t->frame_count; i++) {
        const struct stack_frame *f = &t->frames[i];
        const struct stack_place *place =
            f->process == p->index && frame_kind(f->word) == FRAME_PYTHON
                ? stack_table_place(t, p->index, frame_python(f->word))
                : NULL;
        found = framework_of(place ? place->file : NULL, found);
    }
    for (uint32_t i = 0; i < t->module_count; i++)
        if (t->modules[i].process == p->index)
            found = framework_of(t->modules[i].path, found);
    *remedy = found ? found->remedy : NULL;
    return found ? found->name : NULL;
}

/* The growing owner with the most memory in that place; NULL: none, or it is too small. */
static const struct memory_held *leak_of(const struct memory_report *m,
                                         const struct memory_oom *oom)
{
    for (uint32_t i = 0; i < oom->owner_count; i++) {
        const struct memory_held *held = &oom->owners[i];
        if (memory_leaks(&m->owners.list[held->owner].book.growth))
            return held->live.bytes >= oom->live / LEAK_SHARE || held->live.bytes >= oom->wanted
                       ? held
                       : NULL;
    }
    return NULL;
}

static char *fragmented_text(const struct memory_oom *oom)
{
    char idle[UNIT_TEXT_BYTES], hole[UNIT_TEXT_BYTES];
    bool fits = oom->holes.largest >= oom->wanted;
    return text_printf("PyTorch had %s reserved but free, %s%s%s",
                       bytes_text(idle, oom->reserved - oom->live),
                       fits ? "" : "in blocks of at most ", bytes_text(hole, oom->holes.largest),
                       fits ? " of it in a block for another stream, pool or size"
                            : ": try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

static char *leak_text(const struct memory_report *m, const struct memory_oom *oom,
                       const struct memory_held *leak, const char *owner)
{
    char each[UNIT_TEXT_BYTES], all[UNIT_TEXT_BYTES];
    struct memory_slope slope = {0};
    memory_slope(&m->owners.list[leak->owner].book.growth, &slope);
    bytes_text(each, slope.bytes < 1e18 ? (uint64_t)(slope.bytes + 0.5) : UINT64_MAX);
    return text_printf("%s held %s and grows by %s each %s: release it (in PyTorch, keep "
                       "loss.item() or x.detach(), not the tensor)",
                       owner, bytes_text(all, leak->live.bytes), each,
                       memory_has_steps(m, oom->process) ? "step" : "interval");
}

static char *preallocation_text(const struct memory_report *m, const struct memory_place *p,
                                const char *owner)
{
    char bytes[UNIT_TEXT_BYTES];
    const char *remedy = NULL, *by = memory_preallocator(m, p->process, &remedy);
    return text_printf("%s (%.0f%% of the device) is one block that %s%s%s%s allocated in advance; "
                       "gpuprof does not see what is in it%s%s",
                       bytes_text(bytes, p->largest.bytes),
                       100.0 * (double)p->largest.bytes / (double)p->total, by ? by : owner,
                       by ? " (" : "", by ? owner : "", by ? ")" : "",
                       by ? "; to lower it, set " : "", by ? remedy : "");
}

/* True if there was room that PyTorch's allocator did not take: it queries the driver before it
 * gives up. A query before the process's last allocations does not count. */
static bool is_limited(const struct memory_oom *oom)
{
    return oom->where == MEMORY_OF_TENSORS && oom->free != UINT64_MAX && oom->free >= oom->wanted &&
           oom->total > oom->on_device && oom->free <= oom->total - oom->on_device;
}

/* Advice that names an owner; else about the device. */
static struct memory_advice advise(const struct memory_report *m, const struct memory_oom *oom,
                                   const struct memory_held *leak, const struct memory_place *block,
                                   const char *owner)
{
    char one[UNIT_TEXT_BYTES], other[UNIT_TEXT_BYTES], rest[UNIT_TEXT_BYTES];
    bool is_of_device = oom->where != MEMORY_OF_HOST && oom->total;
    if (leak)
        return (struct memory_advice){"leak", leak_text(m, oom, leak, owner)};
    if (block)
        return (struct memory_advice){"preallocation", preallocation_text(m, block, owner)};
    if (is_limited(oom))
        return (struct memory_advice){
            "limited", text_printf("%s of the device were free, but the program set a limit; raise "
                                   "it (torch.cuda.set_per_process_memory_fraction, or the "
                                   "fraction in PYTORCH_CUDA_ALLOC_CONF)",
                                   bytes_text(one, oom->free))};
    if (is_of_device && oom->on_device < oom->total && oom->wanted < oom->total - oom->on_device)
        return (struct memory_advice){
            "hidden",
            text_printf("the process held only %s of the device's %s: more than %s of the rest "
                        "belonged to other processes, contexts, modules or libraries; nvidia-smi "
                        "names the processes",
                        bytes_text(one, oom->on_device), bytes_text(other, oom->total),
                        bytes_text(rest, oom->total - oom->on_device - oom->wanted))};
    if (oom->owner_count && oom->owners[0].live.bytes >= oom->live / OWNER_SHARE)
        return (struct memory_advice){
            "one-owner",
            text_printf("%s held %s of it (%.0f%%): make that smaller first", owner,
                        bytes_text(one, oom->owners[0].live.bytes),
                        100.0 * (double)oom->owners[0].live.bytes / (double)oom->live)};
    return (struct memory_advice){
        "full",
        memory_text("many owners shared the memory ('gpuprof memory' lists them): use smaller "
                    "batches, gradient checkpointing or lower precision")};
}

struct memory_advice memory_advise(const struct memory_report *m, const struct memory_oom *oom)
{
    if (oom->where != MEMORY_OF_HOST && oom->total && oom->wanted > oom->total)
        return (struct memory_advice){
            "larger-than-device",
            memory_text("the request is larger than the device: use "
                        "smaller batches, a smaller model or several devices")};
    if (oom->where == MEMORY_OF_TENSORS && oom->reserved >= oom->live &&
        oom->reserved - oom->live >= oom->wanted)
        return (struct memory_advice){
            oom->holes.largest >= oom->wanted ? "kept-apart" : "fragmented", fragmented_text(oom)};
    const struct memory_held *leak = leak_of(m, oom);
    /* A block of half the device or more; PyTorch's blocks are known one by one. */
    const struct memory_place *block =
        oom->where == MEMORY_OF_TENSORS
            ? NULL
            : memory_place_find(m, oom->process, oom->device, MEMORY_OF_DEVICE);
    if (block && (!block->total || block->largest.bytes < block->total / BLOCK_SHARE))
        block = NULL;
    char *owner = memory_owner_text(m, leak    ? leak->origin
                                       : block ? block->largest.origin
                                               : oom->owners[0].origin);
    struct memory_advice advice = advise(m, oom, leak, block, owner);
    free(owner);
    return advice;
}
