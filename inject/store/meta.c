/* SPDX-License-Identifier: Apache-2.0 */
#include "store/meta.h"

#include <string.h>

#include "base/ticks.h"
#include "record/thread.h"

void meta_append_with(struct thread *t, const char *key, const char *value, size_t length,
                      char *text, size_t bytes)
{
    size_t head = strlen(key) + 1;
    if (length > bytes - head)
        length = bytes - head;
    memcpy(text, key, head - 1);
    text[head - 1] = '=';
    memcpy(text + head, value, length);
    struct record r = {.type = RECORD_META,
                       .begin = ticks_now(),
                       .bytes = (const uint8_t *)text,
                       .byte_count = (uint32_t)(head + length)};
    thread_append(t, &r);
}

void meta_append(struct thread *writer, const char *key, const char *value, size_t length)
{
    static char text[RECORD_BYTES_MAX]; /* used by the writer only; too large for its stack */
    meta_append_with(writer, key, value, length, text, sizeof text);
}

void meta_append_text(struct thread *writer, const char *key, const char *value)
{
    meta_append(writer, key, value, strlen(value));
}
