/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_describe.h"

#include <stdio.h>
#include <string.h>

#include "cupti/gpu_state.h"
#include "record/thread.h"
#include "store/meta.h"

#define KINDS_BYTES_MAX 128

/* The words of --kinds that are wanted, with commas. */
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
}

void gpu_describe(struct thread *writer, bool is_last)
{
    (void)is_last;
    static uint32_t written;
    static uint64_t epoch;
    char text[STATUS_BYTES_MAX];
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
