/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_describe.h"

#include <stdio.h>
#include <string.h>

#include "cupti/gpu_devices.h"
#include "cupti/gpu_state.h"
#include "record/thread.h"
#include "store/meta.h"

#define KINDS_BYTES_MAX 128

/* Appends the enabled words of --kinds, with commas between them. */
static void append_kinds(struct thread *t)
{
    char words[KINDS_BYTES_MAX] = "", text[KINDS_BYTES_MAX + 16];
    const char *word = setting_infos[SETTING_KINDS].value;
    for (unsigned bit = 0; word; bit++) {
        int length = (int)strcspn(word, "|");
        size_t used = strlen(words);
        if (gp.settings.numbers[SETTING_KINDS] >> bit & 1)
            snprintf(words + used, sizeof words - used, "%s%.*s", used ? "," : "", length, word);
        word = word[length] ? word + length + 1 : NULL;
    }
    meta_append_with(t, "gpu_kinds", words, strlen(words), text, sizeof text);
    if (gp.settings.numbers[SETTING_GRAPHS] == GRAPHS_WHOLE || gpu.graphs_are_whole)
        meta_append_with(t, "gpu_graphs", "whole", strlen("whole"), text, sizeof text);
}

/* CUPTI's ids of the functions, as its own traces use them. For a function with several ids, one
 * for each version, it is not known which one was called. */
static void append_callbacks(struct thread *writer)
{
    uint32_t ids[API_FUNCTION_COUNT] = {0};
    bool is_ambiguous[API_FUNCTION_COUNT] = {0};
    for (unsigned domain = 0; domain < CUPTI_API_DOMAINS; domain++)
        for (uint32_t id = 1; id < CUPTI_CBID_MAX; id++) {
            unsigned row = gpu.callbacks.codes[domain][id];
            if (!row)
                continue;
            is_ambiguous[row - 1] = ids[row - 1] != 0;
            ids[row - 1] = id;
        }
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++)
        if (ids[i] && !is_ambiguous[i]) {
            struct record r = {RECORD_WITH(CALLBACK, [CALLBACK_ID] = ids[i]), .code = (uint16_t)i,
                               .begin = gp.header.scale.ticks_zero};
            thread_append(writer, &r);
        }
}

/* Once per recording, when CUPTI was found, or was not. */
static void describe_cupti(struct thread *writer)
{
    static uint64_t epoch;
    char text[16];
    uint32_t phase = atomic_load(&gpu.phase);
    if (epoch == writer->epoch || phase == GPU_OFF || phase == GPU_STARTING)
        return;
    epoch = writer->epoch;
    append_callbacks(writer);
    snprintf(text, sizeof text, "%u", gpu.driver_version);
    if (gpu.driver_version)
        meta_append_text(writer, "cuda_driver", text);
}

void gpu_describe(struct thread *writer, bool is_last)
{
    (void)is_last;
    static uint32_t written;
    static uint64_t epoch;
    char text[STATUS_BYTES_MAX];
    describe_cupti(writer);
    gpu_devices_describe(writer);
    if (!status_copy(&gpu.status, &written, epoch != writer->epoch, text))
        return;
    if (epoch != writer->epoch)
        append_kinds(writer);
    epoch = writer->epoch;
    meta_append_text(writer, "gpu_rows", text);
}

void gpu_describe_now(struct thread *t)
{
    char status[STATUS_BYTES_MAX], text[STATUS_BYTES_MAX + 16];
    if (!thread_takes_part(t))
        return;
    uint32_t seen;
    append_kinds(t);
    if (status_copy(&gpu.status, &seen, true, status))
        meta_append_with(t, "gpu_rows", status, strlen(status), text, sizeof text);
}
