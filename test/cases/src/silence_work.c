/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silence_work COUNT US: calls, each after so long without one; then in the child of a fork, and in
 * many threads one after another. Prints how many descriptors of schedstat files there were in each
 * of the three, and the lowest of their numbers, under which there is another file at last.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tiny_cudart.h"

enum { THREADS = 80, SILENT_US = 2000 };

/* Programs close what they do not know. The file that gets the number looks like the old one. */
static void take_over(int fd)
{
    FILE *mine = tmpfile();
    fprintf(mine, "1 %d000000000000 3\n", fd);
    fflush(mine);
    dup2(fileno(mine), fd);
}

/* Returns the lowest. */
static int say(const char *who)
{
    char path[280], target[280];
    int count = 0, lowest = 9999;
    DIR *all = opendir("/proc/self/fd");
    for (struct dirent *one; all && (one = readdir(all));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", one->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (!strstr(target, "schedstat"))
            continue;
        count++;
        lowest = atoi(one->d_name) < lowest ? atoi(one->d_name) : lowest;
    }
    closedir(all);
    printf("%s: %d from %d\n", who, count, count ? lowest : 0);
    fflush(stdout);
    return lowest;
}

static void *call(void *count)
{
    for (long i = 0; i < (long)count; i++)
        cudaMemset(NULL, 0, 1);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int count = argc > 2 ? atoi(argv[1]) : 0, us = argc > 2 ? atoi(argv[2]) : 0;
    call((void *)1);
    for (int i = 0; i < count; i++) {
        usleep((useconds_t)us);
        call((void *)1);
    }
    int lowest = say("program");
    pid_t child = fork();
    if (child == 0) {
        call((void *)1);
        usleep(SILENT_US);
        call((void *)1);
        say("child");
        return 0;
    }
    waitpid(child, NULL, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, call, (void *)2);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    say("threads");
    take_over(lowest);
    usleep(SILENT_US);
    call((void *)1);
    return 3;
}
