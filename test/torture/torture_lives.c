/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many lives, one after another and some at a time, without the cost of starting each from Python:
 * torture_lives STATUS SECONDS SEED COUNT PROGRAM MODE PLUGIN. A life is PROGRAM MODE PLUGIN and a
 * seed, from SEED on. Of each that ends otherwise than with STATUS (minus the signal's number),
 * does not end in time, or says something on standard error: one line "SEED STATUS WORDS" on
 * standard output, STATUS "hang" for one that had to be ended. The variable TORTURE_PRELOAD is the
 * LD_PRELOAD of the lives, not of this program.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AT_A_TIME  4
#define SEED_LIMIT 0x80000000u
#define WORDS_MAX  300

#define ORPHANS_SECONDS 5

struct life {
    pid_t pid; /* 0: a free place */
    uint32_t seed;
    int words; /* its standard error */
    time_t deadline;
    int is_hanging;
};

static time_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static void begin(struct life *life, uint32_t seed, char **program, time_t seconds)
{
    char text[16];
    const char *preload = getenv("TORTURE_PRELOAD");
    snprintf(text, sizeof text, "%u", seed);
    life->seed = seed;
    life->is_hanging = 0;
    life->deadline = now() + seconds;
    life->pid = fork();
    if (life->pid < 0)
        abort();
    if (life->pid > 0)
        return;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid(); /* to be ended with its children, if it hangs */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(open("/dev/null", O_RDWR), STDOUT_FILENO);
    dup2(life->words, STDERR_FILENO);
    if (preload)
        setenv("LD_PRELOAD", preload, 1);
    execv(program[0], (char *[]){program[0], program[1], program[2], text, NULL});
    _exit(8);
}

static void end(struct life *life, int status, int expected)
{
    char words[WORDS_MAX + 1];
    int its = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    ssize_t length = pread(life->words, words, WORDS_MAX, 0);
    for (ssize_t i = 0; i < length; i++)
        if (words[i] == '\n')
            words[i] = '|';
    if (its != expected || length != 0 || life->is_hanging) {
        char number[16];
        snprintf(number, sizeof number, "%d", its);
        printf("%u %s %.*s\n", life->seed, life->is_hanging ? "hang" : number,
               length > 0 ? (int)length : 0, words);
    }
    if (ftruncate(life->words, 0) < 0 || lseek(life->words, 0, SEEK_SET) < 0)
        abort();
    life->pid = 0;
}

static void kill_children(void)
{
    char path[64];
    int pid;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "r");
    while (children && fscanf(children, "%d", &pid) == 1)
        kill(pid, SIGKILL);
    if (children)
        fclose(children);
}

/*
 * Children of lives that ended before them are ours now, and write logs and recordings yet. One
 * that was made while its parent was in exit() waits in its own for a lock of the C library's for
 * ever, with gpuprof or without: it is ended.
 */
static void wait_for_orphans(void)
{
    time_t deadline = now() + ORPHANS_SECONDS;
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) >= 0;) {
        if (pid == 0 && now() > deadline)
            kill_children();
        if (pid == 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

int main(int argc, char **argv)
{
    struct life lives[AT_A_TIME] = {0};
    sigset_t child;
    if (argc < 8)
        return 2;
    int expected = atoi(argv[1]);
    time_t seconds = atol(argv[2]);
    uint32_t seed = (uint32_t)strtoul(argv[3], NULL, 10);
    uint32_t count = (uint32_t)strtoul(argv[4], NULL, 10);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    for (int i = 0; i < AT_A_TIME; i++)
        if ((lives[i].words = memfd_create("words", MFD_CLOEXEC)) < 0)
            return 2;
    for (uint32_t begun = 0, ended = 0; ended < count;) {
        for (int i = 0; i < AT_A_TIME; i++)
            if (!lives[i].pid && begun < count)
                begin(&lives[i], (seed + begun++) % SEED_LIMIT, argv + 5, seconds);
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        for (int i = 0; i < AT_A_TIME && pid > 0; i++)
            if (lives[i].pid == pid)
                end(&lives[i], status, expected), ended++;
        for (int i = 0; i < AT_A_TIME && pid == 0; i++)
            if (lives[i].pid && !lives[i].is_hanging && now() > lives[i].deadline) {
                lives[i].is_hanging = 1;
                kill(-lives[i].pid, SIGKILL);
            }
        if (pid == 0)
            sigtimedwait(&child, NULL, &(struct timespec){.tv_nsec = 200000000});
    }
    wait_for_orphans();
    return 0;
}
