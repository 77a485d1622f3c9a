/* SPDX-License-Identifier: Apache-2.0 */
/* peak FILE COMMAND...: runs it and writes into FILE how much memory it had at most (KiB) and its
 * seconds of CPU. A small program does that because the kernel counts into a process's peak what it
 * had before execve: a child of Python has all that Python has. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    struct rusage usage;
    int status;
    if (argc < 3)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    FILE *file = fopen(argv[1], "w");
    if (!file || child < 0 || wait4(child, &status, 0, &usage) != child)
        return 126;
    fprintf(file, "%ld %f\n", usage.ru_maxrss, seconds(usage.ru_utime) + seconds(usage.ru_stime));
    if (fclose(file) != 0)
        return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
