/* SPDX-License-Identifier: Apache-2.0 */
#include "output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/memory.h"
#include "error.h"

/* A small hostile file can hold millions of calls with long names. Honest recordings stay far below
 * this many bytes of text per byte of their own. */
#define TEXT_BYTES_RATIO 16384

uint64_t verb_output_room(uint64_t bytes)
{
    return bytes < UINT64_MAX / TEXT_BYTES_RATIO / 2 ? OUTPUT_TEXT_FREE + TEXT_BYTES_RATIO * bytes
                                                     : UINT64_MAX;
}

/* Returns true if standard output is an unnamed file, as `view` has it written. */
static bool is_nameless(void)
{
    struct stat status;
    return fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode) && !status.st_nlink;
}

enum exit_code verb_output_failed(const char *path, int error)
{
    int number = errno;
    bool is_named = path && strcmp(path, "-") != 0;
    const char *shown = is_named ? path : "standard output";
    if (error == GPUPROF_USAGE) {
        message("%s: not overwritten: it is a recording; name another file", shown);
        return EXIT_USAGE;
    }
    if (error == GPUPROF_IO && number == EPIPE)
        raise(SIGPIPE); /* blocked in the thread that wrote; if it is ignored, a message follows */
    errno = number;
    if (error == GPUPROF_IO && !is_named && is_nameless())
        file_unnamed_failed();
    if (error == GPUPROF_IO)
        message("%s: %s%s", shown, strerror(number), is_named ? writing_advice(number) : "");
    else
        message("%s: %s", shown,
                error == GPUPROF_LIMIT ? "the output is too large for recordings of this size"
                                       : gpuprof_error_text(error));
    return EXIT_ENVIRONMENT;
}

enum exit_code verb_output_folders(const char *path)
{
    char *folder = memory_text(path);
    enum exit_code code = EXIT_OK;
    for (char *end = folder; code == EXIT_OK && (end = strchr(end + 1, '/')); *end = '/') {
        *end = '\0';
        if (mkdir(folder, 0777) < 0 && errno != EEXIST)
            code = verb_output_failed(folder, GPUPROF_IO);
    }
    free(folder);
    return code;
}

bool verb_output_is(const char *path, const char *kind)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *name = !path || strcmp(path, "-") == 0 ? "" : slash ? slash + 1 : path;
    size_t length = output_plain_length(name, strlen(name));
    size_t end = length;
    while (end > 0 && name[end - 1] != '.')
        end--;
    if (end <= 1) /* a name whose only point comes first has no ending */
        end = length;
    return length - end == strlen(kind) && strncasecmp(name + end, kind, length - end) == 0;
}

enum report_format verb_output_format(enum report_format asked, const char *path)
{
    if (asked != FORMAT_BY_NAME)
        return asked;
    if (verb_output_is(path, "json"))
        return FORMAT_JSON;
    size_t length = path ? strlen(path) : 0;
    if (verb_output_is(path, "csv") || (length && path[length - 1] == '/'))
        return FORMAT_CSV;
    if (verb_output_is(path, "html") || verb_output_is(path, "htm"))
        return FORMAT_HTML;
    bool is_text = verb_output_is(path, "") || verb_output_is(path, "txt");
    return is_text ? FORMAT_TEXT : FORMAT_BY_NAME;
}

enum exit_code verb_output_open(struct output *out, const char *path, uint64_t *room)
{
    int error = output_open(out, path);
    if (error < 0)
        return verb_output_failed(path, error);
    out->room = room;
    return EXIT_OK;
}

enum exit_code verb_output_close(struct output *out, const char *path, int error)
{
    int its = output_finish(out, error == 0);
    if (its < 0)
        return verb_output_failed(path, its);
    return error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
}

/* ---- kinds of files -------------------------------------------------------------------------- */

const struct file_format *file_format_of(const struct file_format *const *list, const char *asked,
                                         const char *path)
{
    while (*list &&
           !(asked ? strcmp((*list)->name, asked) == 0 : verb_output_is(path, (*list)->ending)))
        list++;
    return *list;
}

char *file_format_names(const struct file_format *const *list, char *text)
{
    size_t length = 0;
    for (unsigned i = 0; list[i] && length < FILE_FORMAT_NAMES_BYTES; i++)
        length += (size_t)snprintf(text + length, FILE_FORMAT_NAMES_BYTES - length, "%s%s (.%s)",
                                   i ? ", " : "", list[i]->name, list[i]->ending);
    return text;
}

const struct file_format *file_format_find(const char *verb, const struct file_format *const *list,
                                           const char *asked, const char *path)
{
    char names[FILE_FORMAT_NAMES_BYTES];
    const struct file_format *found = file_format_of(list, asked, path);
    if (!found && asked)
        usage_error("%s: --format: unknown format '%s'; the formats are: %s", verb, asked,
                    file_format_names(list, names));
    else if (!found)
        usage_error("%s: %s: unknown file type; the formats are: %s", verb, path,
                    file_format_names(list, names));
    return found;
}

int standard_files_fill(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* A new file gets the lowest free number. */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd) {
            message("/dev/null: %s", strerror(errno));
            return GPUPROF_IO;
        }
    }
    return 0;
}

enum exit_code standard_output_end(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_OK;
    /* The errno of an earlier write is lost. Another one most likely fails for the same reason. */
    if (!errno && putchar('\n') != EOF)
        fflush(stdout);
    int number = errno;
    message("standard output: %s", number ? strerror(number) : "cannot be written");
    return EXIT_ENVIRONMENT;
}
