// SPDX-License-Identifier: Apache-2.0
// A program as users write it: <<<>>>, templates, streams, a graph.
#include <cstdio>

__global__ void scale(float *values, float factor, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] *= factor;
}

template <typename T> __global__ void reverse(T *values, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count / 2) {
        T kept = values[i];
        values[i] = values[count - 1 - i];
        values[count - 1 - i] = kept;
    }
}

int main()
{
    const int count = 10000;
    float *values;
    int *numbers;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaMalloc(&values, count * sizeof *values);
    cudaMalloc(&numbers, count * sizeof *numbers);
    cudaMemset(values, 0, count * sizeof *values);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int i = 1; i <= 4; i++) {
        scale<<<(count + 255) / 256, 256>>>(values, 2.0f, count);
        scale<<<dim3(i, 2, 3), dim3(8, 4, 2), 64 * i, stream>>>(values, 0.5f, count);
        reverse<int><<<i, 128, 0, stream>>>(numbers, count);
        reverse<double><<<1, 32 * i>>>(reinterpret_cast<double *>(values), count / 2);
    }
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    scale<<<4, 32, 0, stream>>>(values, 3.0f, count);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    cudaDeviceSynchronize();
    cudaFree(values);
    cudaFree(numbers);
    std::printf("done: %s\n", cudaGetErrorName(cudaGetLastError()));
    return 3;
}
