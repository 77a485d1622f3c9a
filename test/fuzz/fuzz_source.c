/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_source.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "source/source_tree.h"

/* Below the folder; tails of some are those of others, and the last one has the text. */
static const char *const files[] = {"b.py",       "a/b.py",   "c/a/b.py", "c/a.c", "a.c",
                                    "d/a b/\xff", "c/b/b.py", "c/c/a.c",  "text"};
#define FILES     (sizeof files / sizeof files[0])
#define TEXT_FILE files[FILES - 1]

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* The last parts that are equal, behind the last ".." of what was recorded. */
static unsigned same_parts(const char *path, const char *recorded)
{
    unsigned same = 0;
    for (const char *up; (up = strstr(recorded, "../"));)
        recorded = up + 3;
    for (size_t a = strlen(path), b = strlen(recorded); a;) {
        const char *p = memrchr(path, '/', a), *r = memrchr(recorded, '/', b);
        size_t from = p ? (size_t)(p + 1 - path) : 0, its = r ? (size_t)(r + 1 - recorded) : 0;
        if (a - from != b - its || memcmp(path + from, recorded + its, a - from) != 0)
            break;
        same++;
        if (!r)
            break;
        a = from - 1;
        b = its - 1;
    }
    return same;
}

/* The file of a recorded path is what a look at all of them finds. */
static void match(const struct source_tree *t, const char *recorded)
{
    uint32_t index = 0, expected = 0;
    unsigned best = 0, found = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        unsigned same = same_parts(t->paths[i], recorded);
        found = same > best ? 1 : found + (same && same == best);
        expected = same > best ? i : expected;
        best = same > best ? same : best;
    }
    enum source_match got = source_tree_match(t, recorded, &index);
    check(got == (!found ? SOURCE_NONE : found == 1 ? SOURCE_ONE : SOURCE_SEVERAL));
    check(got != SOURCE_ONE || index == expected);
    check(got == SOURCE_NONE || same_parts(t->paths[index], recorded) == best);
}

static void find_functions(const struct source_text *text, bool is_python)
{
    struct source_functions f;
    source_functions_find(&f, text, is_python);
    for (uint32_t n = 0; n <= text->line_count; n++)
        check(f.of_line[n] <= f.count);
    for (uint32_t i = 0; i < f.count; i++)
        check(f.spans[i].first && f.spans[i].first <= f.spans[i].last &&
              f.spans[i].last <= text->line_count + 1);
    source_functions_release(&f);
}

/* Each byte is in one line, or ends one. */
static void read_text(const struct source_tree *t, uint32_t index, const uint8_t *data, size_t size)
{
    struct source_text text;
    size_t at = 0, length;
    check(source_text_read(&text, t, index) == 0 && text.length == size);
    for (uint32_t n = 1; n <= text.line_count; n++) {
        const char *line = source_line(&text, n, &length);
        check(line == text.bytes + at && !memchr(line, '\n', length));
        check(!size || memcmp(line, data + at, length) == 0);
        at += length;
        at += at < size && data[at] == '\r';
        at += at < size;
    }
    check(at == size);
    find_functions(&text, true);
    find_functions(&text, false);
    source_text_release(&text);
}

static void write_file(const char *folder, const char *name, const uint8_t *data, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
}

void fuzz_source(const char *folder, const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a.c", "b.py", "text", "\xff"};
    struct source_tree tree;
    const uint8_t *end = memchr(data, '\0', size);
    size_t path_bytes = end ? (size_t)(end - data) : size;
    char *recorded = strndup((const char *)data, path_bytes);
    uint32_t index = 0;
    data += end ? path_bytes + 1 : size;
    size -= end ? path_bytes + 1 : size;
    check(recorded != NULL);
    for (unsigned i = 0; i < FILES; i++)
        write_file(folder, files[i], data, files[i] == TEXT_FILE ? size : 0);
    check(source_tree_open(&tree, folder) == 0);
    source_tree_list(&tree, names, sizeof names / sizeof names[0]);
    check(tree.count == FILES && !tree.is_cut);
    match(&tree, recorded);
    check(source_tree_match(&tree, TEXT_FILE, &index) == SOURCE_ONE);
    read_text(&tree, index, data, size);
    source_tree_release(&tree);
    free(recorded);
}
