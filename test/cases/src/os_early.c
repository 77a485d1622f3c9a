/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library whose constructor waits, before any of ours runs, in calls that are hooked. Linked
 * with os_life.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int early_wrong(void);

static int wrong;

__attribute__((constructor)) static void early(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    const struct timespec past = {1, 0}, nap = {.tv_nsec = 1000000};
    char byte = 0;
    int p[2];
    sem_t semaphore;
    void *memory = mmap(NULL, 1 << 21, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    wrong += memory == MAP_FAILED || munmap(memory, 1 << 21) != 0;
    wrong += syscall(SYS_getpid) != getpid();
    wrong += pthread_mutex_lock(&mutex) != 0;
    wrong += pthread_cond_timedwait(&condition, &mutex, &past) != ETIMEDOUT;
    wrong += pthread_cond_signal(&condition) != 0 || pthread_mutex_unlock(&mutex) != 0;
    wrong += pipe(p) != 0 || write(p[1], "e", 1) != 1 || read(p[0], &byte, 1) != 1 || byte != 'e';
    wrong += sem_init(&semaphore, 0, 1) != 0 || sem_wait(&semaphore) != 0;
    errno = 0;
    wrong += open("/nonexistent", O_RDONLY) != -1 || errno != ENOENT;
    wrong += nanosleep(&nap, NULL) != 0;
}

int early_wrong(void)
{
    return wrong;
}
