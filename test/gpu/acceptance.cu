// SPDX-License-Identifier: Apache-2.0
// Makes a known number of calls of each kind on a real GPU and prints the numbers: what gpuprof
// recorded must equal them. Built by check_counts.py with shared and with static cudart; makes the
// same calls as ctypes_work.py and prints the same lines.
//
//     acceptance LAUNCHES|for-ever [SYNC_EVERY [- abort]]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                    \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

constexpr int captured_count = 10, graph_launch_count = 20, copy_count = 16, set_count = 8;
constexpr size_t data_bytes = 65536;

static unsigned *data, *spare;
static cudaStream_t stream;

__global__ void add_one(unsigned *counter)
{
    atomicAdd(counter, 1u);
}

static void launch()
{
    add_one<<<1, 32, 0, stream>>>(data);
}

static void set_spare()
{
    CHECK(cudaMemsetAsync(spare, 7, data_bytes, stream));
}

static void copy_inside()
{
    CHECK(cudaMemcpyAsync(spare, data, data_bytes, cudaMemcpyDeviceToDevice, stream));
}

static void run_loop(long launches, int sync_every)
{
    auto begin = std::chrono::steady_clock::now();
    for (long i = 1; launches < 0 || i <= launches; i++) {
        if (i == launches / 10)
            begin = std::chrono::steady_clock::now();
        launch();
        if (i % sync_every == 0)
            CHECK(cudaStreamSynchronize(stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    auto took = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "loop_ns %lld\n",
                 (long long)std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
}

static void run_graph()
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < captured_count; i++)
        launch();
    set_spare();
    copy_inside();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < graph_launch_count; i++)
        CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
    const bool for_ever = argc > 1 && std::strcmp(argv[1], "for-ever") == 0;
    const long launches = for_ever ? -1 : argc > 1 ? std::atol(argv[1]) : 1000;
    const int sync_every = argc > 2 ? std::atoi(argv[2]) : 1000;
    unsigned *host = nullptr;
    CHECK(cudaMalloc(&data, data_bytes));
    CHECK(cudaMalloc(&spare, data_bytes));
    CHECK(cudaMallocHost(&host, data_bytes));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::memset(host, 0, data_bytes);
    CHECK(cudaMemcpyAsync(data, host, data_bytes, cudaMemcpyHostToDevice, stream));
    for (int i = 0; i < copy_count - 2; i++)
        copy_inside();
    for (int i = 0; i < set_count; i++)
        set_spare();
    if (for_ever) {
        std::puts("running");
        std::fflush(stdout);
    }
    run_loop(launches, sync_every);
    if (argc > 4)
        std::abort();
    run_graph();
    CHECK(cudaMemcpyAsync(host, data, data_bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::printf("launch %ld\ncaptured %d\ngraph_launch %d\ngraph_copy 1\ngraph_set 1\ncopy %d\n"
                "set %d\nresult %u\n",
                launches, captured_count, graph_launch_count, copy_count, set_count, host[0]);
    return 0;
}
