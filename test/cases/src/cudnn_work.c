/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudnn_work SCENE: calls of cuDNN as frameworks make them, by the way that it was built for. With
 * -DBY_DLSYM=NAME it is linked with none, and asks that file, opened for itself alone.
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudnn_double.h"

#define H(number) ((void *)(uintptr_t)(number))
enum { FLOAT = 0, HALF = 2, BF16 = 9, SHAPES = 40, DIMS = 5 };

static void need(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "cudnn_work: %s: %s\n", what, dlerror());
        exit(1);
    }
}

#ifdef BY_DLSYM
static void *library;

static void *function(const char *name)
{
    if (!library)
        library = dlopen(BY_DLSYM, RTLD_NOW | RTLD_LOCAL);
    void *address = library ? dlsym(library, name) : NULL;
    need(address, name);
    return address;
}
#define CALL(name) ((__typeof__(&name))function(#name))
#else
#define CALL(name) (&name)
#endif

/* ---- Plans ------------------------------------------------------------------------------------
 */

static void *make(int kind)
{
    void *descriptor = NULL;
    need(CALL(cudnnBackendCreateDescriptor)(kind, &descriptor) == 0, "create");
    return descriptor;
}

static void set(void *descriptor, int name, int type, int64_t count, const void *elements)
{
    need(CALL(cudnnBackendSetAttribute)(descriptor, name, type, count, elements) == 0, "set");
}

static void set_one(void *descriptor, int name, int type, int value)
{
    set(descriptor, name, type, 1, &value);
}

static void set_child(void *descriptor, int name, void *child)
{
    set(descriptor, name, TYPE_DESCRIPTOR, 1, &child);
}

static void drop(void *descriptor)
{
    need(CALL(cudnnBackendDestroyDescriptor)(descriptor) == 0, "destroy");
}

static void *finalized(void *descriptor)
{
    need(CALL(cudnnBackendFinalize)(descriptor) == 0, "finalize");
    return descriptor;
}

static void *tensor(int64_t number, int type, int count, const int64_t *dims, bool channels_last,
                    bool is_virtual)
{
    void *d = make(17);
    int64_t strides[8], closest = 1;
    for (int i = count - 1; i >= 0; closest *= dims[i], i--)
        strides[i] = closest;
    if (channels_last) {
        closest = dims[1];
        strides[1] = 1;
        for (int i = count - 1; i > 1; closest *= dims[i], i--)
            strides[i] = closest;
    }
    set_one(d, 901, TYPE_DATA_TYPE, type);
    set(d, 902, TYPE_INT64, count, dims);
    set(d, 903, TYPE_INT64, count, strides);
    set(d, 906, TYPE_INT64, 1, &number);
    if (is_virtual)
        set(d, 907, TYPE_BOOLEAN, 1, &is_virtual);
    return finalized(d);
}

/* A convolution of `spatial` dimensions, whose sizes follow from its number. */
struct shape {
    int type;
    int compute;
    int spatial;
    int groups;
    bool channels_last;
    int64_t x[DIMS], w[DIMS], y[DIMS];
    int64_t pad_low[3], pad_high[3], stride[3], dilation[3];
};

static struct shape shape_of(int number)
{
    static const int types[] = {HALF, FLOAT, BF16};
    struct shape s = {.type = types[number % 3],
                      .compute = FLOAT,
                      .spatial = number % 8 == 7 ? 3 : 2,
                      .groups = number % 5 == 4 ? 4 : 1,
                      .channels_last = number % 2};
    s.x[0] = s.y[0] = 1 + number % 4;
    s.x[1] = 8 * (1 + number % 3);
    s.w[1] = s.x[1] / s.groups;
    s.w[0] = s.y[1] = 16 + 4 * number;
    for (int i = 0; i < s.spatial; i++) {
        s.x[2 + i] = 14 + number + i;
        s.w[2 + i] = 1 + (number + i) % 3;
        s.pad_low[i] = (number + i) % 2;
        s.pad_high[i] = number % 11 == 10 ? 2 : s.pad_low[i];
        s.stride[i] = 1 + number % 2;
        s.dilation[i] = 1 + (number + i) % 2;
        s.y[2 + i] =
            (s.x[2 + i] + s.pad_low[i] + s.pad_high[i] - s.dilation[i] * (s.w[2 + i] - 1) - 1) /
                s.stride[i] +
            1;
    }
    return s;
}

enum form { FORWARD, BACKWARD_FILTER, BACKWARD_DATA, FUSED };

static void *convolution(const struct shape *s)
{
    void *d = make(1);
    int64_t spatial = s->spatial;
    set_one(d, 100, TYPE_DATA_TYPE, s->compute);
    set_one(d, 101, TYPE_CONVOLUTION_MODE, 1);
    set(d, 102, TYPE_INT64, spatial, s->dilation);
    set(d, 103, TYPE_INT64, spatial, s->stride);
    set(d, 104, TYPE_INT64, spatial, s->pad_high);
    set(d, 105, TYPE_INT64, spatial, s->pad_low);
    set(d, 106, TYPE_INT64, 1, &spatial);
    return finalized(d);
}

static void *pointwise(int mode, void *x, void *b, void *y)
{
    void *how = make(0), *d = make(13);
    set_one(how, 0, TYPE_POINTWISE_MODE, mode);
    set_child(d, 750, finalized(how));
    set_child(d, 751, x);
    set_child(d, 753, y);
    if (b)
        set_child(d, 752, b);
    drop(how);
    return finalized(d);
}

/* Of these operations, all of which go. */
static void *plan_of(void **operations, int count)
{
    void *graph = make(15), *engine = make(2), *config = make(3), *plan = make(5);
    set(graph, 801, TYPE_DESCRIPTOR, count, operations);
    set_child(engine, 1300, finalized(graph));
    set_child(config, 300, finalized(engine));
    set_child(plan, 401, finalized(config));
    for (int i = 0; i < count; i++)
        drop(operations[i]);
    drop(graph);
    drop(engine);
    drop(config);
    return finalized(plan);
}

static void *convolution_plan(const struct shape *s, enum form form)
{
    static const int names[][4] = {
        {702, 704, 703, 705}, {714, 716, 715, 717}, {708, 710, 709, 711}, {702, 704, 703, 705}};
    const int count = 2 + s->spatial;
    const int64_t bias_dims[] = {1, s->y[1], 1, 1, 1};
    void *operations[3], *how = convolution(s);
    void *x = tensor(1, s->type, count, s->x, s->channels_last, false);
    void *w = tensor(2, s->type, count, s->w, s->channels_last, false);
    void *y =
        tensor(3, form == FUSED ? FLOAT : s->type, count, s->y, s->channels_last, form == FUSED);
    operations[0] = make(form == FUSED ? 10 : 10 + (int)form);
    set_child(operations[0], names[form][0], how);
    set_child(operations[0], names[form][1], x);
    set_child(operations[0], names[form][2], w);
    set_child(operations[0], names[form][3], y);
    finalized(operations[0]);
    if (form == FUSED) {
        void *bias = tensor(4, s->type, count, bias_dims, false, false);
        void *sum = tensor(5, FLOAT, count, s->y, s->channels_last, true);
        void *out = tensor(6, s->type, count, s->y, s->channels_last, false);
        operations[1] = pointwise(0, y, bias, sum);
        operations[2] = pointwise(100, sum, NULL, out);
        drop(bias);
        drop(sum);
        drop(out);
    }
    drop(how);
    drop(x);
    drop(w);
    drop(y);
    return plan_of(operations, form == FUSED ? 3 : 1);
}

static void execute(void *plan)
{
    need(CALL(cudnnBackendExecute)(H(0x11), plan, H(0x21)) == 0, "execute");
}

/* Each form of each convolution, three times in turn; every other one is then made again. */
static void plans(void)
{
    void *made[4 * SHAPES];
    for (int i = 0; i < 4 * SHAPES; i++) {
        struct shape s = shape_of(i / 4);
        made[i] = convolution_plan(&s, (enum form)(i % 4));
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 4 * SHAPES; i++)
            execute(made[i]);
    for (int i = 0; i < 4 * SHAPES; i += 2) {
        struct shape s = shape_of(SHAPES + i / 4);
        drop(made[i]);
        made[i] = convolution_plan(&s, (enum form)(i % 4));
        execute(made[i]);
    }
    for (int i = 0; i < 4 * SHAPES; i++) {
        execute(made[i]);
        drop(made[i]);
    }
}

/* Attention as one operation, a product, and what no reader knows yet; into a graph, too. */
static void others(void)
{
    const int64_t q[] = {2, 16, 512, 64}, k[] = {2, 4, 1024, 64}, a[] = {4, 128, 64},
                  b[] = {4, 64, 256}, c[] = {4, 128, 256}, one[] = {1, 1, 1, 1};
    void *operations[3] = {make(41), make(19), make(99)};
    void *tensors[] = {tensor(1, BF16, 4, q, false, false), tensor(2, BF16, 4, k, false, false),
                       tensor(3, BF16, 4, k, false, false), tensor(4, BF16, 4, q, false, false),
                       tensor(5, BF16, 3, a, false, false), tensor(6, BF16, 3, b, false, false),
                       tensor(7, FLOAT, 3, c, false, false)};
    void *scale = make(17);
    const bool by_value = true;
    const int64_t number = 8;
    for (int i = 0; i < 4; i++)
        set_child(operations[0], 2800 + i, tensors[i]);
    set_one(scale, 901, TYPE_DATA_TYPE, FLOAT);
    set(scale, 902, TYPE_INT64, 4, one);
    set(scale, 903, TYPE_INT64, 4, one);
    set(scale, 906, TYPE_INT64, 1, &number);
    set(scale, 908, TYPE_BOOLEAN, 1, &by_value);
    set_child(operations[0], 2805, finalized(scale));
    for (int i = 0; i < 3; i++)
        set_child(operations[1], 1520 + i, tensors[4 + i]);
    set_child(operations[2], 9900, tensors[6]);
    for (int i = 0; i < 3; i++)
        finalized(operations[i]);
    void *plan = plan_of(operations, 3);
    execute(plan);
    need(CALL(cudnnBackendPopulateCudaGraph)(H(0x11), plan, H(0x21), H(0x31)) == 0, "populate");
    need(CALL(cudnnBackendUpdateCudaGraph)(H(0x11), plan, H(0x21), H(0x31)) == 0, "update");
    for (int i = 0; i < 7; i++)
        drop(tensors[i]);
    drop(scale);
    drop(plan);
    need(CALL(cudnnBackendExecute)(H(0x11), NULL, H(0x21)) == 2000, "no plan");
}

/* More plans at a time than fit into a table. */
static void many(int count)
{
    void **made = calloc((size_t)count, sizeof *made);
    for (int i = 0; i < count; i++) {
        struct shape s = shape_of(1);
        s.x[0] = s.y[0] = i + 1;
        made[i] = convolution_plan(&s, FORWARD);
        execute(made[i]);
    }
    for (int i = 0; i < count; i++)
        execute(made[i]);
    free(made);
}

/* What a getter that failed for others has left is theirs: the program sees none of it. */
static void refused(void)
{
    char message[64] = "untouched";
    struct shape s = shape_of(2);
    void *plan = convolution_plan(&s, FORWARD);
    for (int i = 0; i < 3; i++)
        execute(plan);
    CALL(cudnnGetLastErrorString)(message, sizeof message);
    need(message[0] == '\0', message);
    need(CALL(cudnnBackendExecute)(NULL, plan, NULL) == 2000, "no handle");
    CALL(cudnnGetLastErrorString)(message, sizeof message);
    need(strcmp(message, "status 2000") == 0, message);
}

static void *shared_plans[8];

static void *thread(void *number)
{
    for (int i = 0; i < 40; i++) {
        struct shape s = shape_of(50 + 10 * (int)(intptr_t)number + i % 7);
        void *own = convolution_plan(&s, FORWARD);
        execute(own);
        execute(shared_plans[i % 8]);
        drop(own);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[4];
    for (int i = 0; i < 8; i++) {
        struct shape s = shape_of(i);
        shared_plans[i] = convolution_plan(&s, (enum form)(i % 4));
    }
    for (intptr_t i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, thread, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
}

static void forks(void)
{
    int status = 0;
    struct shape s = shape_of(3), other = shape_of(4);
    void *plan = convolution_plan(&s, FORWARD), *second = convolution_plan(&other, FUSED);
    execute(plan);
    if (fork() == 0) {
        execute(second);
        execute(plan);
        _exit(0);
    }
    need(wait(&status) > 0 && status == 0, "child");
    execute(second);
    execute(plan);
}

/* A library that comes again, perhaps elsewhere. */
static void reload(void)
{
    struct shape s = shape_of(5);
    for (int i = 0; i < 3; i++) {
        execute(convolution_plan(&s, FORWARD));
#ifdef BY_DLSYM
        need(dlclose(library) == 0, "dlclose");
        library = NULL;
#endif
    }
}

/* ---- The older functions -----------------------------------------------------------------------
 */

static void *nd(int type, int count, const int64_t *dims, bool channels_last, bool is_filter)
{
    void *d = NULL;
    int sizes[8], strides[8], closest = 1;
    for (int i = count - 1; i >= 0; closest *= sizes[i], i--) {
        sizes[i] = (int)dims[i];
        strides[i] = closest;
    }
    if (channels_last) {
        closest = sizes[1];
        strides[1] = 1;
        for (int i = count - 1; i > 1; closest *= sizes[i], i--)
            strides[i] = closest;
    }
    if (is_filter) {
        CALL(cudnnCreateFilterDescriptor)(&d);
        CALL(cudnnSetFilterNdDescriptor)(d, type, channels_last, count, sizes);
    } else {
        CALL(cudnnCreateTensorDescriptor)(&d);
        CALL(cudnnSetTensorNdDescriptor)(d, type, count, sizes, strides);
    }
    return d;
}

/* Descriptors are made for each call, as frameworks do. */
static void legacy_one(int number, int round)
{
    struct shape s = shape_of(number);
    const int count = 2 + s.spatial;
    int pad[3], stride[3], dilation[3], returned = 0;
    for (int i = 0; i < 3; i++) {
        pad[i] = (int)s.pad_low[i];
        stride[i] = (int)s.stride[i];
        dilation[i] = (int)s.dilation[i];
    }
    void *x = nd(s.type, count, s.x, s.channels_last, false), *conv = NULL;
    void *w = nd(s.type, count, s.w, s.channels_last, true);
    void *y = nd(s.type, count, s.y, s.channels_last, false);
    CALL(cudnnCreateConvolutionDescriptor)(&conv);
    CALL(cudnnSetConvolutionNdDescriptor)(conv, s.spatial, pad, stride, dilation, 1, s.compute);
    CALL(cudnnSetConvolutionGroupCount)(conv, s.groups);
    CALL(cudnnConvolutionForward)
    (H(0x11), H(1), x, H(2), w, H(3), conv, number % 7, H(4), (size_t)number << 20, H(5), y, H(6));
    CALL(cudnnConvolutionBackwardData)
    (H(0x11), H(1), w, H(2), y, H(3), conv, 1, H(4), 77, H(5), x, H(6));
    CALL(cudnnConvolutionBackwardFilter)
    (H(0x11), H(1), x, H(2), y, H(3), conv, 2, H(4), 88, H(5), w, H(6));
    CALL(cudnnConvolutionBiasActivationForward)
    (H(0x11), H(1), x, H(2), w, H(3), conv, 3, H(4), 99, H(5), round ? y : NULL, H(6), H(7), H(8),
     H(9), y, H(10));
    if (!round)
        CALL(cudnnFindConvolutionForwardAlgorithmEx)
    (H(0x11), x, H(1), w, H(2), conv, y, H(3), 4, &returned, H(4), H(5), 11);
    CALL(cudnnPoolingForward)(H(0x11), H(1), H(2), x, H(3), H(4), y, H(5));
    CALL(cudnnBatchNormalizationForwardTrainingEx)
    (H(0x11), 1, 2, H(1), H(2), x, H(3), NULL, H(4), x, H(5), H(6), H(7), H(8), 0.25, H(9), H(10),
     0.5, H(11), H(12), H(13), H(14), 15, H(16), 17);
    CALL(cudnnDestroyTensorDescriptor)(x);
    CALL(cudnnDestroyTensorDescriptor)(y);
    CALL(cudnnDestroyFilterDescriptor)(w);
    CALL(cudnnDestroyConvolutionDescriptor)(conv);
}

/* Cells of each kind, in one direction or two. */
static void recurrent(int number)
{
    const int lengths[] = {7, 7, 5}, hidden = 16 + number, directions = number % 2;
    void *rnn = NULL, *x = NULL, *y = NULL;
    CALL(cudnnCreateRNNDescriptor)(&rnn);
    CALL(cudnnSetRNNDescriptor_v8)
    (rnn, 0, number % 4, 2, directions, 0, HALF, FLOAT, 1, 8, hidden, hidden, 1 + number % 3, NULL,
     0);
    CALL(cudnnCreateRNNDataDescriptor)(&x);
    CALL(cudnnSetRNNDataDescriptor)(x, HALF, 1, 7, 3, 8, lengths, NULL);
    CALL(cudnnCreateRNNDataDescriptor)(&y);
    CALL(cudnnSetRNNDataDescriptor)(y, HALF, 1, 7, 3, hidden * (1 + directions), lengths, NULL);
    CALL(cudnnRNNForward)
    (H(0x11), rnn, 1, H(1), x, H(2), y, H(3), H(4), H(5), H(6), H(7), H(8), H(9), 10, H(11), 12,
     H(13), 14, H(15));
    free(rnn);
    free(x);
    free(y);
}

int main(int count, char **arguments)
{
    const char *scene = count > 1 ? arguments[1] : "";
    if (strcmp(scene, "plans") == 0) {
        plans();
        others();
    } else if (strcmp(scene, "legacy") == 0) {
        for (int round = 0; round < 2; round++)
            for (int i = 0; i < SHAPES; i++)
                legacy_one(i, round);
        for (int i = 0; i < 8; i++)
            recurrent(i);
    } else if (strcmp(scene, "refused") == 0) {
        refused();
        legacy_one(1, 0);
    } else if (strcmp(scene, "threads") == 0) {
        threads();
    } else if (strcmp(scene, "fork") == 0) {
        forks();
    } else if (strcmp(scene, "reload") == 0) {
        reload();
    } else if (strcmp(scene, "many") == 0 && count > 2) {
        many(atoi(arguments[2]));
    } else {
        fprintf(stderr, "cudnn_work: plans|legacy|refused|threads|fork|reload|many COUNT\n");
        return 2;
    }
    return 3;
}
