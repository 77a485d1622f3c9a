/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_layout.h"

#include <string.h>

#include "known_versions.h"

#define COOKIE     "xdebugpy"
#define OFFSET_MAX 65536u /* largest offset in any structure */

/* Objects begin with the reference count and the type; for sized objects the size follows. */
#define OBJECT_TYPE 8u
#define OBJECT_SIZE 16u
#define TYPE_FLAGS  168u /* offset, likewise */
#define TEXT_KIND   2    /* the bits before it say whether it is interned */

/* Up to 3.10 frames are objects, and each has its own loop. take_table adds the differences. */
static const struct python_layout layout_3_8 = {
    .runtime_finalizing = 16,
    .runtime_interpreters = 32,
    .interpreter_threads = 8,
    .thread_next = 8,
    .thread_native = 176,
    .native_is_pthread = true,
    .thread_interpreter = 16,
    .runtime_gil = 1152,
    .thread_frame = 24,
    .cframe_frame = LAYOUT_NONE,
    .frame_code = 32,
    .frame_previous = 24,
    .frame_instruction = LAYOUT_NONE,
    .frame_last = 104,
    .frame_runs = 116,
    .runs_value = 1,
    .frame_owner = LAYOUT_NONE,
    .frame_is_entry = LAYOUT_NONE,
    .code_file = 104,
    .code_function = 112, /* without nested functions */
    .code_lines = 120,
    .code_first_line = 40,
    .code_first_traceable = LAYOUT_NONE,
    .code_flags = 36,
    .code_version = LAYOUT_NONE,
    .code_bytecode = 48,
    .code_copies = LAYOUT_NONE,
    .size = OBJECT_SIZE,
    .text_length = 16,
    .text_state = 32,
    .text_ascii = 48,
    .text_wide = 72,
    .bytes_data = 32,
    .type = OBJECT_TYPE,
    .type_flags = TYPE_FLAGS,
    .text_kind = TEXT_KIND,
    .thread_bytes = 32,
    .frame_bytes = 120,
    .code_bytes = 128,
    .owner_c = 3,
    .last_bytes = 1,
    .lines = LINES_PAIRS,
};

static const struct python_layout layout_3_11 = {
    .runtime_finalizing = 24,
    .runtime_interpreters = 40,
    .interpreter_threads = 16,
    .thread_next = 8,
    .thread_native = 160,
    .thread_interpreter = 16,
    .runtime_gil = 360,
    .thread_frame = 56,
    .cframe_frame = 8,
    .cframe_previous = 16,
    .cframe_bytes = 24,
    .frame_code = 32,
    .frame_previous = 48,
    .frame_instruction = 56,
    .frame_owner = 69,
    .frame_is_entry = 68,
    .code_bytecode = LAYOUT_NONE,
    .code_copies = LAYOUT_NONE,
    .code_file = 112,
    .code_function = 128,
    .code_lines = 136,
    .code_first_line = 72,
    .code_first_traceable = 168,
    .code_version = LAYOUT_NONE,
    .code_instructions = 184,
    .size = OBJECT_SIZE,
    .text_length = 16,
    .text_state = 32,
    .text_ascii = 48,
    .text_wide = 72,
    .bytes_data = 32,
    .type = OBJECT_TYPE,
    .type_flags = TYPE_FLAGS,
    .text_kind = TEXT_KIND,
    .thread_bytes = 64,
    .frame_bytes = 72,
    .code_bytes = 172,
    .owner_c = 3,
};

static const struct python_layout layout_3_12 = {
    .runtime_finalizing = 24,
    .runtime_interpreters = 40,
    .interpreter_threads = 72,
    .thread_next = 8,
    .thread_native = 144,
    .thread_interpreter = 16,
    .runtime_gil = LAYOUT_NONE,
    .interpreter_gil = 384,
    .thread_frame = 56,
    .cframe_frame = 0,
    .cframe_previous = 8,
    .cframe_bytes = 16,
    .frame_code = 0,
    .frame_previous = 8,
    .frame_instruction = 56,
    .frame_owner = 70,
    .frame_is_entry = LAYOUT_NONE,
    .code_bytecode = LAYOUT_NONE,
    .code_copies = LAYOUT_NONE,
    .code_file = 112,
    .code_function = 128,
    .code_lines = 136,
    .code_first_line = 68,
    .code_first_traceable = 176,
    .code_version = 92,
    .code_instructions = 192,
    .size = OBJECT_SIZE,
    .text_length = 16,
    .text_state = 32,
    .text_ascii = 40,
    .text_wide = 56,
    .bytes_data = 32,
    .type = OBJECT_TYPE,
    .type_flags = TYPE_FLAGS,
    .text_kind = TEXT_KIND,
    .thread_bytes = 64,
    .frame_bytes = 72,
    .code_bytes = 180,
    .owner_c = 3,
};

/* Where the parts of the debug offsets begin, in words, and the number of words. */
struct parts {
    uint16_t version; /* major and minor version, as in Py_Version */
    uint16_t runtime;
    uint16_t interpreter;
    uint16_t gil; /* the word of the interpreter part with the address of its lock */
    uint16_t thread;
    uint16_t native; /* the word of the thread part with the kernel's thread id */
    uint16_t frame;
    uint16_t code;
    uint16_t object;
    uint16_t bytes;
    uint16_t text;
    uint16_t end;
};

static const struct parts known_parts[] = {
    {0x030d, 3, 6, 14, 19, 25, 28, 34, 44, 64, 67, 71},
    {0x030e, 3, 6, 15, 22, 28, 31, 39, 50, 74, 77, 81},
    {0x030f, 3, 6, 15, 22, 31, 39, 47, 58, 86, 89, 93},
};

enum word { WORD_COOKIE, WORD_VERSION, WORD_FREE_THREADED };

static const struct parts *find_parts(uint32_t version)
{
    for (size_t i = 0; i < sizeof known_parts / sizeof known_parts[0]; i++)
        if (version >> 16 == known_parts[i].version)
            return &known_parts[i];
    return NULL;
}

static uint64_t python_layout_word_at(const uint8_t *runtime, unsigned word)
{
    uint64_t value;
    memcpy(&value, runtime + 8 * (size_t)word, sizeof value);
    return value;
}

/* Frames are read up to their local variables, code objects up to their instructions. */
static void take_offsets(struct python_layout *l, const struct parts *p, const uint8_t *runtime)
{
    const struct {
        uint32_t *offset;
        unsigned word;
    } takes[] = {
        {&l->runtime_finalizing, p->runtime + 1u},
        {&l->runtime_interpreters, p->runtime + 2u},
        {&l->interpreter_threads, p->interpreter + 3u},
        {&l->thread_next, p->thread + 2u},
        {&l->thread_frame, p->thread + 4u},
        {&l->thread_native, p->native},
        {&l->thread_interpreter, p->thread + 3u},
        {&l->interpreter_gil, p->gil},
        {&l->frame_previous, p->frame + 1u},
        {&l->frame_code, p->frame + 2u},
        {&l->frame_instruction, p->frame + 3u},
        {&l->frame_bytes, p->frame + 4u},
        {&l->frame_owner, p->frame + 5u},
        {&l->frame_copy, p->frame + 7u}, /* since 3.14, like code_copies */
        {&l->code_file, p->code + 1u},
        {&l->code_function, p->code + 3u},
        {&l->code_lines, p->code + 4u},
        {&l->code_first_line, p->code + 5u},
        {&l->code_version, p->code + 7u}, /* directly after it; see below */
        {&l->code_instructions, p->code + 9u},
        {&l->code_copies, p->code + 10u},
        {&l->type, p->object + 1u},
        {&l->type_flags, p->object + 5u},
        {&l->size, p->bytes + 1u},
        {&l->bytes_data, p->bytes + 2u},
        {&l->text_state, p->text + 1u},
        {&l->text_length, p->text + 2u},
        {&l->text_ascii, p->text + 3u},
    };
    for (size_t i = 0; i < sizeof takes / sizeof takes[0]; i++) {
        uint64_t value = python_layout_word_at(runtime, takes[i].word);
        *takes[i].offset = value < OFFSET_MAX ? (uint32_t)value : OFFSET_MAX;
    }
}

/* The lock of free-threaded builds is off until a module needs it; a field at its start says so. */
static void take_gil(struct python_layout *l, const struct parts *p, const uint8_t *runtime)
{
    uint64_t locked =
        python_layout_word_at(runtime, p->gil + 3u) - python_layout_word_at(runtime, p->gil + 1u);
    l->gil_further = (uint32_t)locked - LAYOUT_GIL_LOCKED;
    if (locked != LAYOUT_GIL_LOCKED && locked != LAYOUT_GIL_LOCKED + 8)
        l->interpreter_gil = LAYOUT_NONE;
}

/* Sets what the debug offsets do not contain, but is constant since 3.13. Since 3.14 free-threaded
 * builds have copies of the code, and a full byte that says what is interned. */
static void complete(struct python_layout *l, bool has_copies)
{
    l->cframe_frame = LAYOUT_NONE;
    l->frame_is_entry = LAYOUT_NONE;
    l->runtime_gil = LAYOUT_NONE;
    l->code_bytecode = LAYOUT_NONE;
    if (!has_copies)
        l->code_copies = LAYOUT_NONE;
    l->code_version -= 4; /* before co_localsplusnames */
    /* Before co_extra, after which the copies are. */
    l->code_first_traceable = (has_copies ? l->code_copies : l->code_instructions) - 16u;
    l->text_wide = l->text_ascii + 16u;
    l->text_kind = has_copies ? 8 : TEXT_KIND;
    l->thread_bytes = (l->thread_frame > l->thread_next ? l->thread_frame : l->thread_next) + 8u;
    l->code_bytes = l->code_instructions;
    l->owner_c = 3;
}

static bool fits(uint32_t offset, uint32_t width, uint32_t bytes)
{
    return bytes <= LAYOUT_PART_BYTES_MAX && offset <= bytes && width <= bytes - offset;
}

static bool fits_if_any(uint32_t offset, uint32_t width, uint32_t bytes)
{
    return offset == LAYOUT_NONE || fits(offset, width, bytes);
}

/* Fields that only some versions have; the rest of the layout says which. */
static bool variants_are_sound(const struct python_layout *l)
{
    uint32_t frame = l->frame_bytes, code = l->code_bytes;
    bool is_sound =
        l->cframe_frame == LAYOUT_NONE ||
        (fits(l->cframe_frame, 8, l->cframe_bytes) && fits(l->cframe_previous, 8, l->cframe_bytes));
    is_sound &= l->frame_instruction == LAYOUT_NONE
                    ? fits(l->frame_last, 4, frame) && fits(l->frame_runs, 1, frame) &&
                          fits(l->code_bytecode, 8, code)
                    : fits(l->frame_instruction, 8, frame);
    is_sound &= l->code_first_traceable == LAYOUT_NONE ? fits(l->code_flags, 4, code)
                                                       : fits(l->code_first_traceable, 4, code);
    is_sound &= l->code_copies == LAYOUT_NONE ||
                (fits(l->code_copies, 8, code) && fits(l->frame_copy, 4, frame));
    return is_sound && fits_if_any(l->frame_owner, 1, frame) &&
           fits_if_any(l->frame_is_entry, 1, frame) && fits_if_any(l->code_version, 4, code);
}

bool python_layout_is_sound(const struct python_layout *l)
{
    uint32_t thread = l->thread_bytes, frame = l->frame_bytes, code = l->code_bytes;
    bool is_sound = fits(l->thread_frame, 8, thread) && fits(l->thread_next, 8, thread);
    is_sound &= fits(l->frame_code, 8, frame) && fits(l->frame_previous, 8, frame) &&
                fits(l->type, 8, frame);
    is_sound &= fits(l->code_file, 8, code) && fits(l->code_function, 8, code) &&
                fits(l->code_lines, 8, code) && fits(l->code_first_line, 4, code);
    is_sound &= fits(l->text_state, 4, l->text_ascii) && fits(l->text_length, 8, l->text_ascii) &&
                fits(l->type, 8, l->text_ascii);
    is_sound &= fits(l->size, 8, l->bytes_data) && fits(l->size, 8, code) &&
                fits(l->type, 8, l->bytes_data) && fits(l->type, 8, code);
    return is_sound && variants_are_sound(l);
}

/* For versions without debug offsets. */
static bool take_table(struct python_layout *l, uint32_t version)
{
    uint32_t minor = version >> 16 & 0xff;
    if (version >> 24 != 3 || minor < 8 || minor > 12)
        return false;
    *l = minor == 12 ? layout_3_12 : minor == 11 ? layout_3_11 : layout_3_8;
    if (minor == 9 || minor == 10)
        l->runtime_gil = 352;
    if (minor == 10) {
        l->frame_last = 96;
        l->frame_runs = 108;
        l->runs_value = 0;
        l->last_bytes = 2;
        l->lines = LINES_PAIRS_FROM_END;
    }
    return true;
}

const char *python_layout_find(struct python_layout *l, uint32_t version, const uint8_t *runtime,
                               size_t runtime_bytes)
{
    if (take_table(l, version))
        return runtime_bytes < 64 ? "its runtime has an unexpected layout" : NULL;
    const struct parts *p = find_parts(version);
    if (!p || (version >> 4 & 0xf) < 0xc) /* alphas and betas differ */
        return "this version is not supported (" KNOWN_PYTHON_TEXT " are)";
    if (runtime_bytes < 8 * (size_t)p->end || memcmp(runtime, COOKIE, 8) != 0 ||
        python_layout_word_at(runtime, WORD_VERSION) != version)
        return "its debug offsets have unexpected values";
    bool is_free_threaded = python_layout_word_at(runtime, WORD_FREE_THREADED) != 0;
    memset(l, 0, sizeof *l);
    l->has_stops = is_free_threaded;
    take_offsets(l, p, runtime);
    complete(l, is_free_threaded && version >> 16 >= 0x030e);
    take_gil(l, p, runtime);
    return python_layout_is_sound(l) ? NULL : "its debug offsets have unexpected values";
}
