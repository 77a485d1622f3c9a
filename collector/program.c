/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PROGRAM_SEGMENTS_MAX 64

#if defined(__x86_64__)
#define PROGRAM_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define PROGRAM_MACHINE EM_AARCH64
#else
#error "gpuprof knows x86_64 and aarch64 only"
#endif

/* Static: no segment names an interpreter. Anything unreadable or odd counts as dynamic. */
static const char *elf_obstacle(int fd)
{
    Elf64_Ehdr elf;
    if (pread(fd, &elf, sizeof elf, 0) != (ssize_t)sizeof elf ||
        memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
        return NULL; /* a script, perhaps */
    if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != PROGRAM_MACHINE)
        return "built for another processor or word size";
    if (elf.e_phentsize != sizeof(Elf64_Phdr) || elf.e_phnum > PROGRAM_SEGMENTS_MAX)
        return NULL;
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        Elf64_Phdr segment;
        off_t offset = (off_t)(elf.e_phoff + i * sizeof segment);
        if (pread(fd, &segment, sizeof segment, offset) != (ssize_t)sizeof segment ||
            segment.p_type == PT_INTERP)
            return NULL;
    }
    return "statically linked";
}

static const char *find_obstacle(const char *path, const struct stat *st)
{
    if ((st->st_mode & S_ISUID) && st->st_uid != geteuid())
        return "setuid";
    if ((st->st_mode & S_ISGID) && (st->st_mode & S_IXGRP) && st->st_gid != getegid())
        return "setgid";
    if (geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
        return "has file capabilities";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL; /* executable but not readable: leave it to the kernel */
    const char *obstacle = elf_obstacle(fd);
    close(fd);
    return obstacle;
}

/* 0 if program->path can be executed, else an errno. */
static int try_path(struct program *program)
{
    struct stat st;
    if (stat(program->path, &st) != 0)
        return errno;
    if (!S_ISREG(st.st_mode) || access(program->path, X_OK) != 0)
        return EACCES;
    program->obstacle = find_obstacle(program->path, &st);
    return 0;
}

static bool set_path(struct program *program, const char *folder, size_t length, const char *name)
{
    int n = snprintf(program->path, sizeof program->path, "%.*s%s%s", (int)length, folder,
                     length ? "/" : "", name);
    return n > 0 && (size_t)n < sizeof program->path;
}

int program_find(struct program *program, const char *name)
{
    int error = ENOENT;
    if (!*name)
        return ENOENT;
    if (strchr(name, '/'))
        return set_path(program, "", 0, name) ? try_path(program) : ENAMETOOLONG;
    const char *folders = getenv("PATH");
    if (!folders)
        folders = "/bin:/usr/bin"; /* what the C library's execvp does */
    for (;;) {
        size_t length = strcspn(folders, ":");
        if (length < PATH_MAX && set_path(program, folders, length, name)) {
            int failed = try_path(program);
            if (failed == 0)
                return 0;
            /* A folder of PATH that we may not enter says nothing about the program. */
            if (failed == EACCES && access(program->path, F_OK) == 0)
                error = EACCES;
        }
        if (folders[length] == '\0')
            return error;
        folders += length + 1;
    }
}
