// SPDX-License-Identifier: Apache-2.0
// Launches as clang makes them, without NVIDIA's headers: only what it asks for is declared.
#define __global__ __attribute__((global))

typedef decltype(sizeof(int)) size_t;
typedef struct CUstream_st *cudaStream_t;
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z)
    {
    }
};
extern "C" int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, size_t = 0, cudaStream_t = nullptr);
extern "C" int __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);

__global__ void scale(float *values, int count)
{
    values[0] = count;
}

template <typename T> __global__ void reverse(T *values)
{
    values[0] = 0;
}

namespace outer {
namespace {
__global__ void inner(float *values)
{
    values[0] = 1;
}
} // namespace
} // namespace outer

extern "C" __global__ void plain(float *values)
{
    values[0] = 2;
}

int main()
{
    scale<<<1, 2>>>(nullptr, 1);
    reverse<float><<<1, 2>>>(nullptr);
    outer::inner<<<1, 2>>>(nullptr);
    plain<<<1, 2>>>(nullptr);
    return 0;
}
