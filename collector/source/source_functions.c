/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source_tree.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define NESTED_MAX 256 /* nesting; deeper functions count as their outer ones */

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

static bool begins_with(const char *text, const char *end, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(end - text) >= length && memcmp(text, word, length) == 0;
}

/* ---- Python ---------------------------------------------------------------------------------- */

/* Returns the quote (0: none) of a long text that is open after this line; `quote`: before. */
static char open_quote(const char *p, const char *end, char quote)
{
    for (; p < end; p++) {
        bool is_long = end - p >= 3 && (*p == '"' || *p == '\'') && p[1] == *p && p[2] == *p;
        if (*p == '\\')
            p++;
        else if (!quote && *p == '#')
            return '\0';
        else if (is_long && (!quote || quote == *p)) {
            quote = quote ? '\0' : *p;
            p += 2;
        } else if (!quote && (*p == '"' || *p == '\'')) {
            char own = *p++;
            for (; p < end && *p != own; p++)
                p += *p == '\\';
        }
    }
    return quote;
}

/* Skips the blanks at the begin of a line; returns their width in columns. */
static uint32_t indentation(const char **p, const char *end)
{
    uint32_t columns = 0;
    for (; *p < end && (**p == ' ' || **p == '\t' || **p == '\f'); ++*p)
        columns = **p == '\t' ? columns / 8 * 8 + 8 : columns + (**p == ' ');
    return columns;
}

/* A function lasts as long as its lines have more indentation. Lines that begin with a closing
 * bracket, or within a text of several lines, continue a statement. */
static int find_python(struct source_functions *f, const struct source_text *text)
{
    struct {
        uint32_t columns, span;
    } open[NESTED_MAX];
    uint32_t depth = 0, decorated = 0, decorated_columns = 0;
    char quote = '\0';
    for (uint32_t n = 1; n <= text->line_count; n++) {
        size_t length;
        const char *p = source_line(text, n, &length), *end = p + length;
        bool continues = quote != '\0';
        quote = open_quote(p, end, quote);
        uint32_t columns = indentation(&p, end);
        if (!continues && (p == end || *p == '#'))
            continue;
        continues |= p < end && strchr(")]}", *p) != NULL;
        while (!continues && depth && open[depth - 1].columns >= columns)
            depth--;
        bool is_function = begins_with(p, end, "def ") || begins_with(p, end, "async def ");
        if (!continues && is_function && depth < NESTED_MAX) {
            uint32_t span = source_functions_add_span(f, decorated ? decorated : n);
            if (!span)
                return GPUPROF_NO_MEMORY;
            open[depth].columns = columns;
            open[depth++].span = span;
            source_functions_fill(f, f->spans[span - 1].first, n, span);
        }
        if (!continues && *p == '@' && !decorated) {
            decorated = n;
            decorated_columns = columns;
        } else if (!continues && *p != '@' && columns <= decorated_columns) {
            decorated = 0;
        }
        if (depth)
            f->of_line[n] = open[depth - 1].span;
        for (uint32_t i = 0; i < depth; i++)
            f->spans[open[i].span - 1].last = n;
    }
    return 0;
}

/* ---- C --------------------------------------------------------------------------------------- */

/* A function begins in the first column, has a parenthesis before its brace, and ends with a brace
 * in the first column or on the line where it begins. */
static int find_c(struct source_functions *f, const struct source_text *text)
{
    uint32_t first = 0, span = 0;
    bool has_argument = false;
    for (uint32_t n = 1; n <= text->line_count; n++) {
        size_t length;
        const char *line = source_line(text, n, &length);
        const char *brace = memchr(line, '{', length);
        char begin = length ? line[0] : '\0', end = length ? line[length - 1] : '\0';
        if (!span && !first && (isalpha((unsigned char)begin) || begin == '_'))
            first = n;
        has_argument |= !span && first && memchr(line, '(', length);
        if (!span && first && brace && has_argument &&
            !(span = source_functions_add_span(f, first)))
            return GPUPROF_NO_MEMORY;
        bool is_end = begin == '}' || (span && first == n && end == '}');
        if (span && is_end) {
            source_functions_fill(f, f->spans[span - 1].first, n, span);
            f->spans[span - 1].last = n;
        }
        if (is_end || (!span && (brace || !length || strchr(";}#", end)))) {
            first = span = 0;
            has_argument = false;
        }
    }
    return 0;
}

int source_functions_find(struct source_functions *f, const struct source_text *text,
                          bool is_python)
{
    *f = (struct source_functions){.of_line = calloc(text->line_count + 2u, sizeof *f->of_line)};
    if (!f->of_line)
        return GPUPROF_NO_MEMORY;
    return is_python ? find_python(f, text) : find_c(f, text);
}

void source_functions_release(struct source_functions *f)
{
    free(f->spans);
    free(f->of_line);
}
