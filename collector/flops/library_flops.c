/* SPDX-License-Identifier: Apache-2.0 */
#include "flops/library_flops.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/memory.h"
#include "record/gpu_record.h"

/* Bits of a number by cudaDataType; complex types have two numbers. */
static const uint8_t type_bits[] = {
    32, 64, 16, 8,  64, 128, 32, 16, 8,   16, 32,  64, 32, 64, 16, 32, 4,
    8,  4,  8,  16, 32, 16,  32, 64, 128, 64, 128, 8,  8,  8,  6,  6,  4,
};

static unsigned library_type_bits(uint64_t type)
{
    return type < sizeof type_bits ? type_bits[type] : 0;
}

/* Real types are even, except the oldest ones; from 28 on all are real. */
static bool library_type_is_complex(uint64_t type)
{
    return (type >= 4 && type <= 7) || (type > 7 && type < 28 && type % 2);
}

void library_shape_count(uint64_t *shape, uint64_t count, uint8_t type)
{
    shape[SHAPE_COUNT] = count;
    shape[SHAPE_TYPE] = type;
    if (__builtin_mul_overflow(count, library_type_bits(type) / 8, &shape[SHAPE_BYTES]))
        shape[SHAPE_BYTES] = 0;
}

static const char *library_flops_text_of(uint64_t type)
{
    const char *text = cuda_type_text((unsigned)type);
    return text ? text : "?";
}

/* Prints "bf16", or "e4m3*e5m2->bf16": the factors, and the result if it differs. */
static void put_types(const uint64_t *s, FILE *out)
{
    bool is_tf32 = s[SHAPE_A_TYPE] == 0 && s[SHAPE_COMPUTE] == LIBRARY_COMPUTE_TF32;
    fprintf(out, " %s", is_tf32 ? "tf32" : library_flops_text_of(s[SHAPE_A_TYPE]));
    if (s[SHAPE_B_TYPE] != s[SHAPE_A_TYPE] && s[SHAPE_B_TYPE] != LIBRARY_TYPE_NONE)
        fprintf(out, "*%s", library_flops_text_of(s[SHAPE_B_TYPE]));
    if (s[SHAPE_D_TYPE] != s[SHAPE_A_TYPE] && s[SHAPE_D_TYPE] != LIBRARY_TYPE_NONE)
        fprintf(out, "->%s", library_flops_text_of(s[SHAPE_D_TYPE]));
}

/* Whether the compute type is the usual one for the data type. */
static bool is_usual(const uint64_t *s)
{
    enum { F32 = 68, F32_PEDANTIC, F64, F64_PEDANTIC, I32, I32_PEDANTIC };
    return !compute_type_text((uint16_t)s[SHAPE_COMPUTE]) ||
           (s[SHAPE_COMPUTE] == LIBRARY_COMPUTE_TF32 && s[SHAPE_A_TYPE] == 0) ||
           (s[SHAPE_COMPUTE] >= F32 && s[SHAPE_COMPUTE] <= I32_PEDANTIC);
}

static char transposed(uint64_t operation)
{
    return operation < 3 ? "ntc"[operation] : '?';
}

void library_shape_put(const uint64_t *s, FILE *out)
{
    char separator = ' ';
    for (unsigned i = SHAPE_M; i <= SHAPE_K; i++)
        if (s[i]) {
            fprintf(out, "%c%" PRId64, separator, (int64_t)s[i]);
            separator = 'x';
        }
    if (s[SHAPE_MNK] && separator == ' ')
        fprintf(out, " of several sizes, mnk %" PRIu64, s[SHAPE_MNK]);
    if (s[SHAPE_BATCH] > 1)
        fprintf(out, " batch %" PRIu64, s[SHAPE_BATCH]);
    if (s[SHAPE_A_TYPE] != LIBRARY_TYPE_NONE)
        put_types(s, out);
    if (s[SHAPE_TRANS_A] != LIBRARY_TYPE_NONE)
        fprintf(out, " %c", transposed(s[SHAPE_TRANS_A]));
    if (s[SHAPE_TRANS_B] != LIBRARY_TYPE_NONE)
        fputc(transposed(s[SHAPE_TRANS_B]), out);
    if (s[SHAPE_SIDE])
        fputs(" right", out);
    if (!is_usual(s))
        fprintf(out, " compute %s", compute_type_text((uint16_t)s[SHAPE_COMPUTE]));
    if (s[SHAPE_COUNT])
        fprintf(out, " %" PRIu64 " %s", s[SHAPE_COUNT], library_flops_text_of(s[SHAPE_TYPE]));
    else if (s[SHAPE_BYTES])
        fprintf(out, " %" PRIu64 " bytes", s[SHAPE_BYTES]);
    if (s[SHAPE_RANKS])
        fprintf(out, " over %" PRIu64 " ranks", s[SHAPE_RANKS]);
}

#define NUMBER_MAX  (1ull << 48) /* limit of a size: larger values are negative or corrupt */
#define SIZES_MAX   8            /* dimensions of a tensor */
#define TENSORS_MAX 8            /* tensors of an operation in a plan */

#define AMOUNT_MAX 0x1p63 /* larger amounts are not known, nor is NAN */

static struct library_work work_made(uint8_t type, double flops, double bytes)
{
    struct library_work work = {.type = type, .has_flops = flops < AMOUNT_MAX};
    work.has_bytes = work.has_flops && bytes < AMOUNT_MAX;
    work.flops = work.has_flops ? (uint64_t)flops : 0;
    work.bytes = work.has_bytes ? (uint64_t)bytes : 0;
    return work;
}

/* The bytes of so many numbers of that type; NAN: not known. */
static double bytes_of(uint64_t type, double numbers)
{
    return library_type_bits(type) ? ceil(library_type_bits(type) * numbers / 8) : NAN;
}

/* ---- of arguments ---------------------------------------------------------------------------- */

struct library_work library_work_of(unsigned does, const uint64_t *s)
{
    bool is_alike = s[SHAPE_A_TYPE] == s[SHAPE_B_TYPE] || s[SHAPE_B_TYPE] == LIBRARY_TYPE_NONE;
    double m = (double)s[SHAPE_M], n = (double)s[SHAPE_N], k = (double)s[SHAPE_K];
    double batch = s[SHAPE_BATCH] ? (double)s[SHAPE_BATCH] : 1;
    double each = library_type_is_complex(s[SHAPE_A_TYPE]) ? 8 : 2; /* a multiply-add */
    double size = s[SHAPE_SIDE] ? n : m, flops = NAN, bytes = NAN;
    double operands = bytes_of(s[SHAPE_A_TYPE], m * k * batch) +
                      bytes_of(s[SHAPE_B_TYPE], k * n * batch) +
                      bytes_of(s[SHAPE_D_TYPE], m * n * batch);
    if (does == API_DOES_GEMM && shape_has(s, SHAPE_M) && shape_has(s, SHAPE_N) &&
        shape_has(s, SHAPE_K)) {
        flops = each * m * n * k * batch;
        bytes = operands;
    } else if (does == API_DOES_GEMM_GROUPED && s[SHAPE_MNK]) {
        flops = each * (double)s[SHAPE_MNK];
        bytes = m * n * k > 0 ? operands : NAN; /* 0: products of several sizes */
    } else if (does == API_DOES_TRIANGLE && shape_has(s, SHAPE_M) && shape_has(s, SHAPE_N)) {
        /* m x m on the left or n x n on the right is half stored; the right-hand sides are read and
         * written. */
        flops = each / 2 * m * n * size * batch;
        bytes = 2 * bytes_of(s[SHAPE_A_TYPE], m * n * batch) +
                floor(bytes_of(s[SHAPE_A_TYPE], size * (size + 1) * batch) / 2);
    }
    return work_made((uint8_t)(is_alike ? s[SHAPE_A_TYPE] : LIBRARY_TYPE_NONE), flops, bytes);
}

/* ---- of a plan's text ------------------------------------------------------------------------ */

/* A tensor of an operation: x=8,64,56,56:f16, perhaps :channels_last, :virtual. */
struct tensor {
    const char *name;
    uint64_t sizes[SIZES_MAX];
    uint32_t count;
    uint8_t type;    /* LIBRARY_TYPE_NONE: not known */
    bool is_virtual; /* never in memory */
};

struct operation {
    const char *name;
    struct tensor tensors[TENSORS_MAX];
    uint32_t count;
};

static uint8_t type_named(const char *word)
{
    for (unsigned i = 0; word && i < LIBRARY_TYPE_NONE; i++)
        if (cuda_type_text(i) && strcmp(word, cuda_type_text(i)) == 0)
            return (uint8_t)i;
    return LIBRARY_TYPE_NONE;
}

/* Reads a tensor. A parameter (stride=1,1) has no type, and is skipped. */
static void read_tensor(char *word, struct operation *o)
{
    struct tensor *t = &o->tensors[o->count];
    *t = (struct tensor){.name = strsep(&word, "=")};
    char *sizes = strsep(&word, ":"), *type = strsep(&word, ":"), *more;
    if (!type || !*type || !*sizes)
        return;
    t->type = type_named(type);
    while ((more = strsep(&word, ":")))
        t->is_virtual |= strcmp(more, "virtual") == 0;
    while (sizes && t->count < SIZES_MAX) {
        char *end, *size = strsep(&sizes, ",");
        t->sizes[t->count++] = strtoull(size, &end, 10);
        if (!isdigit((unsigned char)*size) || *end || t->sizes[t->count - 1] > NUMBER_MAX)
            return;
    }
    o->count += !sizes;
}

static void read_operation(char *text, struct operation *o)
{
    text += strspn(text, " ");
    *o = (struct operation){.name = strsep(&text, " ")};
    while (text && o->count < TENSORS_MAX)
        read_tensor(strsep(&text, " "), o);
}

/* The tensor with one of these names: a gradient replaces its tensor. */
static const struct tensor *tensor_of(const struct operation *o, const char *name,
                                      const char *gradient)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (strcmp(o->tensors[i].name, name) == 0 || strcmp(o->tensors[i].name, gradient) == 0)
            return &o->tensors[i];
    return NULL;
}

static double sizes_product(const struct tensor *t, uint32_t from)
{
    double product = 1;
    for (uint32_t i = from; i < t->count; i++)
        product *= (double)t->sizes[i];
    return product;
}

/* What an operation computes, and with which tensors. */
struct counted {
    double flops;                    /* NAN: not known */
    const struct tensor *tensors[4]; /* the first two are multiplied */
    unsigned count;                  /* 0: it does not count */
};

static const struct counted unknown = {.flops = NAN};

/* The bytes of its tensors; without those that are virtual unless `all`. */
static double tensor_bytes(const struct counted *c, bool all)
{
    double bytes = 0;
    for (unsigned i = 0; i < c->count; i++)
        if (all || !c->tensors[i]->is_virtual)
            bytes += bytes_of(c->tensors[i]->type, sizes_product(c->tensors[i], 0));
    return bytes;
}

/*
 * Forward, or one of the two gradients. All three apply the filter to each output point, over the
 * channels of a group. With k outputs and a filter of c/groups, r, s: 2 * (n * k * p * q) *
 * (c/groups * r * s).
 */
static struct counted convolution(const struct operation *o)
{
    const struct tensor *x = tensor_of(o, "x", "dx"), *w = tensor_of(o, "w", "dw");
    const struct tensor *y = tensor_of(o, "y", "dy");
    if (!x || !w || !y || w->count < 3 || x->count != w->count || y->count != w->count)
        return unknown;
    return (struct counted){2 * sizes_product(y, 0) * sizes_product(w, 1), {x, w, y}, 3};
}

static struct counted matrices(const struct operation *o)
{
    const struct tensor *left = tensor_of(o, "a", "a"), *right = tensor_of(o, "b", "b");
    const struct tensor *out = tensor_of(o, "c", "c");
    if (!left || !right || !out || left->count < 2 || out->count < 2)
        return unknown;
    return (struct counted){
        2 * sizes_product(out, 0) * sizes_product(left, left->count - 1), {left, right, out}, 3};
}

/* Products of queries and keys, and of these and values: one each, or three and two for
 * gradients. */
static struct counted attention(const struct operation *o, double keys, double values)
{
    const struct tensor *q = tensor_of(o, "q", "q"), *k = tensor_of(o, "k", "k");
    const struct tensor *v = tensor_of(o, "v", "v"), *out = tensor_of(o, "o", "o");
    if (!q || !k || !v || !out || q->count != 4 || k->count != 4 || v->count != 4 ||
        out->count != 4)
        return unknown;
    double each = keys * (double)q->sizes[3] + values * (double)v->sizes[3];
    return (struct counted){2 * (double)q->sizes[0] * (double)q->sizes[1] * (double)q->sizes[2] *
                                (double)k->sizes[2] * each,
                            {q, k, v, out},
                            4};
}

/* Other operations are small in comparison. */
static struct counted count_operation(const struct operation *o)
{
    if (strncmp(o->name, "convolution_", 12) == 0)
        return convolution(o);
    if (strcmp(o->name, "matmul") == 0)
        return matrices(o);
    if (strcmp(o->name, "sdpa_fwd") == 0)
        return attention(o, 1, 1);
    if (strcmp(o->name, "sdpa_bwd") == 0)
        return attention(o, 3, 2);
    return strcmp(o->name, "...") == 0 ? unknown : (struct counted){0};
}

struct library_work library_plan_work(const char *text)
{
    char *copy = memory_text(text), *rest = copy, *word;
    double flops = 0, alone = 0, in_memory = 0;
    uint8_t type = LIBRARY_TYPE_NONE;
    unsigned found = 0;
    while ((word = strsep(&rest, ";"))) {
        struct operation o;
        read_operation(word, &o);
        struct counted c = count_operation(&o);
        flops += c.flops;
        if (!c.count)
            continue;
        uint8_t its =
            c.tensors[0]->type == c.tensors[1]->type ? c.tensors[0]->type : LIBRARY_TYPE_NONE;
        type = found++ && type != its ? LIBRARY_TYPE_NONE : its;
        alone += tensor_bytes(&c, true);
        in_memory += tensor_bytes(&c, false);
    }
    free(copy);
    /* With one such operation, virtual tensors count: fused ones output as much as they get. */
    return work_made(type, found ? flops : NAN, found == 1 ? alone : in_memory);
}
