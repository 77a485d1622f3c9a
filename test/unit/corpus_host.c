/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "bytes.h"
#include "corpus.h"
#include "frame.h"

/* Samples, calls of the system, the GIL and collections at odds with everything: stacks, threads
 * and functions that are not there, times and numbers without an end, hostile names; and work with
 * gaps that they may explain. */
void corpus_save_host(void)
{
    static const uint64_t wild[] = {0, 1, 3, 77, 4711, 5000000, 1ull << 63, UINT64_MAX};
    static const char *const texts[] = {NULL,    "",          "read", "\x1b[2J<b>\xff\"\n",
                                        "/a\tb", "socket:[1]"};
    static const char places[][40] = {"<frozen importlib._bootstrap>\0_call", "/me/a.py\0<module>",
                                      "/me/b.py\0<module>"};
    struct stream_builder b;
    uint32_t seed = 4;
    corpus_begin(&b);
    builder_meta(&b, "python=3.11");
    builder_thread(&b, 2, 0, 6, "gpuprof-gpu");
    builder_thread(&b, 3, 0, 4711, "gpuprof-host");
    for (uint32_t i = 0; i < 6; i++) {
        uint8_t bytes[32];
        struct record place = {.type = RECORD_PYTHON,
                               .arg_count = 2,
                               .args = {i, 40 + i},
                               .bytes = (const uint8_t *)places[i % 3],
                               .byte_count = i % 3 ? 17 : 36};
        struct record stack = {.type = RECORD_STACK,
                               .arg_count = 1,
                               .args = {i},
                               .bytes = bytes,
                               .byte_count = 8 * (1 + i % 4)};
        for (uint32_t k = 0; k < 4; k++)
            store_u64(bytes + 8 * k, frame_in_python((i + k) % 7));
        builder_add(&b, 1, &place);
        builder_add(&b, 1, &stack);
    }
    for (uint32_t i = 0; i < 400; i++) {
        struct record r = {.type = (uint8_t)(RECORD_SAMPLE + i % 7), .begin = 50000 * (i % 390)};
        uint32_t *const dice[] = {&r.weight, &r.stack_id};
        for (unsigned k = 0; k < 11; k++) {
            seed = seed * 1664525 + 1013904223;
            r.args[k] = wild[seed >> 29];
            if (k < 2)
                *dice[k] = seed >> 28 & 1 ? (uint32_t)wild[seed >> 29] : seed >> 30;
        }
        r.code = (uint16_t)(seed >> 26 & 1 ? wild[seed >> 29] : seed >> 30);
        r.duration = r.type == RECORD_GIL_REST ? 0 : r.args[8];
        r.arg_count = (uint8_t)(seed >> 20) % 12;
        r.bytes = (const uint8_t *)texts[seed >> 16 & 3 ? (seed >> 9) % 6 : 0];
        r.byte_count = r.bytes ? (uint32_t)strlen((const char *)r.bytes) : 0;
        builder_add(&b, 1 + (seed >> 14) % 5, &r);
        if (i % 20 == 0)
            builder_record(&b, 2, RECORD_SET, r.begin + 9, 900, i, 7, (uint64_t[7]){0, 1, 7}, NULL);
    }
    corpus_add_calls(&b);
    corpus_save(&b, "host-wild.gpuprof");
    builder_release(&b);
}
