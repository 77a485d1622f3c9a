/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_replay FILE...: runs the fuzzer's function on each file, without a fuzzer: once, and if it
 * is a recording, in each way that there is to read it; and each recording with its blocks mixed
 * with those of the one before, MIXES times in each way. fuzz_replay -o FOLDER FILE...: writes the
 * files all there instead, as what a fuzzer begins with.
 */
#include <libgen.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_blocks.h"
#include "fuzz_outputs.h"

#define MIXES       2
#define BYTES_MAX   (2u << 20)
#define MIXED_BYTES (1u << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_input(const char *folder, char *path, const uint8_t *data, size_t size)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/%s-%02x", folder, basename(path), data[0]);
    FILE *file = fopen(name, "we");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        perror(name);
        exit(1);
    }
}

static void take(const char *folder, char *path, const uint8_t *data, size_t size)
{
    if (folder)
        write_input(folder, path, data, size);
    else
        LLVMFuzzerTestOneInput(data, size);
}

/* With blocks of the recording before, which the first byte of each precedes. */
static void mix(const uint8_t *data, size_t size)
{
    static uint8_t mixed[MIXED_BYTES], before[MIXED_BYTES];
    static size_t before_bytes;
    static unsigned seed;
    for (unsigned i = 0; i < MIXES * (1 + FUZZ_OUTPUTS) && size <= sizeof mixed; i++) {
        memcpy(mixed, data, size);
        size_t made =
            fuzz_blocks(mixed + 1, size - 1, sizeof mixed - 1, before_bytes ? before + 1 : NULL,
                        before_bytes ? before_bytes - 1 : 0, ++seed);
        mixed[0] = (uint8_t)(i << 4);
        if (made)
            LLVMFuzzerTestOneInput(mixed, 1 + made);
    }
    before_bytes = size <= sizeof before ? size : 0;
    memcpy(before, data, before_bytes);
}

int main(int argc, char **argv)
{
    static uint8_t data[BYTES_MAX];
    const char *folder = argc > 2 && strcmp(argv[1], "-o") == 0 ? argv[2] : NULL;
    for (int i = folder ? 3 : 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "re");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        printf("%s: %zu bytes\n", argv[i], size);
        fflush(stdout);
        if (!size)
            continue;
        take(folder, argv[i], data, size);
        unsigned what = data[0] & 15;
        bool is_recording = what != 2 && (what < 4 || what == 9);
        for (unsigned how = 0; is_recording && how <= FUZZ_OUTPUTS; how++) {
            data[0] = (uint8_t)(what | how << 4);
            take(folder, argv[i], data, size);
        }
        if (!folder && what < 2)
            mix(data, size);
    }
    return 0;
}
