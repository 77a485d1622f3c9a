/* SPDX-License-Identifier: Apache-2.0 */
/* What the recipes of CONTRIBUTING.md have hooked, called once or twice each. */
#include <cuda_runtime_api.h>

struct toy {
    int size;
};

int toyA(struct toy *toy, const void *from, unsigned long bytes);
int toyB(int how);

int main(void)
{
    struct toy toy;
    int least = 1, greatest = 1;
    int failed = cudaDeviceGetStreamPriorityRange(&least, &greatest) != cudaSuccess || least;
    failed |= toyA(&toy, "toys", 8) != 0 || toy.size != 4;
    failed |= toyA(&toy, 0, 8) != 3;
    failed |= toyB(7) != 7;
    return failed;
}
