/* SPDX-License-Identifier: Apache-2.0 */
/*
 * property_work WORD...: does what each word says. cCOUNT: so many calls. uNUMBER: setgroups,
 * setgid and setuid to that number; as other users than root, to its own. d: chdir to /. f: the
 * policy SCHED_FIFO, where allowed. p: a thread that pins itself to one processor and calls. m:
 * mlockall for memory to come. t: a line of each thread: its name, real user and group, policy and
 * processors. l: how many KiB of memory are locked. r: removes the data folder; rPATH: renames it
 * to that. sMS: a sleep.
 */
#include <dirent.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_runtime_api.h"

static void call(long count)
{
    void *memory;
    if (cudaMalloc(&memory, 4096))
        exit(4);
    for (long i = 0; i < count; i++)
        if (cudaMemset(memory, 0, 64))
            exit(4);
}

static bool change_user(unsigned number)
{
    if (getuid())
        return setgid(getgid()) == 0 && setuid(getuid()) == 0;
    return setgroups(0, NULL) == 0 && setgid(number) == 0 && setuid(number) == 0;
}

static void *pinned(void *unused)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one))
        exit(5);
    call(1);
    return unused;
}

static bool call_pinned(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, pinned, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

/* The value of a line of the file; "" if there is none. */
static void read_value(const char *path, const char *label, char *value, size_t bytes)
{
    char line[400];
    FILE *file = fopen(path, "r");
    *value = '\0';
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, label, strlen(label)) == 0)
            snprintf(value, bytes, "%.*s", (int)strcspn(line + strlen(label), "\n"),
                     line + strlen(label));
    if (file)
        fclose(file);
}

static bool tell_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    while (tasks && (task = readdir(tasks))) {
        char path[300], name[40], uid[100], gid[100], cpus[2000];
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        read_value(path, "Name:\t", name, sizeof name);
        read_value(path, "Uid:\t", uid, sizeof uid);
        read_value(path, "Gid:\t", gid, sizeof gid);
        read_value(path, "Cpus_allowed_list:\t", cpus, sizeof cpus);
        printf("%s %d %d %d %s\n", name, atoi(uid), atoi(gid),
               sched_getscheduler(atoi(task->d_name)), cpus);
    }
    return tasks && closedir(tasks) == 0;
}

static bool tell_locked(void)
{
    char value[100];
    read_value("/proc/self/smaps_rollup", "Locked:", value, sizeof value);
    return printf("locked %d\n", atoi(value)) > 0;
}

static bool lose_folder(const char *new_path)
{
    const char *folder = getenv("GPUPROF_OUT");
    char command[1000];
    if (*new_path)
        return rename(folder, new_path) == 0;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0;
}

static bool use_fifo(void)
{
    const struct sched_param priority = {.sched_priority = 1};
    return sched_setscheduler(0, SCHED_FIFO, &priority) == 0 ||
           sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}) == 0;
}

static bool do_word(const char *word)
{
    const char *rest = word + 1;
    switch (*word) {
    case 'c': call(atol(rest)); return true;
    case 'u': return change_user((unsigned)atoi(rest));
    case 'd': return chdir("/") == 0;
    case 'f': return use_fifo();
    case 'p': return call_pinned();
    case 'm': return mlockall(MCL_FUTURE) == 0;
    case 't': return tell_threads();
    case 'l': return tell_locked();
    case 'r': return lose_folder(rest);
    case 's': return usleep((unsigned)atoi(rest) * 1000) == 0;
    default: return false;
    }
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++)
        if (!do_word(argv[i])) {
            perror(argv[i]);
            return 1;
        }
    return 3;
}
