/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source_tree.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/memory.h"
#include "error.h"

int source_tree_open(struct source_tree *t, const char *folder)
{
    *t = (struct source_tree){.folder = realpath(folder, NULL), .fd = -1};
    if (!t->folder)
        return GPUPROF_IO;
    if (strcmp(t->folder, "/") == 0)
        t->folder[0] = '\0';
    t->fd = open(t->folder[0] ? t->folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return t->fd < 0 ? GPUPROF_IO : 0;
}

void source_tree_release(struct source_tree *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->paths[i]);
    free(t->paths);
    free(t->folder);
    file_close(t->fd);
}

static int source_tree_compare_names(const void *name, const void *item)
{
    return strcmp(name, *(const char *const *)item);
}

static bool is_left_out(const char *name)
{
    return name[0] == '.' || strcmp(name, "site-packages") == 0 ||
           strcmp(name, "dist-packages") == 0 || strcmp(name, "__pycache__") == 0;
}

static void add_path(struct source_tree *t, const char *path)
{
    if (t->count == SOURCE_FILES_MAX) {
        t->is_cut = true;
        return;
    }
    char *own = memory_text(path);
    ARRAY_PUSH(t->paths, t->count, &own);
}

void source_tree_list(struct source_tree *t, const char *const *names, uint32_t count)
{
    char *const roots[] = {t->folder[0] ? t->folder : (char *)"/", NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *e; walk && (e = fts_read(walk));) {
        bool is_over = t->seen == SOURCE_SEEN_MAX || e->fts_level > SOURCE_DEPTH_MAX + 1;
        t->is_cut |= is_over;
        if (e->fts_level > 0 && (is_over || is_left_out(e->fts_name))) {
            fts_set(walk, e, FTS_SKIP);
            continue;
        }
        t->seen += e->fts_info != FTS_DP; /* a folder is met twice */
        if (e->fts_info == FTS_F &&
            bsearch(e->fts_name, names, count, sizeof *names, source_tree_compare_names))
            add_path(t, e->fts_path);
    }
    if (walk)
        fts_close(walk);
}

/* Returns how many trailing parts of the paths are equal. */
static unsigned common_parts(const char *path, const char *recorded)
{
    const char *p = path + strlen(path), *r = recorded + strlen(recorded);
    unsigned parts = 0;
    while (p > path && r > recorded && p[-1] == r[-1]) {
        p--;
        r--;
        parts += *p == '/';
    }
    return parts + (r == recorded && *r != '/' && p > path && p[-1] == '/');
}

enum source_match source_tree_match(const struct source_tree *t, const char *recorded,
                                    uint32_t *index)
{
    unsigned best = 0, found = 0;
    /* The parts before ".." are uncertain. */
    for (const char *up; (up = strstr(recorded, "../"));)
        recorded = up + 3;
    for (uint32_t i = 0; i < t->count; i++) {
        unsigned parts = common_parts(t->paths[i], recorded);
        if (parts > best)
            *index = i;
        found = parts > best ? 1 : found + (parts && parts == best);
        best = parts > best ? parts : best;
    }
    return !found ? SOURCE_NONE : found == 1 ? SOURCE_ONE : SOURCE_SEVERAL;
}

const char *source_tree_path(const struct source_tree *t, uint32_t index)
{
    return t->paths[index] + strlen(t->folder) + 1;
}

/* Opens it part by part from the folder: a symbolic link may have appeared since the listing. */
static int open_below(const struct source_tree *t, const char *path)
{
    char part[NAME_MAX + 1];
    int fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
    while (fd >= 0) {
        size_t length = strcspn(path, "/");
        bool is_last = !path[length];
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        int next = openat(
            fd, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (is_last ? 0 : O_DIRECTORY));
        int number = errno;
        close(fd);
        errno = number;
        if (is_last)
            return next;
        fd = next;
        path += length + 1;
    }
    return -1;
}

static void find_lines(struct source_text *s)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < s->length; i++)
        count += s->bytes[i] == '\n';
    s->starts = memory_new(count + 1u, sizeof *s->starts);
    for (uint32_t i = 0; i < s->length; i++)
        if (s->bytes[i] == '\n')
            s->starts[++s->line_count] = i + 1;
    if (s->starts[s->line_count] < s->length)
        s->starts[++s->line_count] = s->length + 1; /* as if the last line ended, too */
}

int source_text_read(struct source_text *s, const struct source_tree *t, uint32_t index)
{
    struct stat status;
    *s = (struct source_text){0};
    int fd = open_below(t, source_tree_path(t, index));
    if (fd < 0)
        return GPUPROF_IO;
    int error = fstat(fd, &status) == 0 ? 0 : GPUPROF_IO;
    if (error == 0 && (!S_ISREG(status.st_mode) || status.st_size > SOURCE_BYTES_MAX))
        error = GPUPROF_LIMIT;
    if (error == 0)
        s->bytes = memory_new((size_t)status.st_size + 1, 1);
    ssize_t length = error == 0 ? file_read_at(fd, 0, s->bytes, (size_t)status.st_size) : 0;
    close(fd);
    if (error == 0 && length < 0)
        error = GPUPROF_IO;
    if (error < 0)
        return error;
    s->length = (uint32_t)length;
    s->changed_ns =
        (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
    find_lines(s);
    return 0;
}

void source_text_release(struct source_text *s)
{
    free(s->bytes);
    free(s->starts);
}

const char *source_line(const struct source_text *s, uint32_t n, size_t *length)
{
    const char *line = s->bytes + s->starts[n - 1];
    *length = s->starts[n] - 1 - s->starts[n - 1];
    *length -= *length && line[*length - 1] == '\r';
    return line;
}

/* ---- functions ------------------------------------------------------------------------------- */

#define NESTED_MAX 256 /* nesting; deeper functions count as their outer ones */

/* Adds a function that begins on that line. Returns its index + 1. */
static uint32_t source_functions_add_span(struct source_functions *f, uint32_t first)
{
    struct source_span span = {.first = first, .last = first};
    ARRAY_PUSH(f->spans, f->count, &span);
    return f->count;
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
static void find_python(struct source_functions *f, const struct source_text *text)
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
}

/* ---- C --------------------------------------------------------------------------------------- */

/* A function begins in the first column, has a parenthesis before its brace, and ends with a brace
 * in the first column or on the line where it begins. */
static void find_c(struct source_functions *f, const struct source_text *text)
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
        if (!span && first && brace && has_argument)
            span = source_functions_add_span(f, first);
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
}

void source_functions_find(struct source_functions *f, const struct source_text *text,
                           bool is_python)
{
    *f =
        (struct source_functions){.of_line = memory_new(text->line_count + 2u, sizeof *f->of_line)};
    (is_python ? find_python : find_c)(f, text);
}

void source_functions_release(struct source_functions *f)
{
    free(f->spans);
    free(f->of_line);
}
