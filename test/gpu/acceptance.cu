// SPDX-License-Identifier: Apache-2.0
// Makes a known number of calls of each kind on a real GPU and prints the numbers: what gpuprof
// recorded must equal them. Built by check_gpu.py with shared and with static cudart.
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                    \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

__global__ void scale(float *data, float by)
{
    data[blockIdx.x * blockDim.x + threadIdx.x] *= by;
}

int main(int argc, char **argv)
{
    const int launches = argc > 1 ? std::atoi(argv[1]) : 1000;
    const size_t bytes = 64 * 256 * sizeof(float);
    float *data = nullptr, *host = nullptr;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaMalloc(&data, bytes));
    CHECK(cudaMallocHost(&host, bytes));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMemcpyAsync(data, host, bytes, cudaMemcpyHostToDevice, stream));
    for (int i = 0; i < launches; i++)
        scale<<<64, 256, 0, stream>>>(data, 1.0f);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 10; i++)
        scale<<<64, 256, 0, stream>>>(data, 1.0f);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 20; i++)
        CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaMemcpyAsync(host, data, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaFree(data));
    CHECK(cudaFreeHost(host));
    std::printf("launch %d\ncaptured 10\ngraph_launch 20\nmemcpy 2\n", launches);
    return 0;
}
