/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the cuDNN double, by prototypes of its own: once to declare them, and again
 * where DNN_FUNCTION(name, params, names) is defined. */
#ifndef DNN_DOUBLE_DECLARED
#define DNN_DOUBLE_DECLARED
#include <stddef.h>
#include <stdint.h>

enum {
    TYPE_DATA_TYPE = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INT64 = 3,
    TYPE_FLOAT = 4,
    TYPE_DOUBLE = 5,
    TYPE_CONVOLUTION_MODE = 7,
    TYPE_POINTWISE_MODE = 14,
    TYPE_DESCRIPTOR = 15,
    TYPE_CHAR = 24,
};

#define DNN_FUNCTION(name, params, names) int name params;
#endif

DNN_FUNCTION(cudnnGetLastErrorString, (char *message, size_t bytes), (message, bytes))
DNN_FUNCTION(cudnnBackendCreateDescriptor, (int kind, void **descriptor), (kind, descriptor))
DNN_FUNCTION(cudnnBackendDestroyDescriptor, (void *descriptor), (descriptor))
DNN_FUNCTION(cudnnBackendSetAttribute,
             (void *descriptor, int name, int type, int64_t count, const void *elements),
             (descriptor, name, type, count, elements))
DNN_FUNCTION(cudnnBackendFinalize, (void *descriptor), (descriptor))
DNN_FUNCTION(cudnnBackendGetAttribute,
             (const void *descriptor, int name, int type, int64_t requested, int64_t *count,
              void *elements),
             (descriptor, name, type, requested, count, elements))
DNN_FUNCTION(cudnnBackendExecute, (void *handle, void *plan, void *variants),
             (handle, plan, variants))
DNN_FUNCTION(cudnnBackendPopulateCudaGraph, (void *handle, void *plan, void *variants, void *graph),
             (handle, plan, variants, graph))
DNN_FUNCTION(cudnnBackendUpdateCudaGraph, (void *handle, void *plan, void *variants, void *graph),
             (handle, plan, variants, graph))
DNN_FUNCTION(cudnnCreateTensorDescriptor, (void **descriptor), (descriptor))
DNN_FUNCTION(cudnnCreateFilterDescriptor, (void **descriptor), (descriptor))
DNN_FUNCTION(cudnnCreateConvolutionDescriptor, (void **descriptor), (descriptor))
DNN_FUNCTION(cudnnDestroyTensorDescriptor, (void *descriptor), (descriptor))
DNN_FUNCTION(cudnnDestroyFilterDescriptor, (void *descriptor), (descriptor))
DNN_FUNCTION(cudnnDestroyConvolutionDescriptor, (void *descriptor), (descriptor))
DNN_FUNCTION(cudnnSetTensorNdDescriptor,
             (void *descriptor, int type, int count, const int *dims, const int *strides),
             (descriptor, type, count, dims, strides))
DNN_FUNCTION(cudnnSetFilterNdDescriptor,
             (void *descriptor, int type, int format, int count, const int *dims),
             (descriptor, type, format, count, dims))
DNN_FUNCTION(cudnnSetConvolutionNdDescriptor,
             (void *descriptor, int count, const int *pad, const int *strides, const int *dilations,
              int mode, int type),
             (descriptor, count, pad, strides, dilations, mode, type))
DNN_FUNCTION(cudnnSetConvolutionGroupCount, (void *descriptor, int groups), (descriptor, groups))
DNN_FUNCTION(cudnnGetTensorNdDescriptor,
             (const void *descriptor, int requested, int *type, int *count, int *dims,
              int *strides),
             (descriptor, requested, type, count, dims, strides))
DNN_FUNCTION(cudnnGetFilterNdDescriptor,
             (const void *descriptor, int requested, int *type, int *format, int *count, int *dims),
             (descriptor, requested, type, format, count, dims))
DNN_FUNCTION(cudnnGetConvolutionNdDescriptor,
             (const void *descriptor, int requested, int *count, int *pad, int *strides,
              int *dilations, int *mode, int *type),
             (descriptor, requested, count, pad, strides, dilations, mode, type))
DNN_FUNCTION(cudnnGetConvolutionGroupCount, (const void *descriptor, int *groups),
             (descriptor, groups))
DNN_FUNCTION(cudnnConvolutionForward,
             (void *handle, const void *alpha, void *x_desc, const void *x, void *w_desc,
              const void *w, void *conv, int algorithm, void *workspace, size_t workspace_bytes,
              const void *beta, void *y_desc, void *y),
             (handle, alpha, x_desc, x, w_desc, w, conv, algorithm, workspace, workspace_bytes,
              beta, y_desc, y))
DNN_FUNCTION(cudnnConvolutionBiasActivationForward,
             (void *handle, const void *alpha1, void *x_desc, const void *x, void *w_desc,
              const void *w, void *conv, int algorithm, void *workspace, size_t workspace_bytes,
              const void *alpha2, void *z_desc, const void *z, void *bias_desc, const void *bias,
              void *activation, void *y_desc, void *y),
             (handle, alpha1, x_desc, x, w_desc, w, conv, algorithm, workspace, workspace_bytes,
              alpha2, z_desc, z, bias_desc, bias, activation, y_desc, y))
DNN_FUNCTION(cudnnConvolutionBackwardData,
             (void *handle, const void *alpha, void *w_desc, const void *w, void *dy_desc,
              const void *dy, void *conv, int algorithm, void *workspace, size_t workspace_bytes,
              const void *beta, void *dx_desc, void *dx),
             (handle, alpha, w_desc, w, dy_desc, dy, conv, algorithm, workspace, workspace_bytes,
              beta, dx_desc, dx))
DNN_FUNCTION(cudnnConvolutionBackwardFilter,
             (void *handle, const void *alpha, void *x_desc, const void *x, void *dy_desc,
              const void *dy, void *conv, int algorithm, void *workspace, size_t workspace_bytes,
              const void *beta, void *dw_desc, void *dw),
             (handle, alpha, x_desc, x, dy_desc, dy, conv, algorithm, workspace, workspace_bytes,
              beta, dw_desc, dw))
DNN_FUNCTION(cudnnFindConvolutionForwardAlgorithmEx,
             (void *handle, void *x_desc, const void *x, void *w_desc, const void *w, void *conv,
              void *y_desc, void *y, int requested, int *returned, void *results, void *workspace,
              size_t workspace_bytes),
             (handle, x_desc, x, w_desc, w, conv, y_desc, y, requested, returned, results,
              workspace, workspace_bytes))
DNN_FUNCTION(cudnnPoolingForward,
             (void *handle, void *pooling, const void *alpha, void *x_desc, const void *x,
              const void *beta, void *y_desc, void *y),
             (handle, pooling, alpha, x_desc, x, beta, y_desc, y))
DNN_FUNCTION(cudnnBatchNormalizationForwardTrainingEx,
             (void *handle, int mode, int operations, const void *alpha, const void *beta,
              void *x_desc, const void *x, void *z_desc, const void *z, void *y_desc, void *y,
              void *scale_desc, const void *scale, const void *bias, double factor, void *mean,
              void *variance, double epsilon, void *saved_mean, void *saved_variance,
              void *activation, void *workspace, size_t workspace_bytes, void *reserve,
              size_t reserve_bytes),
             (handle, mode, operations, alpha, beta, x_desc, x, z_desc, z, y_desc, y, scale_desc,
              scale, bias, factor, mean, variance, epsilon, saved_mean, saved_variance, activation,
              workspace, workspace_bytes, reserve, reserve_bytes))
DNN_FUNCTION(cudnnCreateRNNDescriptor, (void **descriptor), (descriptor))
DNN_FUNCTION(cudnnSetRNNDescriptor_v8,
             (void *descriptor, int algorithm, int cells, int bias, int directions, int input,
              int type, int compute, int math, int input_size, int hidden_size, int projection_size,
              int layers, void *dropout, unsigned flags),
             (descriptor, algorithm, cells, bias, directions, input, type, compute, math,
              input_size, hidden_size, projection_size, layers, dropout, flags))
DNN_FUNCTION(cudnnGetRNNDescriptor_v8,
             (const void *descriptor, int *algorithm, int *cells, int *bias, int *directions,
              int *input, int *type, int *compute, int *math, int *input_size, int *hidden_size,
              int *projection_size, int *layers, void **dropout, unsigned *flags),
             (descriptor, algorithm, cells, bias, directions, input, type, compute, math,
              input_size, hidden_size, projection_size, layers, dropout, flags))
DNN_FUNCTION(cudnnCreateRNNDataDescriptor, (void **descriptor), (descriptor))
DNN_FUNCTION(cudnnSetRNNDataDescriptor,
             (void *descriptor, int type, int layout, int length, int batch, int size,
              const int *lengths, void *padding),
             (descriptor, type, layout, length, batch, size, lengths, padding))
DNN_FUNCTION(cudnnGetRNNDataDescriptor,
             (const void *descriptor, int *type, int *layout, int *length, int *batch, int *size,
              int requested, int *lengths, void *padding),
             (descriptor, type, layout, length, batch, size, requested, lengths, padding))
DNN_FUNCTION(cudnnRNNForward,
             (void *handle, void *rnn, int mode, const void *lengths, void *x_desc, const void *x,
              void *y_desc, void *y, void *h_desc, const void *hx, void *hy, void *c_desc,
              const void *cx, void *cy, size_t weight_bytes, const void *weights,
              size_t workspace_bytes, void *workspace, size_t reserve_bytes, void *reserve),
             (handle, rnn, mode, lengths, x_desc, x, y_desc, y, h_desc, hx, hy, c_desc, cx, cy,
              weight_bytes, weights, workspace_bytes, workspace, reserve_bytes, reserve))
#undef DNN_FUNCTION
