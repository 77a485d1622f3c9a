/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_replay FILE...: runs the fuzzer's function once on each file, without a fuzzer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    static uint8_t data[2 << 20];
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "re");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        printf("%s: %zu bytes\n", argv[i], size);
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, size);
    }
    return 0;
}
