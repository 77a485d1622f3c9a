/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of cuDNN as text: what the real library (9.19) says of its plans, cut and damaged. */
#include "library/dnn_json.h"

#include "unit_test.h"

/* Quotation marks are put in when it is used: `quoted`. */
#define TENSOR(name, type, dim, stride, is_virtual)                                                \
    "{'name':'" name "','dataType':'CUDNN_DATA_" type "','dim':[" dim "],'stride':[" stride        \
    "],'isVirtual':" is_virtual ",'isByValue':false,'vectCount':1,'vectDim':-1,"                   \
    "'ptrAlignment':16,'reordering':'CUDNN_TENSOR_REORDERING_NONE'}"
#define NODE(operation, members)                                                                   \
    "{'operation':'CUDNN_BACKEND_OPERATION_" operation "_DESCRIPTOR'," members "}"
#define BEGIN                                                                                      \
    "{'cudnnVersion':91900,'schemaVersion':4,'operationGraph':{'finalizeMode':'X','tensors':["
#define NODES "],'nodes':["
#define END                                                                                        \
    "]},'GPUProfile':{'maxGridSize':[1,2]},'engine':{'engineId':10,'knobChoices':{"                \
    "'CUDNN_KNOB_TYPE_TILE_SIZE':5}}}"

static const char *const fused_parts[] = {
    BEGIN,
    TENSOR("1", "HALF", "8,64,56,56", "200704,1,3584,64", "false"),
    ",",
    TENSOR("2", "HALF", "64,32,3,3", "288,1,96,32", "false"),
    ",",
    TENSOR("3", "HALF", "1,64,1,1", "64,1,64,64", "false"),
    ",",
    TENSOR("4", "BFLOAT16", "8,64,56,56", "200704,3136,56,1", "false"),
    ",",
    TENSOR("100", "FLOAT", "8,64,56,56", "200704,3136,56,1", "true"),
    NODES,
    NODE("CONVOLUTION_FORWARD",
         "'mode':'CUDNN_CROSS_CORRELATION','mathPrec':'CUDNN_DATA_FLOAT','alpha':1.0,'beta':0.0,"
         "'pad':[1,1],'stride':[1,1],'dilation':[1,1],'X':'1','W':'2','Y':'100','groupCount':2"),
    ",",
    NODE("POINTWISE",
         "'pointwiseMode':'CUDNN_POINTWISE_RELU_FWD','mathPrec':'CUDNN_DATA_FLOAT','upperClip':"
         "1.7976931348623157e308,'alpha1':1.0,'X':'100','Y':'4','B':'3'"),
    END,
    NULL};
static const char fused_text[] =
    "convolution_forward compute=f32 pad=1,1 stride=1,1 dilation=1,1 "
    "x=8,64,56,56:f16:channels_last w=64,32,3,3:f16:channels_last y=8,64,56,56:f32:virtual "
    "groups=2; pointwise mode=relu_fwd compute=f32 x=8,64,56,56:f32:virtual y=8,64,56,56:bf16 "
    "b=1,64,1,1:f16";

static const char *const other_parts[] = {
    BEGIN,
    TENSOR("1", "INT8", "2,4,8,8", "256,64,8,1", "false"),
    ",",
    TENSOR("2", "FP9", "2,16,512,64", "1,2,1,1", "false"),
    ",{'name':'5','dataType':'CUDNN_DATA_FLOAT','dim':[1,1,1,1],'isByValue':true},",
    "{'name':'6','dataType':'CUDNN_DATA_INT8','dim':[2,4,8,8],'vectCount':32,'vectDim':1}",
    NODES,
    NODE("SDPA_FWD", "'Q':'2','K':'2','V':'2','O':'2','scale':'5'"),
    ",",
    NODE("MATMUL", "'mathPrec':'CUDNN_DATA_INT32','matA':'6','matB':'1'"),
    ",",
    NODE("REDUCTION", "'reductionOp':'CUDNN_REDUCE_TENSOR_MAX','isDeterministic':false,'X':'1'"),
    ",",
    NODE("RESAMPLE_FWD",
         "'X':'1','mode':'CUDNN_RESAMPLE_MAXPOOL','nbSpatialDims':2,'windowDim':[[3,1],[3,1]],"
         "'compType':'CUDNN_DATA_FLOAT','nanOpt':'CUDNN_NOT_PROPAGATE_NAN',"
         "'paddingMode':'CUDNN_NEG_INF_PAD'"),
    ",",
    NODE("NORM_FORWARD",
         "'mode':'CUDNN_LAYER_NORM','fmode':'CUDNN_NORM_FWD_TRAINING','InvVariance':'1'"),
    ",{'operation':'NEW; x=1 Y','axis':-9223372036854775807,'n':99999999999999999999}",
    END,
    NULL};
static const char others_text[] =
    "sdpa_fwd q=2,16,512,64:? k=2,16,512,64:? v=2,16,512,64:? o=2,16,512,64:?; "
    "matmul compute=i32 a=2,128,8,8:i8 b=2,4,8,8:i8; "
    "reduction mode=max x=2,4,8,8:i8; "
    "resample_fwd x=2,4,8,8:i8 mode=maxpool nbspatialdims=2 compute=f32 paddingmode=neg_inf_pad; "
    "norm_forward mode=layer_norm phase=training invvariance=2,4,8,8:i8; "
    "new__x_1_y axis=-9223372036854775807";

#define JSON_MAX 4096
static char fused[JSON_MAX], others[JSON_MAX];

static void quoted(const char *const *parts, char *json)
{
    for (; *parts; parts++)
        for (const char *c = *parts; *c; c++)
            *json++ = *c == '\'' ? '"' : *c;
}

/* The text in `text`, zero-terminated; false: the JSON is not understood. */
static bool text_of(const char *json, size_t bytes, char *text, uint32_t text_max)
{
    static struct dnn_tensor tensors[DNN_TENSORS_MAX];
    char *copy = malloc(bytes ? bytes : 1); /* for what watches over the heap's bounds */
    char *buffer = malloc(text_max);
    struct dnn_text t;
    memcpy(copy, json, bytes);
    dnn_text_init(&t, buffer, text_max);
    bool is_good = dnn_json_text(copy, bytes, tensors, &t);
    assert_true(t.bytes <= text_max);
    memcpy(text, buffer, t.bytes);
    text[t.bytes] = '\0';
    free(copy);
    free(buffer);
    return is_good;
}

static void test_graphs(void **state)
{
    char text[8193];
    (void)state;
    assert_true(text_of(fused, strlen(fused), text, 8192));
    assert_string_equal(text, fused_text);
    assert_true(text_of(others, strlen(others), text, 8192));
    assert_string_equal(text, others_text);
}

/* The graph ends before the profile of the device: without what follows it is none, either. */
static void test_cut_json(void **state)
{
    char text[8193];
    (void)state;
    size_t whole = (size_t)(strstr(fused, ",\"GPUProfile\"") - fused);
    for (size_t bytes = 0; bytes <= strlen(fused); bytes++)
        assert_int_equal(text_of(fused, bytes, text, 8192), bytes >= whole);
    for (size_t bytes = 0; bytes < strlen("[{\"operationGraph\""); bytes++)
        assert_false(text_of("[{\"operationGraph\"", bytes, text, 8192));
}

/* Of operations that do not fit there is a mark, and nothing else. */
static void test_little_room(void **state)
{
    char text[8193], expected[sizeof fused_text + 8];
    const size_t first = (size_t)(strchr(fused_text, ';') - fused_text);
    (void)state;
    for (uint32_t room = DNN_TEXT_BYTES_MIN; room < sizeof fused_text + 8; room++) {
        size_t usable = room - strlen("; ...");
        assert_true(text_of(fused, strlen(fused), text, room));
        snprintf(expected, sizeof expected, "%.*s%s", usable < first ? 0 : (int)first, fused_text,
                 usable < first ? "..." : "; ...");
        assert_string_equal(text, usable < sizeof fused_text - 1 ? expected : fused_text);
    }
}

static void test_damaged_json(void **state)
{
    static const char signs[] = "\"[]{},:\\09-tn ";
    const char *graphs[] = {fused, others};
    char json[JSON_MAX], text[8193];
    uint64_t random = 29;
    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        const char *graph = graphs[i % 2];
        size_t bytes = strlen(graph);
        memcpy(json, graph, bytes);
        for (unsigned n = 1 + random_of(&random) % 4; n; n--)
            json[random_of(&random) % bytes] = signs[random_of(&random) % (sizeof signs - 1)];
        text_of(json, bytes, text, 300);
        for (const char *c = text; *c; c++)
            assert_true(*c >= ' ' && *c <= '~');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_cut_json),
        cmocka_unit_test(test_little_room),
        cmocka_unit_test(test_damaged_json),
    };
    quoted(fused_parts, fused);
    quoted(other_parts, others);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
