/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of Python's frames over structures made here, for the layouts of all versions, whole
 * and damaged. They lie between pages that cannot be read, so that an unchecked read outside of
 * them is a crash; and no interpreter is needed, so that this runs under sanitizers, too.
 */
#include "unit_test.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/memory_read.h"
#include "python/python_code.h"
#include "python/python_facts.h"
#include "python/python_layout.h"
#include "python/python_walk.h"

#define ARENA_BYTES   32768u
#define OBJECT_BYTES  512u
#define RUNTIME_WORDS 96
#define FRAMES        6
#define CODES         3
#define FRAMES_MAX    64
#define ROUNDS        1500
#define FLAG_IS_TEXT  (1u << 28)
#define TYPE_FLAGS    168
#define FIRST_LINE    10
#define OWNER_C       3

/*
 * What was seen or is readable is read in place, also where damage leads out of the arena, if the
 * kernel can read there. AddressSanitizer, whose own memory that may be, takes it for a fault.
 */
#ifdef __SANITIZE_ADDRESS__
#define DAMAGED_IN_PLACE 0
#else
#define DAMAGED_IN_PLACE 1
#endif

static struct {
    uint8_t *bytes;
    size_t used;
} arena;

struct world {
    struct python_layout layout;
    uint64_t thread;
    uint64_t types[4]; /* of code, str, bytes and frames */
    uint64_t codes[CODES];
    uint64_t frames[FRAMES];
};

static void put_word(uint64_t at, uint32_t offset, uint64_t word)
{
    memcpy((void *)(uintptr_t)(at + offset), &word, sizeof word);
}

static void put_half(uint64_t at, uint32_t offset, uint32_t half)
{
    memcpy((void *)(uintptr_t)(at + offset), &half, sizeof half);
}

static uint64_t make_object(const struct world *w, uint64_t type)
{
    uint64_t at = (uintptr_t)arena.bytes + arena.used;
    arena.used += OBJECT_BYTES;
    assert_true(arena.used <= ARENA_BYTES);
    memset((void *)(uintptr_t)at, 0, OBJECT_BYTES);
    put_word(at, 0, 1); /* a reference */
    put_word(at, w->layout.type, type);
    return at;
}

static uint64_t make_text(const struct world *w, const char *text, bool is_wide)
{
    uint64_t at = make_object(w, w->types[1]);
    uint32_t size = is_wide ? 2 : 1;
    uint32_t data = is_wide ? w->layout.text_wide : w->layout.text_ascii;
    put_word(at, w->layout.text_length, strlen(text));
    put_half(at, w->layout.text_state,
             (1u << 3 | (is_wide ? 0 : 1u << 4) | size) << w->layout.text_kind);
    for (size_t i = 0; text[i]; i++)
        memset((void *)(uintptr_t)(at + data + i * size), text[i], 1);
    return at;
}

static uint64_t make_bytes(const struct world *w, const uint8_t *bytes, size_t count)
{
    uint64_t at = make_object(w, w->types[2]);
    put_word(at, w->layout.size, count);
    memcpy((void *)(uintptr_t)(at + w->layout.bytes_data), bytes, count);
    return at;
}

/* Lines: two code units on the first one, two on the one after, and so on; the last has none. */
static uint64_t make_lines(const struct world *w)
{
    static const uint8_t table[] = {
        0x80 | 10 << 3 | 1, 0,        0,          /* the same line */
        0x80 | 11 << 3 | 1, 0,        0,          /* one further */
        0x80 | 13 << 3 | 1, 5 << 1,               /* no columns: five further */
        0x80 | 14 << 3 | 1, 0x40 | 1, 3, 0, 1, 1, /* long: 96 back, for 193 is odd */
        0x80 | 15 << 3 | 1,                       /* none */
    };
    static const uint8_t pairs[] = {4, 1, 4, 5, 4, 0xa0}; /* up to 3.9 each place has a line */
    static const uint8_t from_end[] = {4, 0, 4, 1, 4, 5, 4, 0xa0, 4, 0x80};
    return w->layout.lines == LINES_VARINTS ? make_bytes(w, table, sizeof table)
           : w->layout.lines == LINES_PAIRS ? make_bytes(w, pairs, sizeof pairs)
                                            : make_bytes(w, from_end, sizeof from_end);
}

static uint64_t make_code(const struct world *w, unsigned number)
{
    static const char *const names[CODES] = {"main", "Layer.forward", "wide"};
    const struct python_layout *l = &w->layout;
    uint64_t at = make_object(w, w->types[0]);
    put_word(at, l->size, 20); /* code units */
    put_word(at, l->code_file, make_text(w, "train.py", number == 2));
    put_word(at, l->code_function, make_text(w, names[number], number == 2));
    put_word(at, l->code_lines, make_lines(w));
    put_half(at, l->code_first_line, FIRST_LINE * (number + 10));
    if (l->code_bytecode != LAYOUT_NONE)
        put_word(at, l->code_bytecode, make_bytes(w, (const uint8_t[40]){0}, 40));
    if (l->code_first_traceable != LAYOUT_NONE)
        put_half(at, l->code_first_traceable, 1);
    if (l->code_copies != LAYOUT_NONE) {
        uint64_t copies = make_object(w, 0);
        put_word(at, l->code_copies, copies);
        put_word(copies, 0, 2); /* how many there are; the first is the code's own */
        put_word(copies, 8, at + l->code_instructions);
        put_word(copies, 16, make_object(w, 0));
    }
    if (l->code_version != LAYOUT_NONE)
        put_half(at, l->code_version, number == 1 ? 0 : 100 + number);
    return at;
}

/* Frame i, outermost last, is on unit 2 * i of code i % CODES; the last one stands for C. */
static void make_frames(struct world *w)
{
    const struct python_layout *l = &w->layout;
    bool has_entries = l->frame_is_entry != LAYOUT_NONE;
    for (unsigned i = 0; i < FRAMES; i++)
        w->frames[i] = make_object(w, l->frame_owner == LAYOUT_NONE ? w->types[3] : 0);
    for (unsigned i = 0; i < FRAMES; i++) {
        uint64_t at = w->frames[i], code = w->codes[i % CODES];
        bool is_c = i == FRAMES - 1 && !has_entries;
        put_word(at, l->frame_code, code);
        put_word(at, l->frame_previous, i + 1 < FRAMES ? w->frames[i + 1] : 0);
        uint64_t units = 2 * (1 + i % 4), from = code + l->code_instructions;
        if (l->code_copies != LAYOUT_NONE && i % 2) {
            put_half(at, l->frame_copy, 1);
            memcpy(&from, (void *)(uintptr_t)(*(uint64_t *)(uintptr_t)(code + l->code_copies) + 16),
                   sizeof from);
        }
        if (l->frame_instruction != LAYOUT_NONE)
            put_word(at, l->frame_instruction, from + 2 * units);
        else
            put_half(at, l->frame_last, (uint32_t)(2 * units / l->last_bytes));
        if (l->frame_instruction == LAYOUT_NONE)
            memset((void *)(uintptr_t)(at + l->frame_runs), l->runs_value, 1);
        if (l->frame_owner != LAYOUT_NONE)
            memset((void *)(uintptr_t)(at + l->frame_owner), is_c ? OWNER_C : 0, 1);
        if (has_entries)
            memset((void *)(uintptr_t)(at + l->frame_is_entry), i == FRAMES - 1, 1);
    }
    w->thread = make_object(w, 0);
    put_word(w->thread, l->thread_frame, w->frames[0]);
    if (l->cframe_frame == LAYOUT_NONE)
        return;
    uint64_t cframe = make_object(w, 0);
    put_word(cframe, l->cframe_frame, w->frames[0]);
    put_word(cframe, l->cframe_previous, w->thread + 256); /* the first, without a frame */
    put_word(w->thread, l->thread_frame, cframe);
}

#define FREE_THREADED 1u /* in a version here: a build of that kind */

/* Debug offsets as they are from 3.13 on, that say what the table says of 3.12. */
static void make_runtime(uint64_t *words, uint32_t version)
{
    static const struct {
        uint16_t runtime, interpreter, thread, frame, code, object, bytes, text;
    } parts[] = {{3, 6, 19, 28, 34, 44, 64, 67},
                 {3, 6, 22, 31, 39, 50, 74, 77},
                 {3, 6, 22, 39, 47, 58, 86, 89}};
    struct python_layout l;
    uint8_t none[64] = {0};
    unsigned minor = version >> 16 & 0xff, at = minor > 13 ? minor - 13 : 0;
    bool is_free_threaded = version & FREE_THREADED;
    assert_null(python_layout_find(&l, 0x030c01f0, none, sizeof none));
    memset(words, 0, RUNTIME_WORDS * sizeof *words);
    memcpy(words, "xdebugpy", 8);
    words[1] = version & ~FREE_THREADED;
    words[2] = is_free_threaded;
    words[parts[at].object + 1] = is_free_threaded ? 24 : 8;
    words[parts[at].object + 5] = l.type_flags;
    uint64_t *frame = words + parts[at].frame, *code = words + parts[at].code;
    words[parts[at].runtime + 1] = l.runtime_finalizing;
    words[parts[at].runtime + 2] = l.runtime_interpreters;
    words[parts[at].interpreter + 3] = l.interpreter_threads;
    words[parts[at].thread + 2] = l.thread_next;
    words[parts[at].thread + 4] = l.thread_frame;
    frame[1] = l.frame_previous;
    frame[2] = l.frame_code;
    frame[3] = l.frame_instruction;
    frame[4] = 80;
    frame[5] = l.frame_owner;
    if (is_free_threaded && at) {
        frame[7] = 72;
        code[10] = l.code_instructions - 8;
    }
    code[1] = l.code_file;
    code[3] = l.code_function;
    code[4] = l.code_lines;
    code[5] = l.code_first_line;
    code[7] = l.code_version + 4;
    code[9] = l.code_instructions;
    words[parts[at].bytes + 1] = l.size;
    words[parts[at].bytes + 2] = l.bytes_data;
    words[parts[at].text + 1] = l.text_state;
    words[parts[at].text + 2] = l.text_length;
    words[parts[at].text + 3] = l.text_ascii;
}

static void forget_known(void)
{
    for (unsigned i = 0; i < KNOWN_SLOTS; i++)
        atomic_store(&known_addresses[i], 0);
}

static void make_world(struct world *w, uint32_t version)
{
    uint64_t runtime[RUNTIME_WORDS];
    arena.used = 0;
    memset(arena.bytes, 0, ARENA_BYTES);
    forget_known();
    make_runtime(runtime, version);
    assert_null(python_layout_find(&w->layout, version & ~FREE_THREADED, (uint8_t *)runtime,
                                   sizeof runtime));
    for (unsigned i = 0; i < 4; i++)
        w->types[i] = make_object(w, 0);
    put_word(w->types[1], w->layout.type_flags, FLAG_IS_TEXT);
    w->layout.code_type = w->types[0];
    w->layout.text_type = w->types[1];
    w->layout.bytes_type = w->types[2];
    w->layout.frame_type = w->layout.frame_owner == LAYOUT_NONE ? w->types[3] : 0;
    for (unsigned i = 0; i < CODES; i++)
        w->codes[i] = make_code(w, i);
    make_frames(w);
}

static const uint32_t versions[] = {0x030812f0, 0x030a0df0, 0x030b02f0, 0x030c01f0, 0x030d05f0,
                                    0x030e00f0, 0x030f02f0, 0x030d05f1, 0x030e00f1, 0x030f02f1};
#define FIRST_WITH_OFFSETS 4

#define VERSION_COUNT (sizeof versions / sizeof versions[0])

static int set_up(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *map =
        mmap(NULL, ARENA_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    if (map == MAP_FAILED || mprotect(map + page, ARENA_BYTES, PROT_READ | PROT_WRITE) != 0)
        return -1;
    arena.bytes = map + page;
    return 0;
}

/* The ways to look at memory: checked copies, what was seen before, and as in a signal handler. */
enum { VIEW_CHECKED, VIEW_OWN, VIEW_RUNNING, VIEW_INTERRUPTED, VIEW_COUNT };

static struct python_view view_of(const struct python_layout *l, unsigned kind)
{
    static struct python_seen seen;
    memset(&seen, 0, sizeof seen);
    return (struct python_view){.layout = l,
                                .is_own = kind == VIEW_OWN,
                                .is_running = kind >= VIEW_RUNNING,
                                .interrupted = kind == VIEW_INTERRUPTED ? &seen : NULL};
}

static void test_whole(void **state)
{
    static const char *const functions[] = {"main", "Layer.forward", "wide"};
    static const unsigned further[] = {1, 6, 6 - 96, 0};
    (void)state;
    if (!memory_read_start())
        skip(); /* under qemu-user */
    for (unsigned v = 0; v < VIEW_COUNT * VERSION_COUNT; v++) {
        struct world w;
        make_world(&w, versions[v / VIEW_COUNT]);
        bool has_entries = w.layout.frame_is_entry != LAYOUT_NONE;
        bool are_objects = w.layout.frame_owner == LAYOUT_NONE;
        int wanted = has_entries || are_objects ? FRAMES : FRAMES - 1;
        for (unsigned pass = 0; pass < 2;
             pass++) { /* the second one with what the first has seen */
            const struct python_view view = view_of(&w.layout, v % VIEW_COUNT);
            struct python_frame found[FRAMES_MAX];
            bool is_cut;
            assert_int_equal(python_walk(&view, w.thread, found, FRAMES_MAX, &is_cut), wanted);
            assert_false(is_cut);
            for (int i = 0; i < wanted; i++) {
                static struct python_place place;
                uint8_t copy[LAYOUT_PART_BYTES_MAX];
                const uint8_t *head = python_code_head(&view, found[i].code, copy);
                const char *name = functions[i % CODES];
                unsigned first = FIRST_LINE * (unsigned)(i % CODES + 10);
                assert_non_null(head);
                python_code_place(&view, found[i].code, head, found[i].instruction, &place);
                assert_int_equal(place.file_bytes, 8);
                assert_memory_equal(place.file, "train.py", 8);
                assert_int_equal(place.function_bytes, strlen(name));
                assert_memory_equal(place.function, name, strlen(name));
                unsigned line = first + further[i % 4];
                if (i % 4 == 3)
                    line = w.layout.lines == LINES_PAIRS ? first + further[2] : 0;
                assert_int_equal(place.line, line);
                assert_int_equal(found[i].entry != 0, i == wanted - 1 && !are_objects);
            }
        }
    }
}

static bool has_asked(const struct python_seen *seen, uint64_t address)
{
    for (unsigned i = 0; i < PYTHON_PAGES; i++)
        if (seen->pages[i] == address / MEMORY_PAGE_BYTES)
            return true;
    return false;
}

/* A signal handler asks once for each page, and for none that it knows, or that what lives keeps.
 */
static void test_asked(void **state)
{
    (void)state;
    if (!memory_read_start())
        skip();
    for (unsigned v = 0; v < 3; v++) { /* those whose code objects have no numbers */
        struct world w;
        struct python_frame found[FRAMES_MAX];
        make_world(&w, versions[v]);
        const struct python_view view = view_of(&w.layout, VIEW_INTERRUPTED);
        struct python_seen *seen = view.interrupted;
        arena.used = (arena.used / MEMORY_PAGE_BYTES + 1) * MEMORY_PAGE_BYTES;
        uint64_t text = make_text(&w, "apart", false), check = 0;
        put_word(w.codes[0], w.layout.code_function, text);
        /* First sight, lives, is freed, is freed and leads to the next one; all is known. */
        static const uint64_t counts[] = {1, 1, 0, 0x7fff12345678, 1};
        for (unsigned i = 0; i < 5; i++) {
            memset(seen->pages, 0, sizeof seen->pages);
            if (i == 4) {
                seen->low = (uintptr_t)arena.bytes;
                seen->high = seen->low + ARENA_BYTES;
            }
            put_word(w.codes[0], 0, counts[i]);
            assert_true(python_walk(&view, w.thread, found, FRAMES_MAX, NULL) > 0);
            assert_true(!check || found[0].check == check);
            check = found[0].check;
            assert_int_equal(has_asked(seen, text), i != 1 && i != 4);
            assert_int_equal(has_asked(seen, w.codes[0]), i != 4);
        }
    }
}

/* A copy until it is renewed; then the first read reads again all that was wanted lately. */
static void test_window(void **state)
{
    static struct memory_window window;
    enum { PAGES = 80, WORDS = PAGES * MEMORY_PAGE_BYTES / 8 };
    uint64_t *words = mmap(NULL, PAGES * MEMORY_PAGE_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t address = (uintptr_t)words, read[2];
    const unsigned step = MEMORY_BLOCK_BYTES / 8, wide = MEMORY_PAGE_BYTES / 8;
    (void)state;
    if (!memory_read_start())
        skip();
    memory_window_use(&window);
    for (uint64_t round = 1; round < 20; round++) {
        memory_window_renew();
        for (unsigned i = 0; i < WORDS; i++)
            words[i] = i * round;
        for (unsigned i = 0; i < 60; i++) /* two calls for them; each crosses into a second block */
            assert_true(memory_read(address + 8 * (i * wide + step - 1), read, 16) &&
                        read[0] == (i * wide + step - 1) * round && read[1] == read[0] + round);
        words[0] = 5; /* is not seen yet */
        assert_true(memory_read(address, read, 8) && read[0] == 0);
    }
    assert_int_equal(window.count, 120);
    for (unsigned round = 0; round < 6; round++) {
        memory_window_renew();
        assert_true(memory_read(address, read, 8) && read[0] == 5);
        if (round == 0) /* the others came with it */
            assert_true(window.count > 100 && !window.is_old);
    }
    assert_int_equal(window.count, 1);         /* nobody wanted them any more */
    for (unsigned i = 0; i < WORDS; i += step) /* more than it has room for */
        assert_true(memory_read(address + 8 * i, read, 8) && read[0] == words[i]);
    for (unsigned i = 0; i < 70; i++)
        assert_true(memory_read(address + 8 * i * wide, read, 8));
    assert_int_equal(mprotect(words + 7 * wide, MEMORY_PAGE_BYTES, PROT_NONE), 0);
    memory_window_renew();
    for (unsigned i = 0; i < 70; i++)
        assert_int_equal(memory_read(address + 8 * i * wide, read, 8), i != 7);
    assert_false(memory_read(address + 8 * (7 * wide) - 8, read, 16));
    assert_false(memory_read(0, read, 8) || memory_read(UINT64_MAX - 15, read, 16));
    memory_window_use(NULL);
    munmap(words, PAGES * MEMORY_PAGE_BYTES);
}

static uint64_t random_state = 88172645463325252u;

static uint64_t random_word(void)
{
    return random_of(&random_state);
}

/* Some bytes, a bit, a pointer into the arena or to where nothing is, or a large number. */
static void damage(void)
{
    for (unsigned i = 0; i <= random_word() % 8; i++) {
        uint64_t at = (uintptr_t)arena.bytes + random_word() % (arena.used - 8);
        uint64_t aligned = at & ~7ull, word = random_word();
        switch (word >> 60 & 7) {
        case 0: memset((void *)(uintptr_t)at, (int)(word & 0xff), word >> 8 & 7); break;
        case 1: put_word(aligned, 0, (uintptr_t)arena.bytes + (word % ARENA_BYTES & ~7ull)); break;
        case 2: put_word(aligned, 0, (uintptr_t)arena.bytes + ARENA_BYTES - 8 * (word & 63)); break;
        case 3: put_word(aligned, 0, (uintptr_t)arena.bytes - 8); break;
        case 4: put_word(aligned, 0, 1ull << (word & 63)); break;
        case 5: put_word(aligned, 0, UINT64_MAX - (word & 255)); break;
        default: *(uint8_t *)(uintptr_t)at ^= (uint8_t)(1u << (word & 7)); break;
        }
    }
}

static void test_damaged(void **state)
{
    static struct python_frame found[FRAMES_MAX];
    static struct python_place place;
    static uint8_t whole[ARENA_BYTES];
    unsigned good = 0, refused = 0;
    (void)state;
    if (!memory_read_start())
        skip();
    for (unsigned v = 0; v < VIEW_COUNT * VERSION_COUNT; v++) {
        struct world w;
        unsigned kind = v % VIEW_COUNT;
        bool is_in_place = kind == VIEW_OWN || kind == VIEW_INTERRUPTED;
        const struct python_view view =
            view_of(&w.layout, is_in_place && !DAMAGED_IN_PLACE ? VIEW_CHECKED : kind);
        make_world(&w, versions[v / VIEW_COUNT]);
        memcpy(whole, arena.bytes, ARENA_BYTES);
        for (unsigned round = 0; round < ROUNDS; round++) {
            memcpy(arena.bytes, whole, ARENA_BYTES);
            damage();
            forget_known();
            for (unsigned pass = 0; pass < 2; pass++) {
                bool is_cut;
                int count = python_walk(&view, w.thread, found, FRAMES_MAX, &is_cut);
                assert_true(count >= -1 && count <= FRAMES_MAX);
                good += count > 0;
                refused += count < 0;
                for (int i = 0; i < count; i++) {
                    uint8_t copy[LAYOUT_PART_BYTES_MAX];
                    const uint8_t *head = python_code_head(&view, found[i].code, copy);
                    assert_non_null(head);
                    python_code_place(&view, found[i].code, head, found[i].instruction, &place);
                    assert_true(place.file_bytes <= sizeof place.file);
                    assert_true(place.function_bytes <= sizeof place.function);
                    assert_true(place.line <= INT32_MAX);
                }
            }
        }
    }
    assert_true(good > 1000 && refused > 1000); /* or nothing was tested */
}

/* No layout that is taken for sound reads outside of what is read of a structure. */
static void test_damaged_offsets(void **state)
{
    unsigned sound = 0;
    (void)state;
    for (unsigned round = 0; round < 30000; round++) {
        uint64_t words[RUNTIME_WORDS];
        uint32_t version =
            versions[FIRST_WITH_OFFSETS + round % (VERSION_COUNT - FIRST_WITH_OFFSETS)];
        struct python_layout l;
        make_runtime(words, version);
        for (unsigned i = 0; i <= random_word() % 3; i++)
            words[3 + random_word() % (RUNTIME_WORDS - 3)] = random_word() >> (random_word() & 63);
        const char *reason =
            python_layout_find(&l, version & ~FREE_THREADED, (uint8_t *)words, sizeof words);
        assert_true(reason || python_layout_is_sound(&l));
        if (reason)
            continue;
        sound++;
        assert_true(l.frame_bytes <= LAYOUT_PART_BYTES_MAX && l.frame_owner < l.frame_bytes);
        assert_true(l.code_bytes <= LAYOUT_PART_BYTES_MAX && l.code_lines + 8 <= l.code_bytes);
        assert_true(l.text_ascii <= LAYOUT_PART_BYTES_MAX && l.bytes_data <= LAYOUT_PART_BYTES_MAX);
    }
    assert_true(sound > 1000);
}

static struct python_facts facts;
static uint8_t is_fact[ARENA_BYTES + FACT_BYTES_MAX + 1];

static void add_fact(uint32_t at, uint32_t bytes)
{
    python_facts_add(&facts, (uintptr_t)arena.bytes + at, arena.bytes + at, bytes);
    memset(is_fact + at, 1, bytes);
}

/* They hold until a byte of theirs is another one, and again when it is what it was. */
static void test_facts(void **state)
{
    unsigned broken = 0;
    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        python_facts_clear(&facts);
        memset(is_fact, 0, sizeof is_fact);
        for (unsigned i = 0; i < ARENA_BYTES; i++)
            arena.bytes[i] = (uint8_t)random_word();
        /* Of two pages or of all, so that they lie near to each other, too, and over each other. */
        uint32_t span = round % 2 ? 8192 : ARENA_BYTES;
        for (uint64_t i = random_word() % 100; i > 0; i--) {
            uint32_t bytes = 1 + (uint32_t)(random_word() % FACT_BYTES_MAX);
            add_fact((uint32_t)(random_word() % (span - bytes)), bytes);
        }
        add_fact(ARENA_BYTES - 9, 9);
        python_facts_end(&facts);
        assert_true(python_facts_hold(&facts));
        for (unsigned i = 0; i < 200; i++) {
            uint32_t at = (uint32_t)(random_word() % (i % 2 ? span : ARENA_BYTES));
            arena.bytes[at] ^= 1u << i % 8;
            assert_int_equal(python_facts_hold(&facts), !is_fact[at]);
            arena.bytes[at] ^= 1u << i % 8;
            broken += is_fact[at];
        }
    }
    assert_true(broken > 1000);
    add_fact(0, 8);
    assert_true(python_facts_hold(&facts)); /* in any order, if not at once */
    python_facts_add(&facts, (uintptr_t)arena.bytes + ARENA_BYTES, arena.bytes, 8);
    assert_false(python_facts_hold(&facts)); /* it cannot be read any more */
}

/* One that is not so any more can be told, and another one can stand in its place. */
static void test_facts_replaced(void **state)
{
    (void)state;
    python_facts_clear(&facts);
    for (uint32_t i = 0; i < 100; i++)
        add_fact(300 * i, i == 40 ? 72 : 8);
    arena.bytes[300 * 40 + 71] ^= 1;
    assert_int_equal(python_facts_changed(&facts, 0), 40);
    assert_int_equal(python_facts_changed(&facts, 41), 100);
    facts.next = 40;
    add_fact(300 * 20 + 1, 72);
    assert_int_equal(facts.next, 41);
    assert_true(python_facts_hold(&facts));
    arena.bytes[300 * 20 + 1 + 71] ^= 1;
    assert_int_equal(python_facts_changed(&facts, 0), 40);
    facts.next = 40;
    add_fact(0, 8); /* of another size: it has no room */
    assert_false(python_facts_hold(&facts));
}

/* When they are too many none is known, and so they never hold. */
static void test_facts_full(void **state)
{
    (void)state;
    for (unsigned bytes = 8; bytes <= FACT_BYTES_MAX; bytes *= 2) {
        unsigned fit = 0;
        for (python_facts_clear(&facts); fit < 2 * FACTS_MAX; fit++) {
            add_fact(8 * (fit % 1000), bytes);
            if (!python_facts_hold(&facts))
                break;
        }
        unsigned most = (FACTS_WORDS_MAX - 1) / (bytes / 8);
        assert_int_equal(fit, most < FACTS_MAX ? most : FACTS_MAX);
        add_fact(0, 8);
        python_facts_end(&facts);
        assert_false(python_facts_hold(&facts));
    }
    python_facts_clear(&facts);
    assert_true(python_facts_hold(&facts));
    add_fact(0, FACT_BYTES_MAX + 1);
    assert_false(python_facts_hold(&facts));
    python_facts_clear(&facts);
    python_facts_spoil(&facts);
    add_fact(0, 8);
    assert_false(python_facts_hold(&facts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),           cmocka_unit_test(test_asked),
        cmocka_unit_test(test_window),          cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_damaged_offsets), cmocka_unit_test(test_facts),
        cmocka_unit_test(test_facts_replaced),  cmocka_unit_test(test_facts_full),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
