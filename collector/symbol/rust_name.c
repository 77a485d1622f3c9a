/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/rust_name.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 200
#define STEPS_MAX 20000 /* back references can make more of a name than it has letters */
#define HASH      "17h0123456789abcdefE"

struct parse {
    const char *text; /* behind "_R" */
    size_t length;
    size_t at;
    char *out;
    size_t used;
    size_t max;
    unsigned depth;
    unsigned steps;
    unsigned silent; /* nothing is put */
    bool failed;
};

static void path(struct parse *p, bool is_value);
static void type(struct parse *p);

static void put_bytes(struct parse *p, const char *bytes, size_t count)
{
    if (p->silent || p->failed)
        return;
    p->failed = count > p->max - p->used;
    if (p->failed)
        return;
    memcpy(p->out + p->used, bytes, count);
    p->used += count;
}

static void put_text(struct parse *p, const char *text)
{
    put_bytes(p, text, strlen(text));
}

static void put_number(struct parse *p, const char *format, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, format, (unsigned long long)number);
    put_text(p, text);
}

/* The next letter; 0 at the end, and once anything was wrong. */
static char peek(const struct parse *p)
{
    return p->failed || p->at == p->length ? '\0' : p->text[p->at];
}

static char take_letter(struct parse *p)
{
    char c = peek(p);
    p->failed |= !c;
    p->at += c != '\0';
    return c;
}

static bool take_if(struct parse *p, char wanted)
{
    bool found = peek(p) == wanted;
    p->at += found;
    return found;
}

/* "_" is 0, "0_" is 1, and so on. */
static uint64_t take_base_62(struct parse *p)
{
    uint64_t value = 0;
    if (take_if(p, '_'))
        return 0;
    for (char c; (c = take_letter(p)) != '_' && !p->failed;) {
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 36
                                                : 62;
        p->failed |= digit == 62; /* a hash may be too long: of no account */
        value = value * 62 + digit;
    }
    return value + 1;
}

/* A number behind its letter; 0 if the letter is not there. */
static uint64_t take_number_of(struct parse *p, char letter)
{
    return take_if(p, letter) ? take_base_62(p) + 1 : 0;
}

/* Its bytes; NULL if there are none. What is not ASCII stays as it is encoded. */
static const char *take_identifier(struct parse *p, size_t *count)
{
    size_t length = 0;
    take_if(p, 'u');
    char c = take_letter(p);
    p->failed |= c < '0' || c > '9';
    for (length = (size_t)(c - '0'); length && peek(p) >= '0' && peek(p) <= '9' && !p->failed;) {
        length = 10 * length + (size_t)(take_letter(p) - '0');
        p->failed |= length > p->length;
    }
    take_if(p, '_');
    p->failed |= length > p->length - p->at;
    if (p->failed)
        length = 0;
    const char *bytes = p->text + p->at;
    p->at += length;
    *count = length;
    return length ? bytes : NULL;
}

static void identifier(struct parse *p)
{
    size_t count;
    const char *bytes = take_identifier(p, &count);
    if (bytes)
        put_bytes(p, bytes, count);
}

/* Goes on at an earlier place, where a path or a type stands. */
static void back(struct parse *p, void (*what)(struct parse *))
{
    size_t begin = p->at - 1;
    uint64_t target = take_base_62(p);
    size_t after = p->at;
    p->failed |= target >= begin; /* not to be met again */
    if (!p->failed && !p->silent) {
        p->at = (size_t)target;
        what(p);
        p->at = after;
    }
}

static void type_path(struct parse *p)
{
    path(p, false);
}

static void value_path(struct parse *p)
{
    path(p, true);
}

/* Where an implementation stands: not shown. */
static void impl_path(struct parse *p)
{
    take_number_of(p, 's');
    p->silent++;
    path(p, false);
    p->silent--;
}

static void put_nested(struct parse *p, bool is_value)
{
    char space = take_letter(p);
    path(p, is_value);
    uint64_t number = take_number_of(p, 's');
    size_t count;
    const char *name = take_identifier(p, &count);
    if (space >= 'A' && space <= 'Z') {
        put_text(p, space == 'C' ? "::{closure" : space == 'S' ? "::{shim" : "::{");
        put_bytes(p, &space, space != 'C' && space != 'S');
        put_text(p, name ? ":" : "");
        put_bytes(p, name ? name : "", count);
        put_number(p, "#%llu}", number);
    } else if (name) {
        put_text(p, "::");
        put_bytes(p, name, count);
    }
}

static void constant_data(struct parse *p, char kind)
{
    uint64_t value = 0;
    unsigned digits = 0;
    bool negative = take_if(p, 'n');
    for (char c; (c = take_letter(p)) != '_' && !p->failed; digits++) {
        p->failed |= !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (digits > 16) {
        put_text(p, "_"); /* of 128 bits */
    } else if (kind == 'b') {
        put_text(p, value ? "true" : "false");
    } else if (kind == 'c') {
        char text[] = {'\'', (char)value, '\'', '\0'};
        if (value >= ' ' && value < 0x7f)
            put_text(p, text);
        else
            put_number(p, "'\\u{%llx}'", value);
    } else {
        put_text(p, negative ? "-" : "");
        put_number(p, "%llu", value);
    }
}

static void constant(struct parse *p)
{
    char kind = take_letter(p);
    if (kind == 'B')
        back(p, constant);
    else if (kind == 'p')
        put_text(p, "_");
    else if (kind && strchr("ahislmxynojtbc", kind))
        constant_data(p, kind);
    else
        p->failed = true; /* strings, arrays and the like */
}

/* In brackets, if any are left when lifetimes are not shown. */
static void generic_arguments(struct parse *p, const char *open)
{
    bool first = true;
    while (!take_if(p, 'E') && !p->failed) {
        if (take_if(p, 'L')) {
            take_base_62(p);
            continue;
        }
        put_text(p, first ? open : ", ");
        first = false;
        if (take_if(p, 'K'))
            constant(p);
        else
            type(p);
    }
    put_text(p, first ? "" : ">");
}

/* Types or traits up to "E", with the separator between them. */
static unsigned list(struct parse *p, void (*what)(struct parse *), const char *separator)
{
    unsigned count = 0;
    for (; !take_if(p, 'E') && !p->failed; count++) {
        put_text(p, count ? separator : "");
        what(p);
    }
    return count;
}

static bool enter(struct parse *p)
{
    p->failed |= ++p->depth > DEPTH_MAX || ++p->steps > STEPS_MAX;
    return !p->failed;
}

static void path(struct parse *p, bool is_value)
{
    if (!enter(p))
        return;
    char tag = take_letter(p);
    switch (tag) {
    case 'C':
        take_number_of(p, 's');
        identifier(p);
        break;
    case 'M':
    case 'X': impl_path(p); /* fall through */
    case 'Y':
        put_text(p, "<");
        type(p);
        put_text(p, tag == 'M' ? "" : " as ");
        if (tag != 'M')
            path(p, false);
        put_text(p, ">");
        break;
    case 'N': put_nested(p, is_value); break;
    case 'I':
        path(p, is_value);
        generic_arguments(p, is_value ? "::<" : "<");
        break;
    case 'B': back(p, is_value ? value_path : type_path); break;
    default: p->failed = true; break;
    }
    p->depth--;
}

static const char *basic_type(char tag)
{
    static const char letters[] = "abcdefhijlmnopstuvxyz";
    static const char *const names[] = {"i8",    "bool",  "char", "f64", "str",  "f32",  "u8",
                                        "isize", "usize", "i32",  "u32", "i128", "u128", "_",
                                        "i16",   "u16",   "()",   "...", "i64",  "u64",  "!"};
    const char *found = tag ? strchr(letters, tag) : NULL;
    return found ? names[found - letters] : NULL;
}

static void function_type(struct parse *p)
{
    take_number_of(p, 'G');
    put_text(p, take_if(p, 'U') ? "unsafe " : "");
    if (take_if(p, 'K')) {
        put_text(p, "extern \"");
        if (take_if(p, 'C'))
            put_text(p, "C");
        else
            identifier(p);
        put_text(p, "\" ");
    }
    put_text(p, "fn(");
    list(p, type, ", ");
    put_text(p, ")");
    if (take_if(p, 'u'))
        return;
    put_text(p, " -> ");
    type(p);
}

/* The types that belong to it stand behind its arguments: dyn Fn<(A,), Output = B>. */
static void dynamic_trait(struct parse *p)
{
    unsigned count = 0;
    path(p, false);
    bool has_arguments = !p->silent && p->used && p->out[p->used - 1] == '>';
    for (; take_if(p, 'p'); count++) {
        p->used -= !count && has_arguments;
        put_text(p, count || has_arguments ? ", " : "<");
        identifier(p);
        put_text(p, " = ");
        type(p);
    }
    put_text(p, count ? ">" : "");
}

static void type(struct parse *p)
{
    if (!enter(p))
        return;
    char tag = take_letter(p);
    const char *basic = basic_type(tag);
    switch (tag) {
    case 'R':
    case 'Q':
        put_text(p, tag == 'R' ? "&" : "&mut ");
        take_number_of(p, 'L');
        type(p);
        break;
    case 'P':
    case 'O':
        put_text(p, tag == 'P' ? "*const " : "*mut ");
        type(p);
        break;
    case 'A':
    case 'S':
        put_text(p, "[");
        type(p);
        put_text(p, tag == 'A' ? "; " : "");
        if (tag == 'A')
            constant(p);
        put_text(p, "]");
        break;
    case 'T':
        put_text(p, "(");
        put_text(p, list(p, type, ", ") == 1 ? ",)" : ")");
        break;
    case 'F': function_type(p); break;
    case 'D':
        take_number_of(p, 'G');
        put_text(p, "dyn ");
        list(p, dynamic_trait, " + ");
        take_number_of(p, 'L');
        break;
    case 'B': back(p, type); break;
    default:
        if (basic) {
            put_text(p, basic);
        } else if (!p->failed) {
            p->at--;
            path(p, false);
        }
        break;
    }
    p->depth--;
}

char *rust_name(const char *mangled, size_t bytes_max)
{
    if (mangled[0] != '_' || mangled[1] != 'R')
        return NULL;
    struct parse p = {.text = mangled + 2, .max = bytes_max, .out = malloc(bytes_max + 1)};
    p.length = strcspn(p.text, ".$"); /* what the compiler's later parts append */
    if (!p.out)
        return NULL;
    path(&p, true);
    if (p.at < p.length) { /* the crate that wanted it */
        p.silent++;
        path(&p, false);
    }
    if (p.failed || p.at != p.length || !p.used) {
        free(p.out);
        return NULL;
    }
    p.out[p.used] = '\0';
    char *smaller = realloc(p.out, p.used + 1);
    return smaller ? smaller : p.out;
}

/* ---- the older mangling ---- */

bool rust_name_is_old(const char *mangled)
{
    size_t length = strlen(mangled), hash = sizeof HASH - 1;
    if (strncmp(mangled, "_ZN", 3) != 0 || length <= hash)
        return false;
    const char *end = mangled + length - hash;
    return strncmp(end, "17h", 3) == 0 && strspn(end + 3, "0123456789abcdef") == 16 &&
           end[hash - 1] == 'E';
}

/* What the escape at `text` stands for and how long it is; 0 if it is none. */
static size_t unescape(const char *text, char *to)
{
    static const struct {
        const char *escape;
        char c;
    } escapes[] = {{"$LT$", '<'}, {"$GT$", '>'}, {"$RF$", '&'}, {"$BP$", '*'},
                   {"$LP$", '('}, {"$RP$", ')'}, {"$SP$", '@'}, {"$C$", ','}};
    unsigned code;
    int length = 0;
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        if (strncmp(text, escapes[i].escape, strlen(escapes[i].escape)) == 0) {
            *to = escapes[i].c;
            return strlen(escapes[i].escape);
        }
    }
    if (sscanf(text, "$u%2x$%n", &code, &length) == 1 && length && code >= ' ' && code < 0x7f) {
        *to = (char)code;
        return (size_t)length;
    }
    return 0;
}

void rust_name_tidy(char *shown)
{
    size_t length = strlen(shown), hash = sizeof "::h0123456789abcdef" - 1;
    if (length <= hash)
        return;
    shown[length - hash] = '\0';
    char *to = shown;
    for (const char *from = shown; *from; to++) {
        if (from[0] == '_' && from[1] == '$' && (from == shown || from[-1] == ':'))
            from++; /* only there because a name cannot begin with the escape */
        size_t taken = unescape(from, to);
        if (!taken && from[0] == '.' && from[1] == '.') {
            *to++ = ':';
            *to = ':';
            taken = 2;
        } else if (!taken) {
            *to = *from;
            taken = 1;
        }
        from += taken;
    }
    *to = '\0';
}
