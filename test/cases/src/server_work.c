/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_work fork|spawn WORKERS: as a server of models is built. The parent never calls CUDA; it
 * passes each line of its standard input to all workers, or, of "@2 LINE", to that one, waits for
 * their answers, and prints how many have answered. A worker does what the line says:
 *
 *   NUMBER      cudaMemset of 100 times as many bytes and one more for each worker before it
 *   start stop  cudaProfilerStart, cudaProfilerStop: their result must be 0
 *   step N      gpuprof_step(N)
 *   (NAME )     a range of gpuprof.h's
 *
 * At the end of its input the parent ends the workers as servers do, by a SIGTERM, and waits.
 */
#include "gpuprof.h"

#include <ctype.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime_api.h"

enum { WORKERS_MAX = 16 };

extern char **environ;

static void obey(const char *line, size_t index)
{
    static void *buffer;
    int status = 0;
    if (isdigit((unsigned char)*line))
        status = (!buffer && cudaMalloc(&buffer, 1 << 20)) ||
                 cudaMemset(buffer, 0, strtoul(line, NULL, 10) * 100 + index);
    else if (strcmp(line, "start") == 0)
        status = cudaProfilerStart();
    else if (strcmp(line, "stop") == 0)
        status = cudaProfilerStop();
    else if (strncmp(line, "step ", 5) == 0)
        gpuprof_step(strtoul(line + 5, NULL, 10));
    else if (*line == '(')
        gpuprof_range_push(line + 1);
    else if (*line == ')')
        gpuprof_range_pop();
    if (status)
        exit(9);
}

static void serve(FILE *parent, size_t index)
{
    char line[64];
    while (fgets(line, sizeof line, parent)) {
        line[strcspn(line, "\n")] = '\0';
        obey(line, index);
        fputc('\n', parent);
        fflush(parent);
    }
    exit(0);
}

static pid_t begin(const char *how, const char *self, int fd, size_t index)
{
    char of_fd[16], of_index[16];
    char *words[] = {(char *)self, "worker", of_fd, of_index, NULL};
    snprintf(of_fd, sizeof of_fd, "%d", fd);
    snprintf(of_index, sizeof of_index, "%zu", index);
    pid_t pid = 0;
    if (strcmp(how, "spawn") == 0)
        return posix_spawn(&pid, self, NULL, NULL, words, environ) ? -1 : pid;
    pid = fork();
    if (pid == 0)
        serve(fdopen(fd, "r+"), index);
    return pid;
}

int main(int argc, char **argv)
{
    FILE *workers[WORKERS_MAX];
    pid_t pids[WORKERS_MAX];
    char line[64];
    if (argc == 4)
        serve(fdopen(atoi(argv[2]), "r+"), strtoul(argv[3], NULL, 10));
    size_t count = strtoul(argv[2], NULL, 10);
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < count; i++) {
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
            return 7;
        pids[i] = begin(argv[1], argv[0], fds[1], i);
        close(fds[1]);
        workers[i] = fdopen(fds[0], "r+");
    }
    while (fgets(line, sizeof line, stdin)) {
        size_t answers = 0, first = *line == '@' ? strtoul(line + 1, NULL, 10) : 0;
        size_t end = *line == '@' ? first + 1 : count;
        for (size_t i = first; i < end; i++) {
            fputs(*line == '@' ? strchr(line, ' ') + 1 : line, workers[i]);
            fflush(workers[i]);
        }
        for (size_t i = first; i < end; i++)
            answers += fgetc(workers[i]) == '\n';
        printf("%zu\n", answers);
        fflush(stdout);
    }
    for (size_t i = 0; i < count; i++)
        kill(pids[i], SIGTERM);
    for (size_t i = 0; i < count; i++)
        waitpid(pids[i], NULL, 0);
    return 0;
}
