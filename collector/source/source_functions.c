/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source_functions.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define NESTED_MAX 256 /* nesting; deeper functions count as their outer ones */

/* Scans a text, past comments and quotes. */
struct scan {
    const struct source_text *text;
    uint32_t at;
    uint32_t line;
};

static char source_functions_look(const struct scan *s, uint32_t ahead)
{
    return s->at + ahead < s->text->length ? s->text->bytes[s->at + ahead] : '\0';
}

static bool is_at_end(const struct scan *s)
{
    return s->at >= s->text->length;
}

static void step(struct scan *s, uint32_t bytes)
{
    for (; bytes && !is_at_end(s); bytes--)
        s->line += s->text->bytes[s->at++] == '\n';
}

static void skip_line(struct scan *s)
{
    while (!is_at_end(s) && source_functions_look(s, 0) != '\n')
        step(s, source_functions_look(s, 0) == '\\' ? 2 : 1);
}

/* Skips a quoted text; in Python three quotes begin one of several lines. */
static void skip_quoted(struct scan *s, bool is_python)
{
    char quote = source_functions_look(s, 0);
    bool is_long =
        is_python && source_functions_look(s, 1) == quote && source_functions_look(s, 2) == quote;
    step(s, is_long ? 3 : 1);
    while (!is_at_end(s)) {
        char c = source_functions_look(s, 0);
        if (c == '\\') {
            step(s, 2);
        } else if (c == quote && (!is_long || (source_functions_look(s, 1) == quote &&
                                               source_functions_look(s, 2) == quote))) {
            step(s, is_long ? 3 : 1);
            return;
        } else if (c == '\n' && !is_long) {
            return;
        } else {
            step(s, 1);
        }
    }
}

/* Adds a function that begins on that line. Returns its index + 1, 0 without memory. */
static uint32_t source_functions_add_span(struct source_functions *f, uint32_t first)
{
    struct source_span span = {.first = first, .last = first};
    return ARRAY_PUSH(f->spans, f->count, &span) < 0 ? 0 : f->count;
}

static void source_functions_fill(struct source_functions *f, uint32_t from, uint32_t to,
                                  uint32_t span)
{
    for (; from <= to; from++)
        f->of_line[from] = span;
}

/* ---- Python --------------------------------------------------------------------------------- */

/* Skips to the end of a statement, which ends with its line unless a bracket is open. */
static void skip_statement(struct scan *s)
{
    uint32_t open = 0;
    while (!is_at_end(s) && (open || source_functions_look(s, 0) != '\n')) {
        char c = source_functions_look(s, 0);
        open += c == '(' || c == '[' || c == '{';
        open -= open && (c == ')' || c == ']' || c == '}');
        if (c == '#')
            while (!is_at_end(s) && source_functions_look(s, 0) != '\n')
                step(s, 1);
        else if (c == '"' || c == '\'')
            skip_quoted(s, true);
        else
            step(s, c == '\\' ? 2 : 1);
    }
}

/* Skips the blanks at the begin of a line; returns their width in columns. */
static uint32_t indentation(struct scan *s)
{
    uint32_t columns = 0;
    for (;; step(s, 1)) {
        if (source_functions_look(s, 0) == '\t')
            columns = columns / 8 * 8 + 8;
        else if (source_functions_look(s, 0) == ' ')
            columns++;
        else if (source_functions_look(s, 0) != '\f' && source_functions_look(s, 0) != '\r')
            return columns;
    }
}

static bool source_functions_begins_with(const struct scan *s, const char *word)
{
    size_t length = strlen(word);
    return s->text->length - s->at >= length && memcmp(s->text->bytes + s->at, word, length) == 0;
}

static int find_python(struct source_functions *f, struct scan *s)
{
    struct {
        uint32_t columns, span;
    } open[NESTED_MAX];
    uint32_t depth = 0, decorated = 0;
    while (!is_at_end(s)) {
        uint32_t columns = indentation(s), first = s->line;
        if (is_at_end(s) || source_functions_look(s, 0) == '#' ||
            source_functions_look(s, 0) == '\n') {
            while (!is_at_end(s) && source_functions_look(s, 0) != '\n')
                step(s, 1);
            step(s, 1);
            continue;
        }
        while (depth && open[depth - 1].columns >= columns)
            depth--;
        bool is_function = source_functions_begins_with(s, "def ") ||
                           source_functions_begins_with(s, "async def ");
        if (source_functions_look(s, 0) == '@' && !decorated)
            decorated = first;
        bool is_decorator = source_functions_look(s, 0) == '@';
        if (is_function && depth < NESTED_MAX) {
            uint32_t span = source_functions_add_span(f, decorated ? decorated : first);
            if (!span)
                return GPUPROF_NO_MEMORY;
            open[depth].columns = columns;
            open[depth++].span = span;
            source_functions_fill(f, f->spans[span - 1].first, first, span);
        }
        if (!is_decorator)
            decorated = 0;
        skip_statement(s);
        if (depth)
            source_functions_fill(f, first, s->line, open[depth - 1].span);
        for (uint32_t i = 0; i < depth; i++)
            f->spans[open[i].span - 1].last = s->line;
        step(s, 1);
    }
    return 0;
}

/* ---- C ----------------------------------------------------------------------------------------
 */

struct braces {
    uint32_t first;    /* line where a statement outside of functions begins; 0: none */
    bool has_argument; /* it has a parenthesis, so its brace begins a function */
    uint32_t depth;    /* open braces in that function */
    uint32_t span;     /* 0: outside of functions */
};

/* Returns true if the brace ended an initialiser in a constructor's head, so the function
 * continues. */
static bool source_functions_goes_on(const struct scan *s)
{
    struct scan ahead = *s;
    while (!is_at_end(&ahead) && isspace((unsigned char)source_functions_look(&ahead, 0)))
        step(&ahead, 1);
    return source_functions_look(&ahead, 0) == ',' || source_functions_look(&ahead, 0) == '{';
}

/* Takes a character that is neither blank nor quoted. */
static int take_brace(struct source_functions *f, struct scan *s, struct braces *b, char c)
{
    if (b->span && c == '{') {
        b->depth++;
    } else if (b->span && c == '}' && b->depth && !--b->depth && !source_functions_goes_on(s)) {
        source_functions_fill(f, f->spans[b->span - 1].first, s->line, b->span);
        f->spans[b->span - 1].last = s->line;
        *b = (struct braces){0};
    } else if (!b->span && c == '{' && b->has_argument) {
        b->depth = 1;
        return (b->span = source_functions_add_span(f, b->first)) ? 0 : GPUPROF_NO_MEMORY;
    } else if (!b->span && (c == '{' || c == '}' || c == ';')) {
        *b = (struct braces){0}; /* a namespace, a class, a declaration */
    } else if (!b->span) {
        b->first = b->first ? b->first : s->line;
        b->has_argument |= c == '(';
    }
    return 0;
}

static int find_c(struct source_functions *f, struct scan *s)
{
    struct braces b = {0};
    bool is_line_begin = true;
    char before = '\0';
    int error = 0;
    while (error == 0 && !is_at_end(s)) {
        char c = source_functions_look(s, 0);
        bool is_text = c == '"' || (c == '\'' && !isalnum((unsigned char)before));
        before = c;
        if (c == '/' && source_functions_look(s, 1) == '*') {
            step(s, 2);
            while (!is_at_end(s) &&
                   !(source_functions_look(s, 0) == '*' && source_functions_look(s, 1) == '/'))
                step(s, 1);
            step(s, 2);
        } else if ((c == '/' && source_functions_look(s, 1) == '/') ||
                   (c == '#' && is_line_begin)) {
            skip_line(s);
        } else if (is_text) {
            skip_quoted(s, false);
        } else if (isspace((unsigned char)c)) {
            is_line_begin |= c == '\n';
            step(s, 1);
            continue;
        } else {
            uint32_t line = s->line;
            step(s, 1);
            s->line = line; /* the character itself does not end a line */
            error = take_brace(f, s, &b, c);
        }
        is_line_begin = false;
    }
    return error;
}

int source_functions_find(struct source_functions *f, const struct source_text *text,
                          bool is_python)
{
    struct scan s = {.text = text, .line = 1};
    *f = (struct source_functions){.of_line = calloc(text->line_count + 2u, sizeof *f->of_line)};
    if (!f->of_line)
        return GPUPROF_NO_MEMORY;
    return is_python ? find_python(f, &s) : find_c(f, &s);
}

void source_functions_release(struct source_functions *f)
{
    free(f->spans);
    free(f->of_line);
}
