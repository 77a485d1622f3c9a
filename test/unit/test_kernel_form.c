/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of kernels' names, and which of several things of one key are pairs. What of names of whole
 * programs comes together is in test/cases/kernel_pairs.txt. */
#include "unit_test.h"

#include <math.h>
#include <string.h>

#include "diff/kernel_form.h"
#include "diff/pairing.h"

/* The form of `form`, in new memory. */
static char *form_of(const char *name, enum kernel_form form)
{
    char *text = strdup(name);
    size_t length = strlen(text);
    for (unsigned i = FORM_FUNCTION; i <= form; i++) {
        size_t before = length;
        length = kernel_form_make((enum kernel_form)i, text, length);
        assert_true(length <= before);
    }
    text[length] = '\0';
    return text;
}

static void test_forms(void **state)
{
    static const struct {
        enum kernel_form form;
        const char *name, *expected;
    } names[] = {
        {FORM_FUNCTION, "void f<int>(int, g(*)(int))", "f<int>"},
        {FORM_FUNCTION, "std::enable_if<(4>3), void>::type n::f<3>(float*)", "n::f<3>"},
        {FORM_FUNCTION, "f(int)::{lambda()#1}::operator()() const",
         "f(int)::{lambda()#1}::operator()"},
        {FORM_FUNCTION, "bool operator< <int>(a<int> const&)", "operator< <int>"},
        {FORM_FUNCTION, "void (anonymous namespace)::f(int) [clone .isra.0]",
         "(anonymous namespace)::f"},
        {FORM_FUNCTION, "kernel 12", "kernel 12"},
        {FORM_FUNCTION, "clamp.kd", "clamp"},
        {FORM_SOURCE, "(anonymous namespace)::f<{lambda(int)#12}, 'lambda3'>",
         "{anon}::f<{lambda(int)}, 'lambda'>"},
        {FORM_SOURCE, "_GLOBAL__N__28f4c1d7_14_Loss_kernel_cu_9a1bd0f2_1187::f",
         "Loss_kernel_cu::f"},
        {FORM_SOURCE, "_INTERNAL_3c1a55f0_7_scan_cu_71e2aa04::f", "scan_cu::f"},
        {FORM_SOURCE, "_GLOBAL__N__::f", "::f"},
        {FORM_SOURCE, "cub::CUB_200302_800_NS::f<std::__1::g, CUB_other::h>",
         "cub::f<std::g, CUB_other::h>"},
        {FORM_SOURCE, "f<__nv_dl_tag<void (*)(int), &g, 3u>, 4u>",
         "f<__nv_dl_tag<void (*)(int), &g>, 4u>"},
        {FORM_SOURCE, "average__static__5b1d09c2f4a7e836", "average"},
        {FORM_SOURCE, "static__beef", "static__beef"},
        {FORM_FUNCTORS, "f<4, n::Fill<float>, at::detail::Array<char*, 1> >", "f<n::Fill>"},
        {FORM_FUNCTORS, "f<unsigned long long, float const*, c10::BFloat16&, -1, 4ul, true, (E)2>",
         "f"},
        {FORM_FUNCTORS, "f<g<Op<int> >(View&, Op<int> const&)::{lambda(int)}>(int)::h",
         "f<g<Op>::{lambda}>::h"},
        {FORM_FUNCTORS, "f<__nv_dl_tag<&(n::g(View&))>>", "f<__nv_dl_tag<&(n::g)>>"},
        {FORM_FUNCTORS, "f<std::tuple<int, Op>, std::tuple<int, float> >", "f<std::tuple<Op>>"},
        {FORM_FUNCTORS, "n::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(p)",
         "cutlass_80_simt_sgemm_128x64_8x5_nn_align1"},
        {FORM_TEMPLATE, "n::(anonymous namespace)::f<Op<g> >::h<i>", "n::f::h"},
        {FORM_TILES, "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "nvjet_hsh_NNT"},
        {FORM_TILES, "my_gemm_128x256_h", "my_gemm_128x256_h"},
        {FORM_TILES, "Cijk_Alik_Bljk_HHS_BH_MTx_MT128x128x32_SN", "Cijk_Alik_Bljk_HHS_BH_MTx"},
        {FORM_OPERATION, "ampere_sgemm_128x64_nn", "gemm f32 nn"},
        {FORM_OPERATION, "cutlass_80_tensorop_s1688gemm_256x128_16x3_nt_align4", "gemm tf32 nt"},
        {FORM_OPERATION, "Cijk_Ailk_Bjlk_BBS_BH_MT128x128x32", "gemm bf16 nt"},
        {FORM_OPERATION, "ampere_gemm_1x1", "ampere_gemm"},
        {FORM_GENERATED, "triton_poi_fused_add_relu_12", "triton_poi_fused_add_relu"},
        {FORM_GENERATED, "triton_poi_fused_add_3_0d1d2d", "triton_poi_fused_add"},
        {FORM_GENERATED, "diffusion_step_12", "diffusion_step_12"},
        {FORM_GENERATED, "gemm_fusion_dot_7_0", "gemm_fusion_dot"},
        {FORM_GENERATED, "ncclKernel_ReduceScatter_RING_LL_Sum___nv_bfloat16(int)",
         "nccl ReduceScatter Sum bf16"},
        {FORM_GENERATED, "ncclDevKernel_AllGather_RING_LL(int)", "nccl AllGather"},
        {FORM_GENERATED, "_", "_"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *text = form_of(names[i].name, names[i].form);
        assert_string_equal(text, names[i].expected);
        free(text);
    }
    assert_true(kernel_has_ordinal("triton_poi_fused_add_3", 22));
    assert_false(kernel_has_ordinal("triton_poi_fused_add", 20));
    assert_false(kernel_has_ordinal("my_kernel_3", 11));
}

/* So much of each would take minutes if the time grew with the square of the length. */
static void test_hostile(void **state)
{
    static const char *const parts[] = {
        "<",  "(",  "a<",           "a<b,",      "((a>",   "a<(",          ">",
        ")",  "{(", "::_",          "int ",      "X<int,", "__nv_dl_tag<", "_0d",
        "_1", "#",  "_GLOBAL__N__", "operator<", ",",      "\xff"};
    static const size_t bytes = 1 << 17;
    char *text = malloc(bytes + 1);
    (void)state;
    assert_non_null(text);
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (unsigned closes = 0; closes < 3; closes++) {
            size_t length = strlen(parts[i]), at = 0;
            for (; at + length <= (closes ? bytes / 2 : bytes); at += length)
                memcpy(text + at, parts[i], length);
            memset(text + at, closes == 2 ? ')' : '>', bytes - at);
            text[bytes] = '\0';
            length = bytes;
            for (unsigned form = FORM_FUNCTION; form < KERNEL_FORMS; form++) {
                size_t next = kernel_form_make((enum kernel_form)form, text, length);
                assert_true(next <= length);
                length = next;
            }
        }
    free(text);
}

/* What is nested deeper than is followed is left out, and what stands around it is kept. */
static void test_depth(void **state)
{
    char name[6 * FORM_DEPTH_MAX + 64] = "f<Op";
    (void)state;
    for (unsigned i = 0; i < 2 * FORM_DEPTH_MAX; i++)
        strcat(name, "<A");
    for (unsigned i = 0; i < 2 * FORM_DEPTH_MAX + 1; i++)
        strcat(name, ">");
    strcat(name, "::g");
    char *form = form_of(name, FORM_FUNCTORS);
    assert_true(strlen(form) < 4 * FORM_DEPTH_MAX);
    assert_memory_equal(form, "f<Op<A<A", 8);
    assert_string_equal(form + strlen(form) - 5, ">>::g");
    free(form);
    form = form_of(name, FORM_TEMPLATE);
    assert_string_equal(form, "f::g");
    free(form);
}

static int note_pair(void *context, const struct pairing_entry *base,
                     const struct pairing_entry *other)
{
    char *text = context;
    snprintf(text + strlen(text), 256 - strlen(text), "%u-%u ", base->index, other->index);
    return 0;
}

static void test_pairing(void **state)
{
    /* Two of one key and three; what nobody else has; as many on both sides, in their order. */
    struct pairing_entry list[] = {
        {{1}, 1, 12, 12, 90}, {{1}, 0, 1, 1, 10},  {{1}, 1, 10, 10, 11},  {{1}, 0, 2, 2, 80},
        {{1}, 1, 11, 11, 30}, {{2}, 0, 3, 3, 5},   {{3}, 1, 13, 13, 5},   {{4}, 0, 4, 4, 1},
        {{4}, 0, 5, 5, 100},  {{4}, 1, 15, 15, 1}, {{4}, 1, 14, 14, 100}, {{5}, 0, 6, 6, 1},
        {{5}, 1, 16, 16, 1},
    };
    uint32_t count = sizeof list / sizeof list[0];
    char pairs[256] = "";
    (void)state;
    assert_int_equal(pairing_make(list, count, false, note_pair, pairs), 0);
    assert_string_equal(pairs, "1-10 2-12 4-14 5-15 6-16 ");
    *pairs = '\0';
    assert_int_equal(pairing_make(list, count, true, note_pair, pairs), 0);
    assert_string_equal(pairs, "6-16 ");
}

/* The assignment is the best of all that keep the order. */
static double best(const double *few, unsigned few_count, const double *many, unsigned many_count)
{
    if (!few_count)
        return 0;
    double least = INFINITY;
    for (unsigned k = 0; k + few_count <= many_count; k++) {
        double cost = fabs(log((few[0] + 1) / (many[k] + 1))) +
                      best(few + 1, few_count - 1, many + k + 1, many_count - k - 1);
        least = cost < least ? cost : least;
    }
    return least;
}

struct summed {
    double cost;
    uint32_t pairs, last[2];
};

static int sum_pair(void *context, const struct pairing_entry *base,
                    const struct pairing_entry *other)
{
    struct summed *s = context;
    s->cost += fabs(log((base->ns + 1) / (other->ns + 1)));
    assert_true(!s->pairs || (base->index > s->last[0] && other->index > s->last[1]));
    s->last[0] = base->index;
    s->last[1] = other->index;
    s->pairs++;
    return 0;
}

static void test_pairing_is_best(void **state)
{
    uint64_t seed = 11;
    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        unsigned counts[2] = {1 + (unsigned)(random_of(&seed) % 6),
                              1 + (unsigned)(random_of(&seed) % 6)};
        double ns[2][6];
        struct pairing_entry list[12];
        struct summed s = {0};
        uint32_t count = 0;
        for (unsigned side = 0; side < 2; side++)
            for (unsigned i = 0; i < counts[side]; i++) {
                ns[side][i] = (double)(random_of(&seed) % 50);
                list[count++] =
                    (struct pairing_entry){.side = side, .index = i, .order = i, .ns = ns[side][i]};
            }
        unsigned few = counts[0] > counts[1];
        assert_int_equal(pairing_make(list, count, false, sum_pair, &s), 0);
        assert_int_equal(s.pairs, counts[few]);
        double least = best(ns[few], counts[few], ns[!few], counts[!few]);
        assert_true(fabs(s.cost - least) < 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),           cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_depth),           cmocka_unit_test(test_pairing),
        cmocka_unit_test(test_pairing_is_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
