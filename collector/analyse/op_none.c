/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/op_none.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"

int op_none_init(struct op_none *n, struct walk *walk)
{
    *n = (struct op_none){.walk = walk};
    n->has_ops = calloc(walk->rec->thread_count + 1u, sizeof *n->has_ops);
    return n->has_ops ? 0 : GPUPROF_NO_MEMORY;
}

void op_none_release(struct op_none *n)
{
    free(n->rows);
    free(n->has_ops);
    key_map_release(&n->places);
}

/* Torch's compiler names its kernels so, and whoever else writes them as it does. */
static bool is_compiled(const struct kernel_name *kernel)
{
    return kernel && strncmp(kernel->raw, "triton_", 7) == 0;
}

static struct key key_of(const struct op_none_row *row)
{
    uint64_t process = row->process ? row->process->index + 1ull : 0;
    return (struct key){process << 8 | (uint64_t)row->cause << 4 | row->origin,
                        (uintptr_t)row->name, row->thread};
}

/* Adds what `made` has to the row like it: its number, from 1 on, or an error. */
static int64_t add(struct op_none *n, const struct op_none_row *made)
{
    uint64_t place = key_map_get(&n->places, key_of(made));
    struct op_none_row bare = *made;
    if (!place && n->count >= OP_NONE_ROWS_MAX) { /* of its cause there is one for all */
        bare = (struct op_none_row){.cause = made->cause, .count = made->count, .ns = made->ns};
        place = key_map_get(&n->places, key_of(&bare));
    }
    if (!place) {
        if (!ARRAY_ROOM(n->rows, n->count, n->capacity, 64))
            return GPUPROF_NO_MEMORY;
        n->rows[n->count++] = bare;
        int error = key_map_set(&n->places, key_of(&bare), n->count);
        return error < 0 ? error : (int64_t)n->count;
    }
    n->rows[place - 1].count += made->count;
    n->rows[place - 1].ns += made->ns;
    return (int64_t)place;
}

static int64_t add_work(struct op_none *n, struct op_none_row made, uint64_t kernel)
{
    const struct kernel_name *name = kernel ? walk_kernel(n->walk, made.process, kernel) : NULL;
    if (!made.name && is_compiled(name))
        made = (struct op_none_row){.name = name, .count = made.count, .ns = made.ns};
    made.process = NULL;
    return add(n, &made);
}

int op_none_add(struct op_none *n, const struct slice *s, const struct kernel_name *label)
{
    const struct record *r = s->event.record;
    struct op_none_row made = {.cause = label           ? NONE_COMPILED
                                        : !s->is_called ? NONE_CALL
                                                        : NONE_BETWEEN,
                               .name = label,
                               .process = s->event.process,
                               .count = 1,
                               .ns = s->event.end_ns - s->event.begin_ns};
    if (made.cause == NONE_BETWEEN && !n->has_ops[s->call.thread])
        made.thread = s->call.thread + 1;
    uint64_t kernel = r->type == RECORD_KERNEL ? record_arg(r, KERNEL_NAME_INDEX) : 0;
    struct key key = {(uint64_t)made.process->index << 32 | made.thread, kernel,
                      (uint64_t)made.cause << 48 ^ (uintptr_t)label};
    unsigned slot = (unsigned)(kernel ^ made.thread ^ made.cause << 3) % NONE_RECENT;
    struct key known = n->recent[slot].key;
    int64_t row = n->recent[slot].row;
    if (row && known.a == key.a && known.b == key.b && known.c == key.c) {
        n->rows[row - 1].count++;
        n->rows[row - 1].ns += made.ns;
        return 0;
    }
    row = add_work(n, made, kernel);
    if (row < 0)
        return (int)row;
    n->recent[slot].key = key;
    n->recent[slot].row = row;
    return 0;
}

int op_none_add_node(struct op_none *n, const struct graph_node *node, enum graph_origin origin)
{
    struct op_none_row made = {.cause = NONE_GRAPH,
                               .origin = origin,
                               .process = node->process,
                               .count = node->count,
                               .ns = node->ns};
    int64_t row = add_work(n, made, node->kernel);
    return row < 0 ? (int)row : 0;
}

const char *op_none_word(enum op_none_cause cause)
{
    static const char *const words[NONE_CAUSES] = {[NONE_COMPILED] = "compiled",
                                                   [NONE_GRAPH] = "graph",
                                                   [NONE_THREAD] = "thread",
                                                   [NONE_CALL] = "call",
                                                   [NONE_BETWEEN] = "between"};
    return words[cause];
}

static const char *text_of(const struct op_none_row *row)
{
    static const char *const causes[NONE_CAUSES] = {
        [NONE_COMPILED] = "compiled code",
        [NONE_GRAPH] = "replays of graphs captured in no operator",
        [NONE_THREAD] = "calls of threads without operators",
        [NONE_CALL] = "work whose call is not known",
        [NONE_BETWEEN] = "calls between operators"};
    static const char *const graphs[GRAPH_ORIGINS] = {
        [GRAPH_WHOLE] = "replays of graphs, recorded as a whole",
        [GRAPH_UNSEEN] = "replays of graphs whose capture was not recorded",
        [GRAPH_DIFFERENT] = "replays of graphs with other nodes than were captured"};
    return row->cause == NONE_GRAPH && row->origin ? graphs[row->origin] : causes[row->cause];
}

static int tell_row(const struct op_none_row *row, struct sums *sums)
{
    char *text = NULL;
    if (asprintf(&text, "%s%s%s", text_of(row), row->name ? ": " : "",
                 row->name ? row->name->shown : "") < 0)
        return GPUPROF_NO_MEMORY;
    struct sums_row *into =
        sums_row(sums, sums_text(sums, text), sums_text(sums, op_none_word(row->cause)), 0);
    free(text);
    if (!into)
        return GPUPROF_NO_MEMORY;
    into->values[NONE_COUNT] += row->count;
    into->values[NONE_NS] += row->ns;
    return 0;
}

/* It is known now which threads have operators. */
int op_none_complete(struct op_none *n, struct sums *sums)
{
    int error = 0;
    for (uint32_t i = 0; i < n->count && error == 0; i++) {
        struct op_none_row row = n->rows[i];
        if (row.thread && !n->has_ops[row.thread - 1])
            row.cause = NONE_THREAD;
        error = tell_row(&row, sums);
    }
    return error;
}
