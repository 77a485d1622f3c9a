/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/shown_frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/text.h"
#include "error.h"

void shown_frames_release(struct shown_frames *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        free(s->list[i].label);
        free(s->list[i].json);
    }
    free(s->list);
    number_set_release(&s->numbers);
    *s = (struct shown_frames){0};
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const char *shown_frame_text_of(const struct kernel_name *name)
{
    return name ? name->shown : "?";
}

/* Returns the frame's text in new memory; NULL: no memory. */
static char *make_text(const struct shown_frame *f)
{
    const char *module = f->module ? path_base(f->module->raw) : "unknown module";
    unsigned long long line = f->line;
    switch (f->kind) {
    case SHOWN_ADDRESS: return text_printf("0x%llx", line);
    case SHOWN_BORROWED: return strdup("[borrowed: the thread that waits for this one]");
    case SHOWN_CUT: return strdup("[cut: deeper frames are not recorded]");
    case SHOWN_STACKLESS: return strdup("[no stack]");
    case SHOWN_RANGE: return text_printf("[range %s]", shown_frame_text_of(f->name));
    case SHOWN_PYTHON:
    case SHOWN_NATIVE:
    case SHOWN_INLINED:
        if (!f->name && !f->file && f->kind == SHOWN_PYTHON)
            return strdup("[unknown place in Python code]");
        if (!f->name && !f->file)
            return text_printf("%s+0x%llx", module, line);
        if (f->file && line)
            return text_printf("%s (%s:%llu)", shown_frame_text_of(f->name),
                               path_base(f->file->raw), line);
        return text_printf("%s (%s)", shown_frame_text_of(f->name),
                           f->file ? path_base(f->file->raw) : module);
    default: return strdup(shown_frame_text_of(f->name));
    }
}

/* Cuts valid UTF-8 between characters. */
static void cut_label(char *text)
{
    size_t length = strlen(text);
    if (length >= SHOWN_LABEL_BYTES) {
        length = SHOWN_LABEL_BYTES - 4;
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
        memcpy(text + length, "...", 4);
    }
}

static int make_label(struct shown_frame *f)
{
    char *text = make_text(f);
    f->label = text ? json_line(text) : NULL;
    f->json = NULL;
    free(text);
    if (f->label) {
        cut_label(f->label);
        f->json = json_string(f->label, strlen(f->label));
    }
    f->json_bytes = f->json ? (uint32_t)strlen(f->json) : 0;
    return f->json ? 0 : GPUPROF_NO_MEMORY;
}

static const struct number_kind kind = NUMBER_KEY(struct shown_frame, is_stub);

int shown_frame_number(struct shown_frames *s, const struct shown_frame *frame, uint32_t *number)
{
    uint32_t before = s->count;
    int64_t found = NUMBER_ADD(&s->numbers, &kind, s->list, s->count, SHOWN_FRAMES_MAX, frame);
    s->left_out += !found;
    *number = found > 0 ? (uint32_t)found : 0;
    return found < 0 ? (int)found : s->count > before ? make_label(&s->list[before]) : 0;
}
