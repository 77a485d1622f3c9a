/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcudnn.so.9 as the real one is: a library without content that opens its part, whose folder
 * is its own, and asks it for each function. With -DPART it is that part. What is called stands on
 * the file descriptor of DNN_LOG, with what its own descriptors say, one line a call:
 *
 *     function descriptor | operation key=dims:type:strides ... | operation ...
 *
 * Prototypes and numbers are written from NVIDIA's description, and not from gpuprof's rows. Of a
 * plan's graph the operations cannot be asked for, as in the real one; its JSON is as that of 9.19.
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudnn_double.h"

#ifndef PART

static void *part_function(const char *name)
{
    static void *part;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!part) {
        Dl_info info;
        char path[4096];
        dladdr((void *)part_function, &info);
        snprintf(path, sizeof path, "%s", info.dli_fname);
        snprintf(strrchr(path, '/'), 64, "/libcudnn_graph.so.9");
        part = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    void *function = part ? dlsym(part, name) : NULL;
    pthread_mutex_unlock(&lock);
    if (!function) {
        fprintf(stderr, "libcudnn: %s\n", dlerror());
        abort();
    }
    return function;
}

#define DNN_FUNCTION(name, params, names)                                                          \
    int name params                                                                                \
    {                                                                                              \
        static __typeof__(&name) _Atomic real;                                                     \
        __typeof__(&name) its = real;                                                              \
        if (!its)                                                                                  \
            real = its = (__typeof__(&name))part_function(#name);                                  \
        return its names;                                                                          \
    }
#include "cudnn_double.h"

#else
#include "cudnn_double_part.h"

enum { ATTRIBUTES_MAX = 16, JSON_MAX = 1 << 16 };

struct attribute {
    int name;
    int type;
    int64_t count;
    union {
        int64_t numbers[8];
        int words[16];
        struct descriptor *descriptors[16];
        unsigned char bytes[128];
    };
};

struct descriptor {
    int kind;
    int references;
    bool is_final;
    unsigned attribute_count;
    struct attribute attributes[ATTRIBUTES_MAX];
};

static __thread char last_error[64];

int fail(int status)
{
    snprintf(last_error, sizeof last_error, "status %d", status);
    return status;
}

int cudnnGetLastErrorString(char *message, size_t bytes)
{
    snprintf(message, bytes, "%s", last_error);
    last_error[0] = '\0';
    return 0;
}

/* ---- Descriptors ------------------------------------------------------------------------------
 */

static size_t element_bytes(int type)
{
    return type == TYPE_INT64 || type == TYPE_DESCRIPTOR || type == TYPE_DOUBLE ? 8
           : type == TYPE_BOOLEAN || type == TYPE_CHAR                          ? 1
                                                                                : 4;
}

static struct attribute *attribute_of(struct descriptor *d, int name)
{
    for (unsigned i = 0; d && i < d->attribute_count; i++)
        if (d->attributes[i].name == name)
            return &d->attributes[i];
    return NULL;
}

static struct descriptor *child(struct descriptor *d, int name)
{
    struct attribute *a = attribute_of(d, name);
    return a && a->type == TYPE_DESCRIPTOR ? a->descriptors[0] : NULL;
}

static int word(struct descriptor *d, int name)
{
    struct attribute *a = attribute_of(d, name);
    return a ? a->words[0] : 0;
}

int cudnnBackendCreateDescriptor(int kind, void **descriptor)
{
    struct descriptor *d = calloc(1, sizeof *d);
    d->kind = kind;
    d->references = 1;
    *descriptor = d;
    return 0;
}

int cudnnBackendDestroyDescriptor(void *descriptor)
{
    struct descriptor *d = descriptor;
    if (!d || __atomic_sub_fetch(&d->references, 1, __ATOMIC_ACQ_REL) > 0)
        return d ? 0 : fail(BAD_PARAM);
    for (unsigned i = 0; i < d->attribute_count; i++)
        if (d->attributes[i].type == TYPE_DESCRIPTOR)
            for (int64_t n = 0; n < d->attributes[i].count; n++)
                cudnnBackendDestroyDescriptor(d->attributes[i].descriptors[n]);
    free(d);
    return 0;
}

int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count,
                             const void *elements)
{
    struct descriptor *d = descriptor;
    size_t bytes = (size_t)count * element_bytes(type);
    if (!d || d->is_final || d->attribute_count == ATTRIBUTES_MAX || bytes > 128 || !elements)
        return fail(BAD_PARAM);
    struct attribute *a = &d->attributes[d->attribute_count++];
    *a = (struct attribute){.name = name, .type = type, .count = count};
    memcpy(a->bytes, elements, bytes);
    if (type == TYPE_DESCRIPTOR)
        for (int64_t i = 0; i < count; i++)
            __atomic_add_fetch(&a->descriptors[i]->references, 1, __ATOMIC_ACQ_REL);
    return 0;
}

int cudnnBackendFinalize(void *descriptor)
{
    if (!descriptor)
        return fail(BAD_PARAM);
    ((struct descriptor *)descriptor)->is_final = true;
    return 0;
}

/* ---- A plan, as JSON and as a line of the log --------------------------------------------------
 */

void put(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(t->at, t->room, format, args);
    va_end(args);
    if (bytes < 0 || (size_t)bytes >= t->room)
        abort();
    t->at += bytes;
    t->room -= (size_t)bytes;
}

const char *const type_names[] = {"FLOAT",  "DOUBLE",  "HALF",     "INT8",    "INT32",
                                  "INT8x4", "UINT8",   "UINT8x4",  "INT8x32", "BFLOAT16",
                                  "INT64",  "BOOLEAN", "FP8_E4M3", "FP8_E5M2"};

/* Which attributes of an operation are tensors, and how its JSON names them. */
static const struct {
    int kind;
    int attribute;
    const char *operation;
    const char *key;
} tensors_of[] = {
    {10, 704, "CONVOLUTION_FORWARD", "X"},
    {10, 703, "CONVOLUTION_FORWARD", "W"},
    {10, 705, "CONVOLUTION_FORWARD", "Y"},
    {11, 716, "CONVOLUTION_BACKWARD_FILTER", "X"},
    {11, 715, "CONVOLUTION_BACKWARD_FILTER", "dW"},
    {11, 717, "CONVOLUTION_BACKWARD_FILTER", "dY"},
    {12, 710, "CONVOLUTION_BACKWARD_DATA", "dX"},
    {12, 709, "CONVOLUTION_BACKWARD_DATA", "W"},
    {12, 711, "CONVOLUTION_BACKWARD_DATA", "dY"},
    {13, 751, "POINTWISE", "X"},
    {13, 753, "POINTWISE", "Y"},
    {13, 752, "POINTWISE", "B"},
    {19, 1520, "MATMUL", "matA"},
    {19, 1521, "MATMUL", "matB"},
    {19, 1522, "MATMUL", "matC"},
    {41, 2800, "SDPA_FWD", "Q"},
    {41, 2801, "SDPA_FWD", "K"},
    {41, 2802, "SDPA_FWD", "V"},
    {41, 2803, "SDPA_FWD", "O"},
    {41, 2805, "SDPA_FWD", "scale"},
    {99, 9900, "OF_LATER", "X"},
};
#define TENSORS_OF (sizeof tensors_of / sizeof *tensors_of)

static void put_numbers(struct text *t, const char *key, struct descriptor *d, int name)
{
    struct attribute *a = attribute_of(d, name);
    for (int64_t i = 0; a && i < a->count; i++)
        put(t, "%s%" PRId64, i ? "," : key, a->numbers[i]);
}

static struct attribute *operations_of(struct descriptor *plan)
{
    return attribute_of(child(child(child(plan, 401), 300), 1300), 801);
}

static void json_tensor(struct text *t, struct descriptor *d)
{
    put_numbers(t, "{\"name\":\"", d, 906);
    put(t, "\",\"dataType\":\"CUDNN_DATA_%s\"", type_names[word(d, 901)]);
    put_numbers(t, ",\"dim\":[", d, 902);
    put_numbers(t, "],\"stride\":[", d, 903);
    struct attribute *is_virtual = attribute_of(d, 907), *by_value = attribute_of(d, 908);
    put(t, "],\"isVirtual\":%s,\"isByValue\":%s,\"vectCount\":1,\"vectDim\":-1}",
        is_virtual && is_virtual->bytes[0] ? "true" : "false",
        by_value && by_value->bytes[0] ? "true" : "false");
}

static void json_operation(struct text *t, struct descriptor *d)
{
    struct descriptor *conv = child(d, d->kind == 10 ? 702 : d->kind == 12 ? 708 : 714);
    const char *name = NULL;
    for (size_t i = 0; i < TENSORS_OF; i++)
        if (tensors_of[i].kind == d->kind)
            name = tensors_of[i].operation;
    put(t, "{\"operation\":\"CUDNN_BACKEND_OPERATION_%s_DESCRIPTOR\"", name);
    if (conv) {
        put(t, ",\"mode\":\"CUDNN_CROSS_CORRELATION\",\"mathPrec\":\"CUDNN_DATA_%s\",\"alpha\":1.0",
            type_names[word(conv, 100)]);
        if (memcmp(attribute_of(conv, 104)->bytes, attribute_of(conv, 105)->bytes, 24) == 0) {
            put_numbers(t, ",\"pad\":[", conv, 104);
        } else {
            put_numbers(t, ",\"pad_upper\":[", conv, 104);
            put_numbers(t, "],\"pad_lower\":[", conv, 105);
        }
        put_numbers(t, "],\"stride\":[", conv, 103);
        put_numbers(t, "],\"dilation\":[", conv, 102);
        put(t, "]");
    }
    if (d->kind == 13)
        put(t, ",\"pointwiseMode\":\"CUDNN_POINTWISE_%s\",\"lowerClip\":0.0",
            word(child(d, 750), 0) == 100 ? "RELU_FWD" : "ADD");
    for (size_t i = 0; i < TENSORS_OF; i++)
        if (tensors_of[i].kind == d->kind && child(d, tensors_of[i].attribute)) {
            put(t, ",\"%s", tensors_of[i].key);
            put_numbers(t, "\":\"", child(d, tensors_of[i].attribute), 906);
            put(t, "\"");
        }
    if (conv) {
        int64_t channels = attribute_of(child(d, d->kind == 10   ? 704
                                                 : d->kind == 12 ? 710
                                                                 : 716),
                                        902)
                               ->numbers[1];
        int64_t its = attribute_of(child(d, d->kind == 10   ? 703
                                            : d->kind == 12 ? 709
                                                            : 715),
                                   902)
                          ->numbers[1];
        if (channels > its)
            put(t, ",\"groupCount\":%" PRId64, channels / its);
    }
    put(t, "}");
}

static size_t json_of(struct descriptor *plan, char *json)
{
    struct text t = {json, JSON_MAX};
    struct attribute *ops = operations_of(plan);
    put(&t, "{\"cudnnVersion\":91900,\"schemaVersion\":4,\"operationGraph\":{\"finalizeMode\":"
            "\"CONV_FORWARD\",\"tensors\":");
    const char *before = "[";
    for (int64_t n = 0; ops && n < ops->count; n++)
        for (size_t i = 0; i < TENSORS_OF; i++) {
            struct descriptor *tensor = child(ops->descriptors[n], tensors_of[i].attribute);
            if (!tensor || tensors_of[i].kind != ops->descriptors[n]->kind)
                continue;
            put(&t, "%s", before);
            json_tensor(&t, tensor);
            before = ",";
        }
    put(&t, "],\"nodes\":");
    for (int64_t n = 0; ops && n < ops->count; n++) {
        put(&t, n ? "," : "[");
        json_operation(&t, ops->descriptors[n]);
    }
    put(&t, "]},\"GPUProfile\":{\"maxGridSize\":[2147483647,65535,65535]},\"engine\":{"
            "\"engineId\":22,\"knobChoices\":{\"CUDNN_KNOB_TYPE_TILE_SIZE\":5}}}");
    return (size_t)(t.at - json);
}

bool refuses(const char *what)
{
    const char *refused = getenv("DNN_REFUSES");
    return refused && strstr(refused, what);
}

int cudnnBackendGetAttribute(const void *descriptor, int name, int type, int64_t requested,
                             int64_t *count, void *elements)
{
    static __thread char json[JSON_MAX];
    struct descriptor *d = (struct descriptor *)descriptor;
    if (!d || !d->is_final)
        return fail(BAD_PARAM);
    if (name != 405 || type != TYPE_CHAR || d->kind != 5 || refuses("json"))
        return fail(NOT_SUPPORTED);
    *count = (int64_t)json_of(d, json);
    if (!elements)
        return 0;
    if (requested < *count || refuses("content"))
        return fail(2006);
    memcpy(elements, json, (size_t)*count);
    if (refuses("sense"))
        memset((char *)elements + *count / 2, '[', (size_t)*count / 4);
    return 0;
}

void log_line(const char *text, size_t bytes)
{
    const char *fd = getenv("DNN_LOG");
    if (fd && write(atoi(fd), text, bytes) != (ssize_t)bytes)
        abort();
}

static void log_tensor(struct text *t, const char *key, struct descriptor *d)
{
    put(t, " %s", key);
    put_numbers(t, "=", d, 902);
    put(t, ":%s", type_names[word(d, 901)]);
    put_numbers(t, ":", d, 903);
    struct attribute *is_virtual = attribute_of(d, 907), *by_value = attribute_of(d, 908);
    put(t, ":%s",
        is_virtual && is_virtual->bytes[0] ? "virtual"
        : by_value && by_value->bytes[0]   ? "value"
                                           : "");
}

static void log_plan(const char *function, void *plan)
{
    char line[LINE_BYTES_MAX];
    struct text t = {line, sizeof line};
    struct attribute *ops = operations_of(plan);
    put(&t, "%s %p", function, plan);
    for (int64_t n = 0; ops && n < ops->count; n++) {
        struct descriptor *d = ops->descriptors[n];
        struct descriptor *conv = child(d, d->kind == 10 ? 702 : d->kind == 12 ? 708 : 714);
        put(&t, " | %d", d->kind);
        for (size_t i = 0; i < TENSORS_OF; i++)
            if (tensors_of[i].kind == d->kind && child(d, tensors_of[i].attribute))
                log_tensor(&t, tensors_of[i].key, child(d, tensors_of[i].attribute));
        if (conv) {
            put(&t, " compute=%s", type_names[word(conv, 100)]);
            put_numbers(&t, " pad_upper=", conv, 104);
            put_numbers(&t, " pad_lower=", conv, 105);
            put_numbers(&t, " stride=", conv, 103);
            put_numbers(&t, " dilation=", conv, 102);
        }
        if (d->kind == 13)
            put(&t, " mode=%d", word(child(d, 750), 0));
    }
    put(&t, "\n");
    log_line(line, (size_t)(t.at - line));
}

void work(void)
{
    static __thread void *memory;
    if (!memory)
        cudaMalloc(&memory, 4096);
    cudaMemsetAsync(memory, 0, 4096, NULL);
}

int cudnnBackendExecute(void *handle, void *plan, void *variants)
{
    log_plan(__func__, plan);
    if (!handle || !plan || !variants)
        return fail(BAD_PARAM);
    work();
    return 0;
}

int cudnnBackendPopulateCudaGraph(void *handle, void *plan, void *variants, void *graph)
{
    log_plan(__func__, plan);
    return handle && plan && variants && graph ? 0 : fail(BAD_PARAM);
}

int cudnnBackendUpdateCudaGraph(void *handle, void *plan, void *variants, void *graph)
{
    log_plan(__func__, plan);
    return handle && plan && variants && graph ? 0 : fail(BAD_PARAM);
}
#endif
