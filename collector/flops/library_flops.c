/* SPDX-License-Identifier: Apache-2.0 */
#include "flops/library_flops.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "api/api.h"
#include "record/argument_text.h"

_Static_assert(sizeof(struct library_shape) == 88, "no padding");

/* Bits of a number by cudaDataType; complex types have two numbers. */
static const uint8_t type_bits[] = {
    32, 64, 16, 8,  64, 128, 32, 16, 8,   16, 32,  64, 32, 64, 16, 32, 4,
    8,  4,  8,  16, 32, 16,  32, 64, 128, 64, 128, 8,  8,  8,  6,  6,  4,
};

static unsigned library_type_bits(unsigned type)
{
    return type < sizeof type_bits ? type_bits[type] : 0;
}

/* Real types are even, except the oldest ones; from 28 on all are real. */
static bool library_type_is_complex(unsigned type)
{
    return (type >= 4 && type <= 7) || (type > 7 && type < 28 && type % 2);
}

void library_shape_count(struct library_shape *shape, uint64_t count, uint8_t type)
{
    shape->count = count;
    shape->count_type = type;
    if (__builtin_mul_overflow(count, library_type_bits(type) / 8, &shape->bytes))
        shape->bytes = 0;
}

static const char *library_flops_text_of(unsigned type)
{
    return cuda_type_text(type) ? cuda_type_text(type) : "?";
}

/* Prints "bf16", or "e4m3*e5m2->bf16": the factors, and the result if it differs. */
static void put_types(const struct library_shape *s, FILE *out)
{
    bool is_tf32 = s->a_type == 0 && s->compute == LIBRARY_COMPUTE_TF32;
    fprintf(out, " %s", is_tf32 ? "tf32" : library_flops_text_of(s->a_type));
    if (s->b_type != s->a_type && s->b_type != LIBRARY_TYPE_NONE)
        fprintf(out, "*%s", library_flops_text_of(s->b_type));
    if (s->d_type != s->a_type && s->d_type != LIBRARY_TYPE_NONE)
        fprintf(out, "->%s", library_flops_text_of(s->d_type));
}

/* Whether the compute type is the usual one for the data type. */
static bool is_usual(const struct library_shape *s)
{
    enum { F32 = 68, F32_PEDANTIC, F64, F64_PEDANTIC, I32, I32_PEDANTIC };
    return !compute_type_text(s->compute) ||
           (s->compute == LIBRARY_COMPUTE_TF32 && s->a_type == 0) ||
           (s->compute >= F32 && s->compute <= I32_PEDANTIC);
}

static char transposed(unsigned operation)
{
    return operation < 3 ? "ntc"[operation] : '?';
}

void library_shape_put(const struct library_shape *s, FILE *out)
{
    const uint64_t sizes[] = {s->m, s->n, s->k};
    char separator = ' ';
    for (unsigned i = 0; i < 3; i++)
        if (sizes[i]) {
            fprintf(out, "%c%" PRId64, separator, (int64_t)sizes[i]);
            separator = 'x';
        }
    if (s->mnk && separator == ' ')
        fprintf(out, " of several sizes, mnk %" PRIu64, s->mnk);
    if (s->batch > 1)
        fprintf(out, " batch %" PRIu64, s->batch);
    if (s->a_type != LIBRARY_TYPE_NONE)
        put_types(s, out);
    if (s->trans_a != LIBRARY_TYPE_NONE)
        fprintf(out, " %c", transposed(s->trans_a));
    if (s->trans_b != LIBRARY_TYPE_NONE)
        fputc(transposed(s->trans_b), out);
    if (s->side)
        fputs(" right", out);
    if (!is_usual(s))
        fprintf(out, " compute %s", compute_type_text(s->compute));
    if (s->count)
        fprintf(out, " %" PRIu64 " %s", s->count, library_flops_text_of(s->count_type));
    else if (s->bytes)
        fprintf(out, " %" PRIu64 " bytes", s->bytes);
    if (s->ranks)
        fprintf(out, " over %u ranks", s->ranks);
}

#define NUMBER_MAX  (1ull << 48) /* limit of a size: larger values are negative or corrupt */
#define SIZES_MAX   8            /* dimensions of a tensor */
#define TENSORS_MAX 8            /* tensors of an operation in a plan */

enum library_formula {
    FLOPS_NONE,
    FLOPS_PRODUCT, /* matrix product: m x k, k x n */
    FLOPS_GROUPED, /* many matrix products */
    FLOPS_TRIANGLE /* triangular and m x n matrix: product or solution */
};

static const uint8_t formulae[API_ROLE_COUNT] = {
#define LIBRARY_FLOPS(ROLE, formula) [API_DOES_##ROLE] = FLOPS_##formula,
#include "flops/library_flops.def"
};

/* ---- arithmetic that does not overflow ------------------------------------------------------- */

/* Multiplies *product by `factor`; false: overflow, or an invalid factor. */
static bool times(uint64_t *product, uint64_t factor)
{
    return factor <= NUMBER_MAX && !__builtin_mul_overflow(*product, factor, product);
}

/* Adds the bytes of a * b * c numbers of that type. */
static bool add_bytes(uint64_t *bytes, unsigned type, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t bits = library_type_bits(type);
    return bits && times(&bits, a) && times(&bits, b) && times(&bits, c) &&
           !__builtin_add_overflow(*bytes, bits / 8 + (bits % 8 != 0), bytes);
}

/* ---- of arguments ---------------------------------------------------------------------------- */

static bool product(const struct library_shape *s, uint64_t batch, struct library_work *work)
{
    work->flops = library_type_is_complex(s->a_type) ? 8 : 2;
    work->has_bytes = add_bytes(&work->bytes, s->a_type, s->m, s->k, batch) &&
                      add_bytes(&work->bytes, s->b_type, s->k, s->n, batch) &&
                      add_bytes(&work->bytes, s->d_type, s->m, s->n, batch);
    return s->has_m && s->has_n && s->has_k && times(&work->flops, s->m) &&
           times(&work->flops, s->n) && times(&work->flops, s->k) && times(&work->flops, batch);
}

/* Products of several sizes: the sum of m * n * k is known; the bytes only if all have one size. */
static bool grouped(const struct library_shape *s, uint64_t batch, struct library_work *work)
{
    work->flops = library_type_is_complex(s->a_type) ? 8 : 2;
    bool is_one_size = s->m && s->n && s->k;
    if (is_one_size) {
        struct library_work same = {0};
        product(s, batch, &same);
        work->has_bytes = same.has_bytes;
        work->bytes = same.bytes;
    }
    return s->mnk && times(&work->flops, s->mnk);
}

/* A triangle, m x m on the left or n x n on the right, is half stored; the right-hand sides are
 * read and written. */
static bool triangle(const struct library_shape *s, uint64_t batch, struct library_work *work)
{
    uint64_t size = s->side ? s->n : s->m, half = 0;
    work->flops = library_type_is_complex(s->a_type) ? 4 : 1;
    work->has_bytes = size < NUMBER_MAX && add_bytes(&half, s->a_type, size, size + 1, batch) &&
                      add_bytes(&work->bytes, s->a_type, s->m, s->n, batch) &&
                      !__builtin_mul_overflow(work->bytes, 2, &work->bytes) &&
                      !__builtin_add_overflow(work->bytes, half / 2, &work->bytes);
    return s->has_m && s->has_n && times(&work->flops, s->m) && times(&work->flops, s->n) &&
           times(&work->flops, size) && times(&work->flops, batch);
}

struct library_work library_work_of(unsigned does, const struct library_shape *s)
{
    bool is_alike = s->a_type == s->b_type || s->b_type == LIBRARY_TYPE_NONE;
    struct library_work work = {.type = is_alike ? s->a_type : LIBRARY_TYPE_NONE};
    uint64_t batch = s->batch ? s->batch : 1;
    switch (does < API_ROLE_COUNT ? formulae[does] : FLOPS_NONE) {
    case FLOPS_PRODUCT: work.has_flops = product(s, batch, &work); break;
    case FLOPS_GROUPED: work.has_flops = grouped(s, batch, &work); break;
    case FLOPS_TRIANGLE: work.has_flops = triangle(s, batch, &work); break;
    default: break;
    }
    work.has_bytes &= work.has_flops;
    return work;
}

/* ---- of a plan's text ------------------------------------------------------------------------ */

struct words {
    const char *at;
    const char *end;
};

/* A tensor of an operation: x=8,64,56,56:f16, perhaps :channels_last, :virtual. */
struct tensor {
    struct words name;
    uint64_t sizes[SIZES_MAX];
    uint32_t count;
    uint8_t type;    /* LIBRARY_TYPE_NONE: not known */
    bool is_virtual; /* never in memory */
};

struct operation {
    struct words name;
    struct tensor tensors[TENSORS_MAX];
    uint32_t count;
};

static struct words library_flops_cut(struct words *from, char at)
{
    struct words word = *from;
    const char *found = memchr(from->at, at, (size_t)(from->end - from->at));
    word.end = found ? found : from->end;
    from->at = found ? found + 1 : from->end;
    return word;
}

static bool library_flops_is_word(struct words w, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(w.end - w.at) == length && memcmp(w.at, text, length) == 0;
}

static uint8_t type_named(struct words w)
{
    for (unsigned i = 0; i < LIBRARY_TYPE_NONE; i++)
        if (cuda_type_text(i) && library_flops_is_word(w, cuda_type_text(i)))
            return (uint8_t)i;
    return LIBRARY_TYPE_NONE;
}

static bool library_flops_read_number(struct words w, uint64_t *number)
{
    *number = 0;
    for (const char *p = w.at; p < w.end; p++) {
        if (*p < '0' || *p > '9' || *number > NUMBER_MAX)
            return false;
        *number = *number * 10 + (uint64_t)(*p - '0');
    }
    return w.at < w.end;
}

/* Reads a tensor. A parameter (stride=1,1) has no type, and is skipped. */
static void read_tensor(struct words word, struct operation *o)
{
    struct tensor *t = &o->tensors[o->count];
    *t = (struct tensor){.name = library_flops_cut(&word, '=')};
    struct words sizes = library_flops_cut(&word, ':');
    if (word.at == word.end)
        return;
    t->type = type_named(library_flops_cut(&word, ':'));
    while (word.at < word.end)
        t->is_virtual |= library_flops_is_word(library_flops_cut(&word, ':'), "virtual");
    while (sizes.at < sizes.end && t->count < SIZES_MAX)
        if (!library_flops_read_number(library_flops_cut(&sizes, ','), &t->sizes[t->count++]))
            return;
    o->count += sizes.at == sizes.end && t->count;
}

static void read_operation(struct words text, struct operation *o)
{
    while (text.at < text.end && *text.at == ' ')
        text.at++;
    *o = (struct operation){.name = library_flops_cut(&text, ' ')};
    while (text.at < text.end && o->count < TENSORS_MAX)
        read_tensor(library_flops_cut(&text, ' '), o);
}

/* The tensor with one of these names: a gradient replaces its tensor. */
static const struct tensor *tensor_of(const struct operation *o, const char *name,
                                      const char *gradient)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (library_flops_is_word(o->tensors[i].name, name) ||
            library_flops_is_word(o->tensors[i].name, gradient))
            return &o->tensors[i];
    return NULL;
}

static bool times_sizes(uint64_t *product, const struct tensor *t, uint32_t from)
{
    for (uint32_t i = from; i < t->count; i++)
        if (!times(product, t->sizes[i]))
            return false;
    return true;
}

/* Adds the bytes of the tensors; virtual ones have none. */
static bool add_tensors(uint64_t *bytes, const struct tensor *const *tensors, unsigned count,
                        bool all)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t numbers = 1;
        if (all || !tensors[i]->is_virtual)
            if (!times_sizes(&numbers, tensors[i], 0) ||
                !add_bytes(bytes, tensors[i]->type, numbers, 1, 1))
                return false;
    }
    return true;
}

/* What an operation computes, and with which tensors. */
struct counted {
    uint64_t flops;
    const struct tensor *tensors[4]; /* the first two are multiplied */
    unsigned count;
};

/*
 * Forward, or one of the two gradients. All three apply the filter to each output point, over the
 * channels of a group. With k outputs and a filter of c/groups, r, s: 2 * (n * k * p * q) *
 * (c/groups * r * s).
 */
static bool convolution(const struct operation *o, struct counted *c)
{
    const struct tensor *x = tensor_of(o, "x", "dx"), *w = tensor_of(o, "w", "dw");
    const struct tensor *y = tensor_of(o, "y", "dy");
    if (!x || !w || !y || w->count < 3 || x->count != w->count || y->count != w->count)
        return false;
    *c = (struct counted){2, {x, w, y}, 3};
    return times_sizes(&c->flops, y, 0) && times_sizes(&c->flops, w, 1);
}

static bool matrices(const struct operation *o, struct counted *c)
{
    const struct tensor *left = tensor_of(o, "a", "a"), *right = tensor_of(o, "b", "b");
    const struct tensor *out = tensor_of(o, "c", "c");
    if (!left || !right || !out || left->count < 2 || out->count < 2)
        return false;
    *c = (struct counted){2, {left, right, out}, 3};
    return times_sizes(&c->flops, out, 0) && times(&c->flops, left->sizes[left->count - 1]);
}

/* Products of queries and keys, and of these and values: one each, or three and two for
 * gradients. */
static bool attention(const struct operation *o, unsigned keys, unsigned values, struct counted *c)
{
    const struct tensor *q = tensor_of(o, "q", "q"), *k = tensor_of(o, "k", "k");
    const struct tensor *v = tensor_of(o, "v", "v"), *out = tensor_of(o, "o", "o");
    if (!q || !k || !v || !out || q->count != 4 || k->count != 4 || v->count != 4 ||
        out->count != 4 || q->sizes[3] > NUMBER_MAX || v->sizes[3] > NUMBER_MAX)
        return false;
    *c = (struct counted){2, {q, k, v, out}, 4};
    return times(&c->flops, q->sizes[0]) && times(&c->flops, q->sizes[1]) &&
           times(&c->flops, q->sizes[2]) && times(&c->flops, k->sizes[2]) &&
           times(&c->flops, keys * q->sizes[3] + values * v->sizes[3]);
}

enum counts { COUNTS_NOT, COUNTS, COUNTS_UNKNOWN };

/* Other operations are small in comparison. */
static enum counts count_operation(const struct operation *o, struct counted *c)
{
    bool is_known;
    if (library_flops_is_word(o->name, "convolution_forward") ||
        library_flops_is_word(o->name, "convolution_backward_data") ||
        library_flops_is_word(o->name, "convolution_backward_filter"))
        is_known = convolution(o, c);
    else if (library_flops_is_word(o->name, "matmul"))
        is_known = matrices(o, c);
    else if (library_flops_is_word(o->name, "sdpa_fwd"))
        is_known = attention(o, 1, 1, c);
    else if (library_flops_is_word(o->name, "sdpa_bwd"))
        is_known = attention(o, 3, 2, c);
    else
        return library_flops_is_word(o->name, "...") ? COUNTS_UNKNOWN : COUNTS_NOT;
    return is_known ? COUNTS : COUNTS_UNKNOWN;
}

struct library_work library_plan_work(const char *text, size_t bytes)
{
    static const struct library_work unknown = {.type = LIBRARY_TYPE_NONE};
    struct library_work all = unknown;
    struct words rest = {text, text + bytes};
    uint64_t alone = 0;
    unsigned found = 0;
    bool has_alone = true, has_bytes = true;
    while (rest.at < rest.end) {
        struct operation o;
        struct counted c;
        read_operation(library_flops_cut(&rest, ';'), &o);
        enum counts counts = count_operation(&o, &c);
        if (counts == COUNTS_UNKNOWN ||
            (counts == COUNTS && __builtin_add_overflow(all.flops, c.flops, &all.flops)))
            return unknown;
        if (counts == COUNTS_NOT)
            continue;
        uint8_t type =
            c.tensors[0]->type == c.tensors[1]->type ? c.tensors[0]->type : LIBRARY_TYPE_NONE;
        all.type = found++ && all.type != type ? LIBRARY_TYPE_NONE : type;
        has_alone = has_alone && add_tensors(&alone, c.tensors, c.count, true);
        has_bytes = has_bytes && add_tensors(&all.bytes, c.tensors, c.count, false);
    }
    all.has_flops = found;
    all.has_bytes = found && (found == 1 ? has_alone : has_bytes);
    /* With one such operation, virtual tensors count: fused ones output as much as they get. */
    all.bytes = found == 1 ? alone : all.bytes;
    return all;
}
