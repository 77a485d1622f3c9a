/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that a library's generator or an autotuner made: parts with '_' between. Which part says
 * what is common knowledge of their makers' names.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "diff/kernel_form.h"

#define DECIMAL  "0123456789"
#define FORM_MAX 64

/* A part of a name; the next one begins behind the '_'. */
struct part {
    const char *text;
    size_t length;
};

static bool next_part(const char *text, size_t length, size_t *at, struct part *p)
{
    if (*at > length)
        return false;
    const char *end = memchr(text + *at, '_', length - *at);
    *p = (struct part){text + *at, end ? (size_t)(end - text) - *at : length - *at};
    *at += p->length + 1;
    return true;
}

static bool starts(const struct part *p, const char *with)
{
    size_t n = strlen(with);
    return p->length >= n && memcmp(p->text, with, n) == 0;
}

static bool is(const struct part *p, const char *word)
{
    return strlen(word) == p->length && memcmp(p->text, word, p->length) == 0;
}

static bool has(const struct part *p, const char *word)
{
    return memmem(p->text, p->length, word, strlen(word)) != NULL;
}

static bool is_one_of(const struct part *p, const char *const *list)
{
    while (*list && !is(p, *list))
        list++;
    return *list;
}

static bool is_made_of(const char *text, size_t length, const char *set)
{
    for (size_t i = 0; i < length; i++)
        if (!text[i] || !strchr(set, text[i]))
            return false;
    return length > 0;
}

/* ---- families of matrix products and convolutions -------------------------------------------- */

static bool is_tuned(const char *text, size_t length)
{
    static const char *const makers[] = {"ampere_", "volta_",   "turing_", "maxwell_", "pascal_",
                                         "hopper_", "cutlass_", "nvjet_",  "cudnn_",   "Cijk_"};
    const struct part name = {text, length};
    for (unsigned i = 0; i < sizeof makers / sizeof makers[0]; i++)
        if (starts(&name, makers[i]))
            return true;
    size_t at = 0;
    struct part arch, maker;
    return next_part(text, length, &at, &arch) && next_part(text, length, &at, &maker) &&
           starts(&arch, "sm") && is_made_of(arch.text + 2, arch.length - 2, DECIMAL) &&
           is(&maker, "xmma");
}

/* What was chosen for the sizes at hand: 128x256, stage4, ldg8, coopA ... */
static bool is_choice(const struct part *p)
{
    static const char *const words[] = {
        "",       "stages", "execute", "segment",  "k",        "off",   "bz",   "kernel",
        "cublas", "cudnn",  "f2f",     "coop",     "coopA",    "coopB", "knob", "splitK",
        "medium", "small",  "large",   "interior", "cublasLt", NULL};
    static const char *const sized[] = {"tilesize", "stage", "warpsize", "warpgroupsize", "tensor",
                                        "sliced",   "ldg",   "align",    "cga",           "kernel",
                                        "tile",     "g",     "v"};
    if (is_one_of(p, words) || is_made_of(p->text, p->length, DECIMAL "x"))
        return true;
    for (unsigned i = 0; i < sizeof sized / sizeof sized[0]; i++) {
        size_t n = strlen(sized[i]);
        if (starts(p, sized[i]) && is_made_of(p->text + n, p->length - n, DECIMAL "xt"))
            return true;
    }
    return false;
}

size_t form_tiles(char *text, size_t length)
{
    if (!is_tuned(text, length))
        return length;
    const struct part name = {text, length};
    bool is_jet = starts(&name, "nvjet_"), is_tensile = starts(&name, "Cijk_");
    size_t written = 0;
    struct part p;
    for (size_t at = 0; next_part(text, length, &at, &p);) {
        if (is_tensile && starts(&p, "MT") && p.length > 2 && strchr(DECIMAL, p.text[2]))
            break; /* all that follows is how it was made */
        if ((written && is_choice(&p)) || (is_jet && (is(&p, "h") || is(&p, "v"))))
            continue;
        if (written)
            text[written++] = '_';
        memmove(text + written, p.text, p.length);
        written += p.length;
    }
    return written;
}

static const char *type_of_letter(char letter)
{
    switch (letter) {
    case 'h':
    case 'H': return "f16";
    case 't':
    case 'B': return "bf16";
    case 's':
    case 'S': return "f32";
    case 'd':
    case 'D': return "f64";
    default: return NULL;
    }
}

/* The type of a matrix that a part names; NULL: it names none. */
static const char *type_of_part(const struct part *p)
{
    static const char *const types[][2] = {
        {"bf16", "bf16"}, {"tf32", "tf32"}, {"fp16", "f16"}, {"f16", "f16"},
        {"fp32", "f32"},  {"f32", "f32"},   {"f64", "f64"},  {"fp64", "f64"},
        {"e4m3", "e4m3"}, {"e5m2", "e5m2"}, {"int8", "i8"},  {"i8", "i8"},
    };
    for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++)
        if (starts(p, types[i][0]))
            return types[i][1];
    return NULL;
}

/* What parts of a name say together; NULL: nothing of that. */
struct operation {
    const char *what;
    const char *type;
    const char *word_type; /* as the word for what is done has it: sgemm */
    char layout[8];
    bool is_tf32;
};

static void read_part(struct operation *o, const struct part *p)
{
    static const char *const whats[] = {"sdpa", "fprop", "bprop", "dgrad", "wgrad", "gemm"};
    static const char *const layouts[] = {"nn", "nt", "tn", "tt", "nhwc", "nchw", NULL};
    const char *type = type_of_part(p);
    for (unsigned i = 0; !o->what && i < sizeof whats / sizeof whats[0]; i++)
        o->what = has(p, whats[i]) ? whats[i] : NULL;
    o->is_tf32 |= has(p, "tf32");
    if (!o->type)
        o->type = type;
    if (!type && has(p, "gemm") && !o->word_type)
        /* s1688gemm multiplies TF32, unless a type is named; other instructions need one. */
        o->word_type = starts(p, "s1688") ? "tf32"
                       : is(p, "gemm")    ? NULL
                                          : type_of_letter(*p->text);
    if (!*o->layout && is_one_of(p, layouts))
        memcpy(o->layout, p->text, p->length);
}

/* nvjet_hsh_NNT: types of factors, sums and result; layouts of both factors and the result. */
static void read_jet(struct operation *o, const struct part *p)
{
    if (p->length == 3 && is_made_of(p->text, 3, "NT"))
        snprintf(o->layout, sizeof o->layout, "%s%s", p->text[0] == 'T' ? "t" : "n",
                 p->text[1] == 'T' ? "t" : "n");
    else if (!o->type && !starts(p, "sm") && !is(p, "nvjet") && p->length >= 3)
        o->type = *p->text == 'q' ? "e4m3" : type_of_letter(*p->text);
}

/* Cijk_Alik_Bljk_HHS: a factor whose sum goes along its second index is as it is, A transposed. */
static void read_tensile(struct operation *o, const struct part *p)
{
    if (is(p, "Ailk") || is(p, "Alik"))
        o->layout[0] = is(p, "Alik") ? 't' : 'n';
    else if (is(p, "Bljk") || is(p, "Bjlk"))
        o->layout[1] = is(p, "Bjlk") ? 't' : 'n';
    else if (!o->type && !is(p, "Cijk"))
        o->type = starts(p, "F8")   ? "e4m3"
                  : starts(p, "I8") ? "i8"
                  : p->length       ? type_of_letter(*p->text)
                                    : NULL;
}

/* "gemm bf16 tn", as whoever made it calls that; a name of which too little is known stays. */
size_t form_operation(char *text, size_t length)
{
    const struct part name = {text, length};
    struct operation o = {0};
    struct part p;
    char form[FORM_MAX];
    if (!is_tuned(text, length))
        return length;
    void (*read)(struct operation *, const struct part *) = starts(&name, "nvjet_")  ? read_jet
                                                            : starts(&name, "Cijk_") ? read_tensile
                                                                                     : read_part;
    for (size_t at = 0; next_part(text, length, &at, &p);)
        read(&o, &p);
    if (read != read_part)
        o.what = "gemm";
    const char *type = o.is_tf32 ? "tf32" : o.type ? o.type : o.word_type;
    if (!o.what || !type)
        return length;
    int n = snprintf(form, sizeof form, "%s %s%s%s", o.what, type, *o.layout ? " " : "", o.layout);
    if (n <= 0 || (size_t)n > length)
        return length;
    memcpy(text, form, (size_t)n);
    return (size_t)n;
}

/* ---- what a compiler numbers ----------------------------------------------------------------- */

static size_t last_part(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] != '_')
        length--;
    return length;
}

/* "_0d1d2d3de4c" behind a kernel of Triton's: which arguments were divisible or constant. */
static size_t without_arguments(const char *text, size_t length)
{
    size_t at = last_part(text, length);
    bool is_list = at > 1 && length - at >= 2 && text[at] == '0' &&
                   is_made_of(text + at, length - at, DECIMAL "dce") &&
                   memchr(text + at, 'd', length - at);
    return is_list ? at - 1 : length;
}

static size_t without_ordinals(const char *text, size_t length)
{
    size_t at;
    while ((at = last_part(text, length)) > 1 && is_made_of(text + at, length - at, DECIMAL))
        length = at - 1;
    return length;
}

static const char *nccl_type(const struct part *p)
{
    static const char *const types[][2] = {
        {"int8", "i8"},    {"uint8", "u8"},      {"int32", "i32"}, {"uint32", "u32"},
        {"int64", "i64"},  {"uint64", "u64"},    {"half", "f16"},  {"float", "f32"},
        {"double", "f64"}, {"bfloat16", "bf16"},
    };
    static const char *const known[] = {"i8",  "u8",  "i32",  "u32",    "i64",    "u64", "f16",
                                        "f32", "f64", "bf16", "f8e4m3", "f8e5m2", NULL};
    for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++)
        if (is(p, types[i][0]))
            return types[i][1];
    for (const char *const *type = known; *type; type++)
        if (is(p, *type))
            return *type;
    return NULL;
}

/* "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", and the order of older ones: what, operation, type.
 * Who only moves data has an operation and a type in older names, which mean nothing. */
static size_t nccl_form(char *text, size_t length)
{
    static const char *const operations[] = {"Sum",    "Prod",      "Max",        "Min",
                                             "MinMax", "PreMulSum", "SumPostDiv", NULL};
    static const char *const sums[] = {"AllReduce", "ReduceScatter", "Reduce", NULL};
    struct part p, what = {0}, operation = {0};
    const char *type = NULL;
    char form[FORM_MAX];
    size_t at = 0;
    if (!next_part(text, length, &at, &p) || !next_part(text, length, &at, &what))
        return length;
    while (next_part(text, length, &at, &p)) {
        if (is_one_of(&p, operations))
            operation = p;
        else if (!type)
            type = nccl_type(&p);
    }
    bool adds = is_one_of(&what, sums) && operation.length && type;
    int n = snprintf(form, sizeof form, "nccl %.*s%s%.*s%s%s", (int)(what.length & 31), what.text,
                     adds ? " " : "", adds ? (int)operation.length : 0, adds ? operation.text : "",
                     adds ? " " : "", adds ? type : "");
    if (n <= 0 || (size_t)n >= sizeof form || (size_t)n > length || what.length > 31)
        return length;
    memcpy(text, form, (size_t)n);
    return (size_t)n;
}

/* Of Inductor: triton_poi_fused_add_12, of XLA: loop_add_fusion_3, wrapped_add_7. */
static bool is_generated(const char *text, size_t length)
{
    struct part p = {text, length};
    bool is_it = starts(&p, "triton_") || starts(&p, "wrapped_");
    for (size_t at = 0; !is_it && next_part(text, length, &at, &p);)
        is_it = is(&p, "fusion");
    return is_it;
}

bool kernel_has_ordinal(const char *text, size_t length)
{
    length = without_arguments(text, length);
    return is_generated(text, length) && without_ordinals(text, length) < length;
}

size_t form_generated(char *text, size_t length)
{
    const struct part name = {text, length};
    if (starts(&name, "ncclDevKernel_") || starts(&name, "ncclKernel_"))
        return nccl_form(text, length);
    length = without_arguments(text, length);
    return is_generated(text, length) ? without_ordinals(text, length) : length;
}
