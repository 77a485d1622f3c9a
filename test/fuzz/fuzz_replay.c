/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_replay FILE...: runs the fuzzer's function on each file, without a fuzzer: once, and if it
 * is a recording, in each way that there is to read it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_outputs.h"

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
        bool is_recording = size && (data[0] & 15) != 2 && (data[0] & 15) != 4;
        LLVMFuzzerTestOneInput(data, size);
        for (unsigned how = 0; is_recording && how <= FUZZ_OUTPUTS; how++) {
            data[0] = (uint8_t)((data[0] & 15) | how << 4);
            LLVMFuzzerTestOneInput(data, size);
        }
    }
    return 0;
}
