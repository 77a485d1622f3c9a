/* SPDX-License-Identifier: Apache-2.0 */
#include "flops/library_shape.h"

#include <inttypes.h>
#include <stddef.h>

#include "record/library_text.h"

_Static_assert(sizeof(struct library_shape) == 88, "no padding");

/* Of each cudaDataType the bits of a number; complex ones have two. */
static const uint8_t bits[] = {
    32, 64, 16, 8,  64, 128, 32, 16, 8,   16, 32,  64, 32, 64, 16, 32, 4,
    8,  4,  8,  16, 32, 16,  32, 64, 128, 64, 128, 8,  8,  8,  6,  6,  4,
};

unsigned library_type_bits(unsigned type)
{
    return type < sizeof bits ? bits[type] : 0;
}

/* The real types are even, but for those that came before the others; from 28 on all are real. */
bool library_type_is_complex(unsigned type)
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

static const char *text_of(unsigned type)
{
    return cuda_type_text(type) ? cuda_type_text(type) : "?";
}

/* "bf16", "e4m3*e5m2->bf16": what is multiplied, and what comes out of it if that is another. */
static void put_types(const struct library_shape *s, FILE *out)
{
    bool is_tf32 = s->a_type == 0 && s->compute == LIBRARY_COMPUTE_TF32;
    fprintf(out, " %s", is_tf32 ? "tf32" : text_of(s->a_type));
    if (s->b_type != s->a_type && s->b_type != LIBRARY_TYPE_NONE)
        fprintf(out, "*%s", text_of(s->b_type));
    if (s->d_type != s->a_type && s->d_type != LIBRARY_TYPE_NONE)
        fprintf(out, "->%s", text_of(s->d_type));
}

/* How exactly it is computed, where that is not what the type is as a rule. */
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
        fprintf(out, " %" PRIu64 " %s", s->count, text_of(s->count_type));
    else if (s->bytes)
        fprintf(out, " %" PRIu64 " bytes", s->bytes);
    if (s->ranks)
        fprintf(out, " over %u ranks", s->ranks);
}
