/* SPDX-License-Identifier: Apache-2.0 */
/* resident_work MIB: has so much more memory than at its start, says how many bytes, and ends. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 1) << 20;
    unsigned long pages = 0;
    void *ptr;
    if (cudaMalloc(&ptr, 64))
        return 1;
    char *memory = malloc(bytes);
    if (!memory)
        return 1;
    memset(memory, 1, bytes);
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm || fscanf(statm, "%*u %lu", &pages) != 1)
        return 1;
    printf("%lu %d\n", pages * (unsigned long)sysconf(_SC_PAGESIZE), memory[bytes - 1]);
    return 0;
}
