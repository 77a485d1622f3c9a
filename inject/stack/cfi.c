/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/cfi.h"

#include <string.h>

#define REMEMBERED_MAX  8
#define STEPS_MAX       4096       /* instructions of one program */
#define ENTRY_BYTES_MAX (1u << 20) /* a lock is held and signals are blocked while it is read */

/* Pointer encodings. */
#define ENCODING_OMITTED  0xff
#define ENCODING_RELATIVE 0x10
#define ENCODING_TABLE    0x3b /* relative to the index, 4 bytes, signed */
#define ENCODING_INDIRECT 0x80

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool bad; /* something did not fit; later values are 0 */
};

static uint64_t take_bytes(struct cursor *c, unsigned bytes)
{
    uint64_t value = 0;
    if (c->bad || (size_t)(c->end - c->at) < bytes) {
        c->bad = true;
        return 0;
    }
    memcpy(&value, c->at, bytes);
    c->at += bytes;
    return value;
}

static void skip(struct cursor *c, uint64_t bytes)
{
    if (c->bad || bytes > (size_t)(c->end - c->at))
        c->bad = true;
    else
        c->at += bytes;
}

static uint64_t take_leb(struct cursor *c, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0, byte;
    do {
        byte = (unsigned)take_bytes(c, 1);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (is_signed && byte & 0x40 && shift < 64)
        value |= UINT64_MAX << shift;
    return value;
}

static uint64_t take_uleb(struct cursor *c)
{
    return take_leb(c, false);
}

static int64_t take_sleb(struct cursor *c)
{
    return (int64_t)take_leb(c, true);
}

/*
 * In units of `factor`. A value that a damaged file makes too large wraps, and fails later checks.
 */
static int64_t scaled(uint64_t value, int64_t factor)
{
    return (int64_t)(value * (uint64_t)factor);
}

/* Reads the encodings that compilers use for code; skips indirect ones by their length. */
static uint64_t take_pointer(struct cursor *c, unsigned encoding)
{
    uintptr_t place = (uintptr_t)c->at;
    uint64_t value = 0;
    if (encoding == ENCODING_OMITTED)
        return 0;
    switch (encoding & 0xf) {
    case 0x00:
    case 0x04:
    case 0x0c: value = take_bytes(c, 8); break;
    case 0x01: value = take_uleb(c); break;
    case 0x02: value = take_bytes(c, 2); break;
    case 0x03: value = take_bytes(c, 4); break;
    case 0x09: value = (uint64_t)take_sleb(c); break;
    case 0x0a: value = (uint64_t)(int16_t)take_bytes(c, 2); break;
    case 0x0b: value = (uint64_t)(int32_t)take_bytes(c, 4); break;
    default: c->bad = true;
    }
    switch (encoding & 0x70) {
    case 0: break;
    case ENCODING_RELATIVE: value += place; break;
    default: c->bad = true;
    }
    return value;
}

static struct cursor cursor_at(const struct cfi_object *o, uintptr_t at)
{
    bool inside = at >= o->low && at < o->high;
    struct cursor c = {(const uint8_t *)(inside ? at : o->low), (const uint8_t *)o->high, !inside};
    return c;
}

/* Returns a cursor over the body of the entry (CIE or FDE) at `at`, after its length. */
static struct cursor cfi_entry_at(const struct cfi_object *o, uintptr_t at)
{
    struct cursor c = cursor_at(o, at);
    uint64_t length = take_bytes(&c, 4);
    if (length == 0xffffffff)
        length = take_bytes(&c, 8);
    if (length == 0 || length > ENTRY_BYTES_MAX || length > (size_t)(c.end - c.at))
        c.bad = true;
    if (!c.bad)
        c.end = c.at + length;
    return c;
}

/* What functions with the same CIE have in common. */
struct common {
    uint64_t code_factor;
    int64_t data_factor;
    unsigned encoding; /* encoding of the functions' addresses */
    bool is_augmented; /* their entries have a part of known length to skip */
    bool is_signal;
    struct cursor program;
};

static bool read_augmentation(struct cursor *c, const char *letters, struct common *common)
{
    common->is_augmented = letters[0] == 'z';
    if (!common->is_augmented)
        return letters[0] == '\0';
    uint64_t bytes = take_uleb(c);
    const uint8_t *start = c->at;
    for (const char *p = letters + 1; *p && !c->bad; p++) {
        switch (*p) {
        case 'R': common->encoding = (unsigned)take_bytes(c, 1); break;
        case 'P': {
            /* The personality routine is not called, so its address is not needed. */
            unsigned encoding = (unsigned)take_bytes(c, 1);
            take_pointer(c, encoding & ~(unsigned)ENCODING_INDIRECT);
            break;
        }
        case 'L': take_bytes(c, 1); break;
        case 'S': common->is_signal = true; break;
        case 'B': break; /* the other signing key of aarch64 */
        default: return false;
        }
    }
    c->at = start;
    skip(c, bytes);
    return !c->bad;
}

static bool read_common(const struct cfi_object *o, uintptr_t at, struct common *common)
{
    struct cursor c = cfi_entry_at(o, at);
    *common = (struct common){0};
    if (take_bytes(&c, 4) != 0)
        return false;
    unsigned version = (unsigned)take_bytes(&c, 1);
    const char *letters = (const char *)c.at;
    if (c.bad || !memchr(letters, '\0', (size_t)(c.end - c.at)) || (version != 1 && version != 3))
        return false;
    skip(&c, strlen(letters) + 1);
    common->code_factor = take_uleb(&c);
    common->data_factor = take_sleb(&c);
    uint64_t return_register = version == 1 ? take_bytes(&c, 1) : take_uleb(&c);
    if (return_register != CFI_RETURN_ADDRESS || !read_augmentation(&c, letters, common))
        return false;
    common->program = c;
    return true;
}

/* The rule while a program computes it. */
struct row {
    uint64_t cfa_register;
    int64_t cfa_offset;
    int64_t cfa_further;
    bool cfa_loaded;
    bool cfa_known;
    uint8_t places[2]; /* enum cfi_place of the frame pointer and of the return address */
    int64_t offsets[2];
    bool is_strange[2]; /* described in a way that we do not support */
};

struct machine {
    const struct common *common;
    uintptr_t address; /* address whose rule is wanted */
    uint64_t low;      /* the rule is the same from here ... */
    uint64_t high;     /* ... to here */
    bool is_single;    /* or it is not */
    struct row row;
    struct row initial; /* the rule of the CIE */
    struct row remembered[REMEMBERED_MAX];
    unsigned remembered_count;
};

static int which(uint64_t reg)
{
    return reg == CFI_FRAME_POINTER ? 0 : reg == CFI_RETURN_ADDRESS ? 1 : -1;
}

static void cfi_set_place(struct row *row, uint64_t reg, enum cfi_place place, int64_t offset)
{
    int i = which(reg);
    if (i < 0)
        return;
    row->places[i] = (uint8_t)place;
    row->offsets[i] = offset;
    row->is_strange[i] = false;
}

static void set_strange(struct row *row, uint64_t reg)
{
    int i = which(reg);
    if (i >= 0)
        row->is_strange[i] = true;
}

/* The start of an expression: "register + offset". */
static bool take_base(struct cursor *e, uint64_t *reg, int64_t *offset)
{
    unsigned op = (unsigned)take_bytes(e, 1);
    if (op < 0x70 || op > 0x8f) /* breg0 to breg31 */
        return false;
    *reg = op - 0x70;
    *offset = take_sleb(e);
    return !e->bad;
}

static struct cursor cfi_take_block(struct cursor *c)
{
    uint64_t bytes = take_uleb(c);
    struct cursor block = *c;
    skip(c, bytes);
    block.end = c->at;
    block.bad = c->bad;
    return block;
}

static void set_cfa(struct row *row, uint64_t reg, int64_t offset)
{
    row->cfa_register = reg;
    row->cfa_offset = offset;
    row->cfa_further = 0;
    row->cfa_loaded = false;
    row->cfa_known = true;
}

/* The expression that linkers use for PLT stubs of 16 bytes: sp + 8, and 8 more from the
 * instruction after the push on, at offset 11 or 10. */
static bool set_cfa_of_stub(struct row *row, const struct cursor *e, uintptr_t address)
{
    static const uint8_t head[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a},
                         tail[] = {0x2a, 0x33, 0x24, 0x22};
    if (e->bad || e->end - e->at != 11 || memcmp(e->at, head, sizeof head) != 0 ||
        memcmp(e->at + 7, tail, sizeof tail) != 0)
        return false;
    set_cfa(row, CFI_STACK_POINTER, (address & 15) + 0x30 >= e->at[6] ? 16 : 8);
    return true;
}

/* The expressions for aligned stacks (breg, deref), and in hand-written code (breg, deref,
 * plus_uconst). */
static void set_cfa_expression(struct row *row, struct cursor e)
{
    row->cfa_known = false;
    row->cfa_further = 0;
    if (!take_base(&e, &row->cfa_register, &row->cfa_offset))
        return;
    row->cfa_loaded = e.at < e.end && take_bytes(&e, 1) == 0x06;
    if (e.at < e.end) {
        if (take_bytes(&e, 1) != 0x23)
            return;
        row->cfa_further = (int64_t)take_uleb(&e);
    }
    row->cfa_known = row->cfa_loaded && !e.bad && e.at == e.end;
}

static void set_place_expression(struct row *row, uint64_t reg, struct cursor e)
{
    uint64_t base;
    int64_t offset;
    if (take_base(&e, &base, &offset) && e.at == e.end && base == CFI_FRAME_POINTER)
        cfi_set_place(row, reg, CFI_AT_BASE, offset);
    else
        set_strange(row, reg);
}

static void restore(struct machine *m, uint64_t reg)
{
    int i = which(reg);
    if (i < 0)
        return;
    m->row.places[i] = m->initial.places[i];
    m->row.offsets[i] = m->initial.offsets[i];
    m->row.is_strange[i] = m->initial.is_strange[i];
}

/* Runs one instruction. Returns false if it is unknown, or did not fit. */
static bool run_one(struct machine *m, struct cursor *c, unsigned op)
{
    struct row *row = &m->row;
    int64_t factor = m->common->data_factor;
    uint64_t reg;
    switch (op) {
    case 0x00: break;
    case 0x05: /* offset_extended */
        reg = take_uleb(c);
        cfi_set_place(row, reg, CFI_IN_FRAME, scaled(take_uleb(c), factor));
        break;
    case 0x06: restore(m, take_uleb(c)); break;
    case 0x07: cfi_set_place(row, take_uleb(c), CFI_UNDEFINED, 0); break;
    case 0x08: cfi_set_place(row, take_uleb(c), CFI_SAME, 0); break;
    case 0x09: /* register */
        set_strange(row, take_uleb(c));
        take_uleb(c);
        break;
    case 0x0a: /* remember_state */
        if (m->remembered_count == REMEMBERED_MAX)
            return false;
        m->remembered[m->remembered_count++] = *row;
        break;
    case 0x0b: /* restore_state */
        if (m->remembered_count == 0)
            return false;
        *row = m->remembered[--m->remembered_count];
        break;
    case 0x0c: /* def_cfa */
        reg = take_uleb(c);
        set_cfa(row, reg, (int64_t)take_uleb(c));
        break;
    case 0x0d: row->cfa_register = take_uleb(c); break;
    case 0x0e: row->cfa_offset = (int64_t)take_uleb(c); break;
    case 0x0f: {
        struct cursor block = cfi_take_block(c);
        if (set_cfa_of_stub(row, &block, m->address))
            m->is_single = true;
        else
            set_cfa_expression(row, block);
        break;
    }
    case 0x10: /* expression */
        reg = take_uleb(c);
        set_place_expression(row, reg, cfi_take_block(c));
        break;
    case 0x11: /* offset_extended_sf */
        reg = take_uleb(c);
        cfi_set_place(row, reg, CFI_IN_FRAME, scaled((uint64_t)take_sleb(c), factor));
        break;
    case 0x12: /* def_cfa_sf */
        reg = take_uleb(c);
        set_cfa(row, reg, scaled((uint64_t)take_sleb(c), factor));
        break;
    case 0x13: row->cfa_offset = scaled((uint64_t)take_sleb(c), factor); break;
    case 0x14: /* val_offset, val_offset_sf: a value instead of a place */
    case 0x15:
        set_strange(row, take_uleb(c));
        take_uleb(c);
        break;
    case 0x16: /* val_expression */
        set_strange(row, take_uleb(c));
        cfi_take_block(c);
        break;
    /* the return address is signed from here on: walk.c always strips signatures */
    case 0x2d: break;
    case 0x2e: take_uleb(c); break;
    case 0x2f: /* negative_offset_extended */
        reg = take_uleb(c);
        cfi_set_place(row, reg, CFI_IN_FRAME, scaled(-take_uleb(c), factor));
        break;
    default: return false;
    }
    return !c->bad;
}

/* Runs a program up to `target`, relative to the function's start. */
static bool cfi_run(struct machine *m, struct cursor c, unsigned encoding, uint64_t begin,
                    uint64_t target)
{
    uint64_t place = m->low = begin;
    m->high = UINT64_MAX;
    for (unsigned steps = 0; c.at < c.end; steps++) {
        unsigned op = (unsigned)take_bytes(&c, 1);
        uint64_t delta = 0;
        if (steps == STEPS_MAX || c.bad)
            return false;
        if (op >> 6 == 2)
            cfi_set_place(&m->row, op & 0x3f, CFI_IN_FRAME,
                          scaled(take_uleb(&c), m->common->data_factor));
        else if (op >> 6 == 3)
            restore(m, op & 0x3f);
        else if (op >> 6 == 1)
            delta = op & 0x3f;
        else if (op == 0x01)
            place = take_pointer(&c, encoding);
        else if (op >= 0x02 && op <= 0x04)
            delta = take_bytes(&c, 1u << (op - 2));
        else if (!run_one(m, &c, op))
            return false;
        if (c.bad)
            return false;
        place += delta * m->common->code_factor;
        m->is_single |= place < m->low;
        if (place > target) {
            m->high = place;
            break;
        }
        m->low = place;
    }
    return true;
}

static bool fits(int64_t value)
{
    return value == (int32_t)value;
}

static bool make_rule(const struct row *row, struct cfi_rule *rule)
{
    bool from_stack = row->cfa_register == CFI_STACK_POINTER;
    if (row->places[1] == CFI_UNDEFINED && !row->is_strange[1]) {
        *rule = (struct cfi_rule){.return_place = CFI_UNDEFINED};
        return true;
    }
    if (!row->cfa_known || (!from_stack && row->cfa_register != CFI_FRAME_POINTER) ||
        row->is_strange[1] || !fits(row->cfa_offset) || !fits(row->offsets[0]) ||
        !fits(row->offsets[1]) || row->cfa_further < 0 || row->cfa_further > INT16_MAX)
        return false;
    *rule = (struct cfi_rule){
        .flags = (uint8_t)((from_stack ? CFI_FROM_STACK : 0) | (row->cfa_loaded ? CFI_LOADED : 0)),
        .pointer_place = row->is_strange[0] ? CFI_UNDEFINED : row->places[0],
        .return_place = row->places[1],
        .cfa_further = (int16_t)row->cfa_further,
        .cfa_offset = (int32_t)row->cfa_offset,
        .pointer_offset = (int32_t)row->offsets[0],
        .return_offset = (int32_t)row->offsets[1],
    };
    return true;
}

/* Returns the entry of the last function that begins at or before `address`; 0: none. */
static uintptr_t cfi_find_entry(const struct cfi_object *o, uintptr_t address)
{
    struct cursor c = cursor_at(o, o->index);
    unsigned version = (unsigned)take_bytes(&c, 1), frame_encoding = (unsigned)take_bytes(&c, 1);
    unsigned count_encoding = (unsigned)take_bytes(&c, 1),
             table_encoding = (unsigned)take_bytes(&c, 1);
    take_pointer(&c, frame_encoding);
    uint64_t count = take_pointer(&c, count_encoding);
    if (c.bad || version != 1 || table_encoding != ENCODING_TABLE || count == 0 ||
        count > (size_t)(c.end - c.at) / 8)
        return 0;
    int64_t wanted = (int64_t)(address - o->index);
    uint64_t low = 0, high = count;
    int32_t pair[2];
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        memcpy(pair, c.at + 8 * middle, sizeof pair);
        if (pair[0] <= wanted)
            low = middle;
        else
            high = middle;
    }
    memcpy(pair, c.at + 8 * low, sizeof pair);
    return pair[0] <= wanted ? o->index + (uintptr_t)(intptr_t)pair[1] : 0;
}

bool cfi_find(const struct cfi_object *o, uintptr_t address, struct cfi_rule *rule)
{
    struct common common;
    uintptr_t at = o->index ? cfi_find_entry(o, address) : 0;
    *rule = (struct cfi_rule){.flags = CFI_NONE};
    if (!at)
        return false;
    struct cursor c = cfi_entry_at(o, at);
    uintptr_t place = (uintptr_t)c.at;
    uint64_t back = take_bytes(&c, 4);
    if (c.bad || back == 0 || !read_common(o, place - back, &common))
        return false;
    uint64_t begin = take_pointer(&c, common.encoding);
    uint64_t bytes = take_pointer(&c, common.encoding & 0xf);
    if (common.is_augmented)
        skip(&c, take_uleb(&c));
    if (c.bad || address - begin >= bytes)
        return false;
    struct machine m = {.common = &common, .address = address};
#if defined(__aarch64__)
    m.row.places[1] = CFI_SAME; /* it is in the link register */
#endif
    rule->flags = CFI_NONE | CFI_STRANGE;
    if (!cfi_run(&m, common.program, common.encoding, 0, UINT64_MAX))
        return false;
    m.initial = m.row;
    if (common.is_signal) {
        *rule = (struct cfi_rule){.flags = CFI_SIGNAL};
        return true;
    }
    if (!cfi_run(&m, c, common.encoding, begin, address) || !make_rule(&m.row, rule))
        return false;
    if (!m.is_single) {
        rule->low = m.low;
        rule->high = m.high - begin < bytes ? m.high : begin + bytes;
    }
    return true;
}
