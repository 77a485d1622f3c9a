/* SPDX-License-Identifier: Apache-2.0 */
/* The cuDNN double's older functions, whose descriptors lie open. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_double.h"
#include "cudnn_double_part.h"

static void log_call(const char *function, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void log_call(const char *function, const char *format, ...)
{
    char line[LINE_BYTES_MAX];
    struct text t = {line, sizeof line};
    va_list args;
    va_start(args, format);
    put(&t, "%s ", function);
    t.at += vsnprintf(t.at, t.room, format, args);
    *t.at++ = '\n';
    va_end(args);
    log_line(line, (size_t)(t.at - line));
}

struct shape {
    int type;
    int format;
    int count;
    int groups;
    int dims[8];
    int strides[8];
    int dilations[8];
};

/* What a call's descriptors say, in a buffer of the thread's; the oldest of eight is used again. */
static const char *told(const struct shape *s)
{
    static __thread char buffers[8][256];
    static __thread unsigned next;
    char *buffer = buffers[next++ % 8];
    struct text t = {buffer, 256};
    if (!s)
        return "none";
    for (int i = 0; i < s->count; i++)
        put(&t, "%s%d", i ? "," : "", s->dims[i]);
    put(&t, ":%s:%d:%d", type_names[s->type], s->format, s->groups);
    for (int i = 0; i < s->count; i++)
        put(&t, "%s%d", i ? "," : ":", s->strides[i]);
    for (int i = 0; i < s->count; i++)
        put(&t, "%s%d", i ? "," : ":", s->dilations[i]);
    return buffer;
}

static int create(void **descriptor)
{
    *descriptor = calloc(1, sizeof(struct shape));
    return 0;
}

static int destroy(void *descriptor)
{
    free(descriptor);
    return 0;
}

int cudnnCreateTensorDescriptor(void **descriptor)
{
    return create(descriptor);
}

int cudnnCreateFilterDescriptor(void **descriptor)
{
    return create(descriptor);
}

int cudnnCreateConvolutionDescriptor(void **descriptor)
{
    return create(descriptor);
}

int cudnnDestroyTensorDescriptor(void *descriptor)
{
    return destroy(descriptor);
}

int cudnnDestroyFilterDescriptor(void *descriptor)
{
    return destroy(descriptor);
}

int cudnnDestroyConvolutionDescriptor(void *descriptor)
{
    return destroy(descriptor);
}

int cudnnSetTensorNdDescriptor(void *descriptor, int type, int count, const int *dims,
                               const int *strides)
{
    struct shape *s = descriptor;
    s->type = type;
    s->count = count;
    memcpy(s->dims, dims, (size_t)count * sizeof *dims);
    memcpy(s->strides, strides, (size_t)count * sizeof *dims);
    return 0;
}

int cudnnSetFilterNdDescriptor(void *descriptor, int type, int format, int count, const int *dims)
{
    struct shape *s = descriptor;
    s->type = type;
    s->format = format;
    s->count = count;
    memcpy(s->dims, dims, (size_t)count * sizeof *dims);
    return 0;
}

int cudnnSetConvolutionNdDescriptor(void *descriptor, int count, const int *pad, const int *strides,
                                    const int *dilations, int mode, int type)
{
    struct shape *s = descriptor;
    *s = (struct shape){.type = type, .format = mode, .count = count, .groups = 1};
    memcpy(s->dims, pad, (size_t)count * sizeof *pad);
    memcpy(s->strides, strides, (size_t)count * sizeof *pad);
    memcpy(s->dilations, dilations, (size_t)count * sizeof *pad);
    return 0;
}

int cudnnSetConvolutionGroupCount(void *descriptor, int groups)
{
    ((struct shape *)descriptor)->groups = groups;
    return 0;
}

static size_t told_bytes(const struct shape *s, int requested)
{
    return (size_t)(s->count < requested ? s->count : requested) * sizeof(int);
}

int cudnnGetTensorNdDescriptor(const void *descriptor, int requested, int *type, int *count,
                               int *dims, int *strides)
{
    const struct shape *s = descriptor;
    if (!s || refuses("tensors"))
        return fail(BAD_PARAM);
    *type = s->type;
    *count = s->count;
    memcpy(dims, s->dims, told_bytes(s, requested));
    memcpy(strides, s->strides, told_bytes(s, requested));
    return 0;
}

int cudnnGetFilterNdDescriptor(const void *descriptor, int requested, int *type, int *format,
                               int *count, int *dims)
{
    const struct shape *s = descriptor;
    *type = s->type;
    *format = s->format;
    *count = s->count;
    memcpy(dims, s->dims, told_bytes(s, requested));
    return 0;
}

int cudnnGetConvolutionNdDescriptor(const void *descriptor, int requested, int *count, int *pad,
                                    int *strides, int *dilations, int *mode, int *type)
{
    const struct shape *s = descriptor;
    *type = s->type;
    *mode = s->format;
    *count = s->count;
    memcpy(pad, s->dims, told_bytes(s, requested));
    memcpy(strides, s->strides, told_bytes(s, requested));
    memcpy(dilations, s->dilations, told_bytes(s, requested));
    return 0;
}

int cudnnGetConvolutionGroupCount(const void *descriptor, int *groups)
{
    *groups = ((const struct shape *)descriptor)->groups;
    return 0;
}

int cudnnConvolutionForward(void *handle, const void *alpha, void *x_desc, const void *x,
                            void *w_desc, const void *w, void *conv, int algorithm, void *workspace,
                            size_t workspace_bytes, const void *beta, void *y_desc, void *y)
{
    log_call(__func__, "%p %p %p %p %p %d %p %zu %p x=%s w=%s conv=%s y=%s", handle, alpha, x, w, y,
             algorithm, workspace, workspace_bytes, beta, told(x_desc), told(w_desc), told(conv),
             told(y_desc));
    work();
    return handle ? 0 : fail(NOT_INITIALIZED);
}

int cudnnConvolutionBiasActivationForward(void *handle, const void *alpha1, void *x_desc,
                                          const void *x, void *w_desc, const void *w, void *conv,
                                          int algorithm, void *workspace, size_t workspace_bytes,
                                          const void *alpha2, void *z_desc, const void *z,
                                          void *bias_desc, const void *bias, void *activation,
                                          void *y_desc, void *y)
{
    log_call(__func__, "%p %p %p %p %p %d %p %zu %p %p %p %p %p x=%s w=%s conv=%s z=%s y=%s",
             handle, alpha1, x, w, y, algorithm, workspace, workspace_bytes, alpha2, z, bias_desc,
             bias, activation, told(x_desc), told(w_desc), told(conv), told(z_desc), told(y_desc));
    work();
    return 0;
}

int cudnnConvolutionBackwardData(void *handle, const void *alpha, void *w_desc, const void *w,
                                 void *dy_desc, const void *dy, void *conv, int algorithm,
                                 void *workspace, size_t workspace_bytes, const void *beta,
                                 void *dx_desc, void *dx)
{
    log_call(__func__, "%p %p %p %p %p %d %p %zu %p w=%s dy=%s conv=%s dx=%s", handle, alpha, w, dy,
             dx, algorithm, workspace, workspace_bytes, beta, told(w_desc), told(dy_desc),
             told(conv), told(dx_desc));
    work();
    return 0;
}

int cudnnConvolutionBackwardFilter(void *handle, const void *alpha, void *x_desc, const void *x,
                                   void *dy_desc, const void *dy, void *conv, int algorithm,
                                   void *workspace, size_t workspace_bytes, const void *beta,
                                   void *dw_desc, void *dw)
{
    log_call(__func__, "%p %p %p %p %p %d %p %zu %p x=%s dy=%s conv=%s dw=%s", handle, alpha, x, dy,
             dw, algorithm, workspace, workspace_bytes, beta, told(x_desc), told(dy_desc),
             told(conv), told(dw_desc));
    work();
    return 0;
}

int cudnnFindConvolutionForwardAlgorithmEx(void *handle, void *x_desc, const void *x, void *w_desc,
                                           const void *w, void *conv, void *y_desc, void *y,
                                           int requested, int *returned, void *results,
                                           void *workspace, size_t workspace_bytes)
{
    log_call(__func__, "%p %p %p %p %d %p %p %zu x=%s w=%s conv=%s y=%s", handle, x, w, y,
             requested, results, workspace, workspace_bytes, told(x_desc), told(w_desc), told(conv),
             told(y_desc));
    for (*returned = 0; *returned < requested; ++*returned) /* it tries them */
        cudnnConvolutionForward(handle, NULL, x_desc, x, w_desc, w, conv, *returned, workspace,
                                workspace_bytes, NULL, y_desc, y);
    return 0;
}

int cudnnPoolingForward(void *handle, void *pooling, const void *alpha, void *x_desc, const void *x,
                        const void *beta, void *y_desc, void *y)
{
    log_call(__func__, "%p %p %p %p %p %p x=%s y=%s", handle, pooling, alpha, x, beta, y,
             told(x_desc), told(y_desc));
    work();
    return 0;
}

int cudnnBatchNormalizationForwardTrainingEx(
    void *handle, int mode, int operations, const void *alpha, const void *beta, void *x_desc,
    const void *x, void *z_desc, const void *z, void *y_desc, void *y, void *scale_desc,
    const void *scale, const void *bias, double factor, void *mean, void *variance, double epsilon,
    void *saved_mean, void *saved_variance, void *activation, void *workspace,
    size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
    log_call(__func__,
             "%p %d %d %p %p %p %p %p %p %p %p %g %p %p %g %p %p %p %p %zu %p %zu x=%s z=%s y=%s",
             handle, mode, operations, alpha, beta, x, z, y, scale_desc, scale, bias, factor, mean,
             variance, epsilon, saved_mean, saved_variance, activation, workspace, workspace_bytes,
             reserve, reserve_bytes, told(x_desc), told(z_desc), told(y_desc));
    work();
    return 0;
}

/* A recurrent network; `dims`: cells, directions, type, compute, and four sizes. */
int cudnnCreateRNNDescriptor(void **descriptor)
{
    return create(descriptor);
}

int cudnnSetRNNDescriptor_v8(void *descriptor, int algorithm, int cells, int bias, int directions,
                             int input, int type, int compute, int math, int input_size,
                             int hidden_size, int projection_size, int layers, void *dropout,
                             unsigned flags)
{
    *(struct shape *)descriptor = (struct shape){
        .type = type,
        .dims = {cells, directions, compute, input_size, hidden_size, projection_size, layers},
        .strides = {algorithm, bias, input, math, (int)flags, dropout != NULL}};
    return 0;
}

int cudnnGetRNNDescriptor_v8(const void *descriptor, int *algorithm, int *cells, int *bias,
                             int *directions, int *input, int *type, int *compute, int *math,
                             int *input_size, int *hidden_size, int *projection_size, int *layers,
                             void **dropout, unsigned *flags)
{
    const struct shape *s = descriptor;
    *algorithm = s->strides[0];
    *cells = s->dims[0];
    *bias = s->strides[1];
    *directions = s->dims[1];
    *input = s->strides[2];
    *type = s->type;
    *compute = s->dims[2];
    *math = s->strides[3];
    *input_size = s->dims[3];
    *hidden_size = s->dims[4];
    *projection_size = s->dims[5];
    *layers = s->dims[6];
    *dropout = NULL;
    *flags = (unsigned)s->strides[4];
    return 0;
}

int cudnnCreateRNNDataDescriptor(void **descriptor)
{
    return create(descriptor);
}

int cudnnSetRNNDataDescriptor(void *descriptor, int type, int layout, int length, int batch,
                              int size, const int *lengths, void *padding)
{
    *(struct shape *)descriptor =
        (struct shape){.type = type, .format = layout, .count = 3, .dims = {length, batch, size}};
    return lengths && !padding ? 0 : fail(BAD_PARAM);
}

/* As the real one, which wants a place for each of its answers. */
int cudnnGetRNNDataDescriptor(const void *descriptor, int *type, int *layout, int *length,
                              int *batch, int *size, int requested, int *lengths, void *padding)
{
    const struct shape *s = descriptor;
    if (!lengths || !padding || requested)
        return fail(BAD_PARAM);
    *type = s->type;
    *layout = s->format;
    *length = s->dims[0];
    *batch = s->dims[1];
    *size = s->dims[2];
    memset(padding, 0, s->type == 1 ? 8 : s->type == 0 ? 4 : 2);
    return 0;
}

int cudnnRNNForward(void *handle, void *rnn, int mode, const void *lengths, void *x_desc,
                    const void *x, void *y_desc, void *y, void *h_desc, const void *hx, void *hy,
                    void *c_desc, const void *cx, void *cy, size_t weight_bytes,
                    const void *weights, size_t workspace_bytes, void *workspace,
                    size_t reserve_bytes, void *reserve)
{
    const struct shape *s = rnn;
    log_call(__func__,
             "%p %d %p %p %p %p %p %p %p %p %p %zu %p %zu %p %zu %p rnn=%d,%d,%d,%d,%d,%d:%s:0:0:: "
             "x=%s y=%s",
             handle, mode, lengths, x, y, h_desc, hx, hy, c_desc, cx, cy, weight_bytes, weights,
             workspace_bytes, workspace, reserve_bytes, reserve, s->dims[0], s->dims[1], s->dims[3],
             s->dims[4], s->dims[5], s->dims[6], type_names[s->dims[2]], told(x_desc),
             told(y_desc));
    work();
    return 0;
}
