/* SPDX-License-Identifier: Apache-2.0 */
#include "base/program_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <unistd.h>

/* The parts of a line in /proc/self/maps. */
enum part { PART_LOW, PART_HIGH, PART_FURTHER, PART_PATH };

struct line {
    enum part part;
    uint64_t ends[2]; /* low and high address of the mapping */
};

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Processes the next character of the line. */
static void take_character(struct line *l, char c)
{
    int digit = digit_of(c);
    if (c == '\n')
        *l = (struct line){.part = PART_LOW};
    else if (l->part <= PART_HIGH && digit >= 0)
        l->ends[l->part] = l->ends[l->part] << 4 | (unsigned)digit;
    else if (l->part <= PART_HIGH || c == '/')
        l->part = l->part <= PART_HIGH ? l->part + 1 : PART_PATH;
}

/* Finds the file mapped at this address. */
static size_t file_at(uint64_t address, char *text, size_t bytes)
{
    char piece[512]; /* small, since we may run on a small stack */
    struct line line = {.part = PART_LOW};
    size_t length = 0;
    ssize_t got;
    bool is_over = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !is_over && (got = read(fd, piece, sizeof piece)) > 0) {
        for (ssize_t i = 0; i < got && !is_over; i++) {
            is_over = length && piece[i] == '\n';
            take_character(&line, piece[i]);
            if (line.part == PART_PATH && address >= line.ends[0] && address < line.ends[1] &&
                length < bytes)
                text[length++] = piece[i];
        }
    }
    if (fd >= 0)
        close(fd);
    return length;
}

size_t program_file(char *text, size_t bytes)
{
    /* The kernel ran the loader itself, with the program as its argument; the loader has since
     * corrected these entries. */
    if (getauxval(AT_BASE) == 0)
        return file_at(getauxval(AT_PHDR), text, bytes);
    ssize_t got = readlink("/proc/self/exe", text, bytes);
    return got > 0 ? (size_t)got : 0;
}
