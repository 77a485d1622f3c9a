/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors FILE: calls, then closes every descriptor it does not know, and gives their numbers
 * to a file of its own; then it calls again, in new threads, from deep stacks. Prints what became
 * of the numbers and the file.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tiny_cudart.h"

enum { FIRST = 3, LAST = 40, DEEP = 200, THREADS = 8 };

static __attribute__((noinline)) unsigned go_down(unsigned depth)
{
    volatile char room[2048]; /* so that it goes through many pages */
    room[0] = (char)depth;
    if (depth == 0)
        cudaMemset(NULL, 0, 1);
    return depth ? go_down(depth - 1) + (unsigned)room[0] : 0;
}

static void *call(void *unused)
{
    for (unsigned depth = 0; depth < DEEP; depth += 40)
        go_down(depth);
    return unused;
}

int main(int argc, char **argv)
{
    static const char text[] = "what the program wrote";
    char found[64] = "";
    struct stat state;
    pthread_t thread;
    if (argc < 2)
        return 2;
    call(NULL);
    printf("next: %d\n", dup(STDOUT_FILENO));
    for (int fd = FIRST; fd <= LAST; fd++)
        close(fd);
    int first = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 4; i++)
        dup(first);
    if (write(first, text, sizeof text) != (ssize_t)sizeof text || lseek(first, 4, SEEK_SET) != 4)
        return 2;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, call, NULL) == 0)
            pthread_join(thread, NULL);
    printf("at %ld of", (long)lseek(first, 0, SEEK_CUR));
    ssize_t bytes = pread(first, found, sizeof found, 0);
    printf(" %zd: %s\n", bytes, found);
    for (int fd = FIRST; fd < FIRST + 5; fd++)
        printf("%d: %s\n", fd, fstat(fd, &state) == 0 ? "open" : "closed");
    return 3;
}
