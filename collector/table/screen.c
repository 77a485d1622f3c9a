/* SPDX-License-Identifier: Apache-2.0 */
#include "table/screen.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"

#define LINE_BYTES 2048
#define WRAP_WIDTH 100 /* if the width is unknown */

void screen_print(struct screen *s, const char *text)
{
    static const char *const alarms[] = {"  collective", "  open", "  unfinished", "  no memory",
                                         "  error"};
    s->lines++;
    size_t label = strlen(text) < SCREEN_LABEL_WIDTH ? strlen(text) : SCREEN_LABEL_WIDTH;
    const char *colour = COLOUR_STRONG;
    for (size_t i = 0; i < sizeof alarms / sizeof alarms[0]; i++)
        if (strncmp(text, alarms[i], strlen(alarms[i])) == 0)
            colour = COLOUR_ALARM;
    if (s->has_colour && strspn(text, " ") < label)
        fprintf(s->out, "%s%.*s" COLOUR_END "%s\n", colour, (int)label, text, text + label);
    else
        fprintf(s->out, "%s\n", text);
}

static void print_named(struct screen *s, const char *label, const char *name, const char *format,
                        va_list list)
{
    char text[LINE_BYTES];
    int length = snprintf(text, sizeof text, "  %-*s ", SCREEN_LABEL_WIDTH - 2, label);
    vsnprintf(text + length, sizeof text - (size_t)length, format, list);
    char *clean = json_line(text), *end = json_line(name ? name : "");
    size_t width = s->width ? s->width : SIZE_MAX, used = text_width(clean, strlen(clean));
    size_t left = width > used + TEXT_WIDTH_MIN ? width - used : TEXT_WIDTH_MIN;
    char *fit = text_cut_stack(end, strlen(end), left);
    char *whole = text_printf("%s%s", clean, fit);
    char *cut = text_cut(whole, strlen(whole), width);
    screen_print(s, cut);
    free(cut);
    free(whole);
    free(fit);
    free(end);
    free(clean);
}

void screen_line(struct screen *s, const char *label, const char *name, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_named(s, label, name, format, list);
    va_end(list);
}

void screen_line_freed(struct screen *s, const char *label, char *name, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_named(s, label, name, format, list);
    va_end(list);
    free(name);
}

void screen_wrapped(struct screen *s, const char *label, const char *text)
{
    size_t room = (s->width ? s->width : WRAP_WIDTH) - SCREEN_LABEL_WIDTH - 1;
    for (size_t length; *text; text += length + (text[length] == ' ')) {
        length = text_wrap(text, room);
        screen_line(s, label, NULL, "%.*s", (int)length, text);
        label = "";
    }
}

void screen_long(struct screen *s, const char *label, const char *format, ...)
{
    size_t room = s->width > SCREEN_LABEL_WIDTH + 1 ? s->width - SCREEN_LABEL_WIDTH - 1
                                                    : (size_t)TEXT_WIDTH_MIN;
    va_list list;
    va_start(list, format);
    char *text = text_vprintf(format, list);
    va_end(list);
    char *clean = s->width && !s->is_short ? json_line(text) : NULL;
    char *cut = clean ? text_cut(clean, strlen(clean), 3 * room - room / 5) : NULL;
    if (cut)
        screen_wrapped(s, label, cut);
    else
        screen_line(s, label, NULL, "%s", text);
    free(cut);
    free(clean);
    free(text);
}

/* ---- the width of texts ---------------------------------------------------------------------- */

#define DOTS       "..."
#define DOTS_WIDTH (sizeof DOTS - 1)
#define BAR        " | " /* separates the frames of a stack */
#define BAR_BYTES  (sizeof BAR - 1)
#define NOWHERE    "(anonymous namespace)"
#define VOID       "void "
#define BY         " (by " /* follows a kernel: the call that launched it */
#define NAME_TELLS 8       /* shorter names, such as "kernel", tell little */

struct code_range {
    uint32_t from, to;
    unsigned width;
};

/* Sorted Unicode blocks that are not one column wide, as terminals draw them in any locale: names
 * come from the recorded program. */
static const struct code_range ranges[] = {
    {0x300, 0x36f, 0},     {0x483, 0x489, 0},     {0x591, 0x5bd, 0},     {0x610, 0x61a, 0},
    {0x64b, 0x65f, 0},     {0x900, 0x902, 0},     {0xe34, 0xe3a, 0},     {0xe47, 0xe4e, 0},
    {0x1100, 0x115f, 2},   {0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},   {0x200b, 0x200f, 0},
    {0x20d0, 0x20ff, 0},   {0x2e80, 0x303e, 2},   {0x3041, 0x4dbf, 2},   {0x4e00, 0xa4cf, 2},
    {0xa960, 0xa97f, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},
    {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},
    {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    {0xe0100, 0xe01ef, 0},
};

static unsigned code_width(uint32_t code)
{
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && code >= ranges[i].from; i++)
        if (code <= ranges[i].to)
            return ranges[i].width;
    return 1;
}

/* Decodes the character at `text`, `left` > 0 bytes before the end; returns its bytes. */
static size_t letter(const char *text, size_t left, unsigned *width)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t bytes = p[0] < 0xc0 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t code = p[0] & (bytes == 1 ? 0x7f : 0xffu >> (bytes + 1));
    bytes = bytes < left ? bytes : left;
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | (p[i] & 0x3f);
    *width = code_width(code);
    return bytes;
}

size_t text_width(const char *text, size_t length)
{
    size_t width = 0;
    unsigned one;
    for (size_t at = 0; at < length; width += one)
        at += letter(text + at, length - at, &one);
    return width;
}

/* Cuts so that the end keeps `tail` columns. */
static char *cut_to(const char *text, size_t length, size_t width, size_t tail)
{
    size_t whole = text_width(text, length);
    if (whole <= width)
        return memory_from(strndup(text, length));
    size_t head = width - DOTS_WIDTH - tail;
    size_t head_bytes = 0, tail_at = length, before = 0;
    unsigned one;
    for (size_t at = 0; at < length; before += one) {
        size_t bytes = letter(text + at, length - at, &one);
        if (before + one <= head)
            head_bytes = at + bytes;
        /* The end must not begin with a mark whose letter was cut. */
        if (one && whole - before <= tail) {
            tail_at = at;
            break;
        }
        at += bytes;
    }
    char *cut = memory_new(head_bytes + DOTS_WIDTH + (length - tail_at) + 1, 1);
    char *end = mempcpy(cut, text, head_bytes);
    end = mempcpy(end, DOTS, DOTS_WIDTH);
    mempcpy(end, text + tail_at, length - tail_at);
    return cut;
}

/* Names differ at both ends: each gets half, the begin the odd column. */
char *text_cut(const char *text, size_t length, size_t width)
{
    return cut_to(text, length, width, (width - DOTS_WIDTH) / 2);
}

static bool is_of_name(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Returns where the arguments begin in a function's name that ends at `length`; `length` if
 * none. */
static size_t arguments_at(const char *text, size_t length)
{
    unsigned depth = 0;
    for (size_t at = length; at > 1 && text[length - 1] == ')'; at--) {
        depth += text[at - 1] == ')';
        depth -= text[at - 1] == '(';
        if (!depth)
            return is_of_name(text[at - 2]) || text[at - 2] == '>' ? at - 1 : length;
    }
    return length;
}

/* Returns how many bytes at the end are the name of a namespace or class. */
static size_t scope_bytes(const char *text, size_t length)
{
    size_t nowhere = sizeof NOWHERE - 1, at = length;
    if (length >= nowhere && memcmp(text + length - nowhere, NOWHERE, nowhere) == 0)
        return nowhere;
    while (at && is_of_name(text[at - 1]))
        at--;
    return length - at;
}

/* Returns where a function's name begins in text[0..end), the text before its arguments: after the
 * return type, which only templates have. */
static size_t name_at(const char *text, size_t end)
{
    int depth = 0;
    size_t at = end;
    while (at && (text[at - 1] != ' ' || depth > 0)) {
        char c = text[--at];
        depth += (c == '>' || c == ')') - (c == '<' || c == '(');
    }
    return at;
}

/* Returns true if the function's own name after "::" is too short to identify it. */
static bool needs_scope(const char *text, size_t length, const char *name)
{
    size_t letters = 0;
    while (is_of_name(name[letters]))
        letters++;
    return letters && letters < NAME_TELLS && name[letters] != ':' && length &&
           is_of_name(text[length - 1]) && !memchr(text, '<', length) && !memchr(text, '(', length);
}

/* Removes namespaces, arguments and the return type of a C++ function, but keeps a separate text in
 * parentheses after them; returns the new length. */
static size_t drop_qualifiers(char *text)
{
    size_t length = strlen(text), to = 0;
    const char *last = length && text[length - 1] == ')' ? memrchr(text, '(', length) : NULL;
    size_t name = last && last > text && last[-1] == ' ' ? (size_t)(last - text) - 1 : length;
    size_t end = arguments_at(text, name);
    size_t from = end < name                                  ? name_at(text, end)
                  : strncmp(text, VOID, sizeof VOID - 1) == 0 ? sizeof VOID - 1
                                                              : 0;
    memmove(text + end, text + name, length - name + 1);
    while (text[from]) {
        bool is_scope =
            strncmp(text + from, "::", 2) == 0 && !needs_scope(text, to, text + from + 2);
        size_t scope = is_scope ? scope_bytes(text, to) : 0;
        to -= scope;
        if (scope)
            from += 2;
        else
            text[to++] = text[from++];
    }
    text[to] = '\0';
    return to;
}

/* Kernels of C++ libraries share their leading namespaces and trailing arguments. */
static char *cut_function(const char *text, size_t length, size_t width)
{
    char *name = memory_from(strndup(text, length));
    size_t left = drop_qualifiers(name);
    char *by = text_width(name, left) > width ? strstr(name, BY) : NULL;
    left = by ? (size_t)(by - name) : left;
    char *cut = cut_to(name, left, width, (width - DOTS_WIDTH) / 4);
    free(name);
    return cut;
}

char *text_cut_stack(const char *text, size_t length, size_t width)
{
    const char *bar = memmem(text, length, BAR, BAR_BYTES), *call = bar;
    size_t end = length, kept = 0;
    if (text_width(text, length) <= width)
        return memory_from(strndup(text, length));
    if (!bar && (memmem(text, length, "::", 2) || strncmp(text, VOID, sizeof VOID - 1) == 0))
        return cut_function(text, length, width);
    if (!bar)
        return text_cut(text, length, width);
    for (size_t at = (size_t)(bar - text) + BAR_BYTES;
         (bar = memmem(text + at, length - at, BAR, BAR_BYTES)); kept = at) {
        end = kept ? end : (size_t)(bar - text);
        at = (size_t)(bar - text) + BAR_BYTES;
        if (text_width(text, at) + DOTS_WIDTH > width)
            break;
    }
    const char *colon = memrchr(text, ':', (size_t)(call - text)), *innermost = call + BAR_BYTES;
    int before = colon && colon[1] == ' ' ? (int)(colon + 2 - text) : 0;
    char *less =
        kept ? text_printf("%.*s" DOTS, (int)kept, text)
             : text_printf("%.*s%.*s", before, text, (int)(text + end - innermost), innermost);
    char *cut = text_cut(less, strlen(less), width);
    free(less);
    return cut;
}

size_t text_wrap(const char *text, size_t room)
{
    size_t length = strlen(text), last = 0;
    for (size_t i = 0; length > room && i <= room; i++)
        last = text[i] == ' ' ? i : last;
    return last ? last : length;
}

uint32_t terminal_width(int fd)
{
    struct winsize size = {0};
    if (!isatty(fd))
        return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    long width = columns ? strtol(columns, NULL, 10) : 0;
    return width > 0 && width <= UINT16_MAX ? (uint32_t)width : 0;
}

bool terminal_has_colour(int fd)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(none && *none) && term && *term && strcmp(term, "dumb") != 0 && isatty(fd);
}
