/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/git_commit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES     1024
#define REFS_BYTES_MAX (8u << 20) /* of packed-refs */
#define HEX_DIGITS     "0123456789abcdef"

/* At most `room` - 1 bytes of a regular file, terminated and without the newline at its end. */
static bool read_text(const char *folder, const char *name, char *text, size_t room)
{
    char path[PATH_MAX];
    struct stat status;
    ssize_t length = -1;
    int fd = snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path
                 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
                 : -1;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        length = read(fd, text, room - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    return length > 0;
}

/* Does the text begin with a commit, and does nothing or white space follow? */
static bool take_commit(const char *text, char commit[GIT_COMMIT_BYTES])
{
    size_t length = strspn(text, HEX_DIGITS);
    if ((length != 40 && length != 64) || (text[length] && text[length] != ' '))
        return false;
    memcpy(commit, text, length);
    commit[length] = '\0';
    return true;
}

/* `name`, or, if it is relative, what it is in `folder`. */
static bool resolve(const char *folder, const char *name, char path[PATH_MAX])
{
    int length = *name == '/' ? snprintf(path, PATH_MAX, "%s", name)
                              : snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return length > 0 && length < PATH_MAX;
}

/* Git's own folder of a working tree of which `folder` is the top: ".git", or what a file of that
 * name says. */
static bool find_git(const char *folder, char git[PATH_MAX])
{
    char line[LINE_BYTES];
    struct stat status;
    if (!resolve(folder, ".git", git) || stat(git, &status) < 0)
        return false;
    if (S_ISDIR(status.st_mode))
        return true;
    return read_text(folder, ".git", line, sizeof line) && strncmp(line, "gitdir: ", 8) == 0 &&
           resolve(folder, line + 8, git);
}

/* Of packed-refs, "COMMIT NAME" on each line. */
static bool find_packed(const char *git, const char *ref, char commit[GIT_COMMIT_BYTES])
{
    char path[PATH_MAX];
    FILE *file = resolve(git, "packed-refs", path) ? fopen(path, "re") : NULL;
    char line[LINE_BYTES];
    size_t left = REFS_BYTES_MAX;
    bool found = false;
    while (file && !found && left > sizeof line && fgets(line, sizeof line, file)) {
        left -= strlen(line);
        line[strcspn(line, "\n")] = '\0';
        const char *name = strchr(line, ' ');
        found = name && strcmp(name + 1, ref) == 0 && take_commit(line, commit);
    }
    if (file)
        fclose(file);
    return found;
}

/* What the branch is at: refs of a further working tree are those of the first one. */
static bool find_ref(const char *git, const char *ref, char commit[GIT_COMMIT_BYTES])
{
    char line[LINE_BYTES], common[PATH_MAX];
    if (strncmp(ref, "refs/", 5) != 0 || strstr(ref, ".."))
        return false;
    if (read_text(git, ref, line, sizeof line))
        return take_commit(line, commit);
    if (!read_text(git, "commondir", line, sizeof line))
        return find_packed(git, ref, commit);
    return resolve(git, line, common) &&
           (read_text(common, ref, line, sizeof line) ? take_commit(line, commit)
                                                      : find_packed(common, ref, commit));
}

bool git_commit_here(char commit[GIT_COMMIT_BYTES])
{
    char folder[PATH_MAX], git[PATH_MAX], line[LINE_BYTES];
    if (!getcwd(folder, sizeof folder) || *folder != '/')
        return false;
    while (!find_git(*folder ? folder : "/", git)) {
        if (!*folder)
            return false;
        *strrchr(folder, '/') = '\0';
    }
    if (!read_text(git, "HEAD", line, sizeof line))
        return false;
    return strncmp(line, "ref: ", 5) == 0 ? find_ref(git, line + 5, commit)
                                          : take_commit(line, commit);
}
