/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_report.h"

#include <stdlib.h>
#include <string.h>

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

static void look_for(const struct kernel_name *path, bool *found)
{
    for (unsigned i = 0; path && i < FRAMEWORKS; i++)
        found[i] |= strstr(path->raw, frameworks[i].part) != NULL;
}

const char *memory_preallocator(const struct memory_report *m, const struct process *p,
                                const char **remedy)
{
    const struct stack_table *t = &m->walk.survey.stacks;
    bool found[FRAMEWORKS] = {false};
    for (uint32_t i = 0; i < t->frame_count; i++) {
        const struct stack_frame *f = &t->frames[i];
        const struct stack_place *place =
            f->process == p->index && frame_kind(f->word) == FRAME_PYTHON
                ? stack_table_place(t, p->index, frame_python(f->word))
                : NULL;
        look_for(place ? place->file : NULL, found);
    }
    for (uint32_t i = 0; i < t->module_count; i++)
        if (t->modules[i].process == p->index)
            look_for(t->modules[i].path, found);
    for (unsigned i = 0; i < FRAMEWORKS; i++) {
        if (!found[i])
            continue;
        *remedy = frameworks[i].remedy;
        return frameworks[i].name;
    }
    return NULL;
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

/* The place of a block of half the device or more; not with PyTorch's allocator, whose blocks are
 * known one by one. */
static const struct memory_place *preallocated(const struct memory_report *m,
                                               const struct memory_oom *oom)
{
    const struct memory_place *p =
        memory_place_find(m, oom->process, oom->device, MEMORY_OF_DEVICE);
    bool is_large = p && p->total && p->largest.bytes >= p->total / BLOCK_SHARE;
    return oom->where != MEMORY_OF_TENSORS && is_large ? p : NULL;
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
                       const struct memory_held *leak)
{
    char each[UNIT_TEXT_BYTES], all[UNIT_TEXT_BYTES];
    struct memory_slope slope = {0};
    char *owner = memory_owner_text(m, leak->origin);
    memory_slope(&m->owners.list[leak->owner].book.growth, &slope);
    bytes_text(each, slope.bytes < 1e18 ? (uint64_t)(slope.bytes + 0.5) : UINT64_MAX);
    char *text = text_printf("%s held %s and grows by %s each %s: release it (in PyTorch, keep "
                             "loss.item() or x.detach(), not the tensor)",
                             owner ? owner : "?", bytes_text(all, leak->live.bytes), each,
                             memory_has_steps(m, oom->process) ? "step" : "interval");
    free(owner);
    return text;
}

static char *preallocation_text(const struct memory_report *m, const struct memory_place *p)
{
    char bytes[UNIT_TEXT_BYTES];
    const char *remedy = NULL, *by = memory_preallocator(m, p->process, &remedy);
    char *owner = memory_owner_text(m, p->largest.origin);
    char *text = text_printf(
        "%s (%.0f%% of the device) is one block that %s%s%s%s allocated in advance; gpuprof does "
        "not see what is in it%s%s",
        bytes_text(bytes, p->largest.bytes), 100.0 * (double)p->largest.bytes / (double)p->total,
        by      ? by
        : owner ? owner
                : "?",
        by ? " (" : "", by && owner ? owner : "", by ? ")" : "", by ? "; to lower it, set " : "",
        by ? remedy : "");
    free(owner);
    return text;
}

static char *hidden_text(const struct memory_oom *oom)
{
    char own[UNIT_TEXT_BYTES], total[UNIT_TEXT_BYTES], rest[UNIT_TEXT_BYTES];
    return text_printf("the process held only %s of the device's %s: more than %s of the rest "
                       "belonged to other processes, contexts, modules or libraries; "
                       "nvidia-smi names the processes",
                       bytes_text(own, oom->on_device), bytes_text(total, oom->total),
                       bytes_text(rest, oom->total - oom->on_device - oom->wanted));
}

/* True if there was room that PyTorch's allocator did not take: it queries the driver before it
 * gives up. A query before the process's last allocations does not count. */
static bool is_limited(const struct memory_oom *oom)
{
    return oom->where == MEMORY_OF_TENSORS && oom->free != UINT64_MAX && oom->free >= oom->wanted &&
           oom->total > oom->on_device && oom->free <= oom->total - oom->on_device;
}

static char *limited_text(const struct memory_oom *oom)
{
    char room[UNIT_TEXT_BYTES];
    return text_printf("%s of the device were free, but the program set a limit; "
                       "raise it (torch.cuda.set_per_process_memory_fraction, or the fraction in "
                       "PYTORCH_CUDA_ALLOC_CONF)",
                       bytes_text(room, oom->free));
}

static char *owner_share_text(const struct memory_report *m, const struct memory_oom *oom)
{
    char bytes[UNIT_TEXT_BYTES];
    char *owner = memory_owner_text(m, oom->owners[0].origin);
    char *text = text_printf("%s held %s of it (%.0f%%): make that smaller first",
                             owner ? owner : "?", bytes_text(bytes, oom->owners[0].live.bytes),
                             100.0 * (double)oom->owners[0].live.bytes / (double)oom->live);
    free(owner);
    return text;
}

struct memory_advice memory_advise(const struct memory_report *m, const struct memory_oom *oom)
{
    const struct memory_held *leak = leak_of(m, oom);
    const struct memory_place *block = preallocated(m, oom);
    bool is_of_device = oom->where != MEMORY_OF_HOST && oom->total;
    if (is_of_device && oom->wanted > oom->total)
        return (struct memory_advice){
            "larger-than-device", strdup("the request is larger than the device: use "
                                         "smaller batches, a smaller model or several devices")};
    if (oom->where == MEMORY_OF_TENSORS && oom->reserved >= oom->live &&
        oom->reserved - oom->live >= oom->wanted)
        return (struct memory_advice){
            oom->holes.largest >= oom->wanted ? "kept-apart" : "fragmented", fragmented_text(oom)};
    if (leak)
        return (struct memory_advice){"leak", leak_text(m, oom, leak)};
    if (block)
        return (struct memory_advice){"preallocation", preallocation_text(m, block)};
    if (is_limited(oom))
        return (struct memory_advice){"limited", limited_text(oom)};
    if (is_of_device && oom->on_device < oom->total && oom->wanted < oom->total - oom->on_device)
        return (struct memory_advice){"hidden", hidden_text(oom)};
    if (oom->owner_count && oom->owners[0].live.bytes >= oom->live / OWNER_SHARE)
        return (struct memory_advice){"one-owner", owner_share_text(m, oom)};
    return (struct memory_advice){
        "full", strdup("many owners shared the memory ('gpuprof memory' lists them): use smaller "
                       "batches, gradient checkpointing or lower precision")};
}
