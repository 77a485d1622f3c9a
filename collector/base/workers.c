/* SPDX-License-Identifier: Apache-2.0 */
#include "base/workers.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/memory.h"

bool parallel_start(pthread_t *thread, void *(*work)(void *), void *context)
{
    sigset_t all, before;
    mallopt(M_ARENA_MAX, 1); /* one arena, so that threads can reuse each other's memory */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, work, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

unsigned parallel_processors(unsigned most)
{
    cpu_set_t usable;
    unsigned count = 2; /* if a set of CPU_SETSIZE is too small for this machine */
    if (sched_getaffinity(0, sizeof usable, &usable) == 0)
        count = (unsigned)CPU_COUNT(&usable);
    return most && most < count ? most : count;
}

#define WORDS_BYTES 4096

_Noreturn static void work_on(const struct workers *w, uint32_t index, pid_t parent, int to,
                              worker_fn *work, void *context)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_ENVIRONMENT); /* the parent died before prctl */
    for (uint32_t i = 0; i <= index; i++)
        close(w->list[i].from);
    dup2(w->list[index].words, STDERR_FILENO);
    _exit((int)work(context, index, to));
}

static bool start_one(struct workers *w, worker_fn *work, void *context)
{
    int ends[2];
    struct worker *worker = &w->list[w->count];
    pid_t parent = getpid();
    worker->words = memfd_create("gpuprof words", MFD_CLOEXEC);
    if (worker->words < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        close(worker->words);
        return false;
    }
    worker->from = ends[0];
    worker->pid = fork();
    if (worker->pid == 0)
        work_on(w, w->count, parent, ends[1], work, context);
    close(ends[1]);
    w->count++;
    return worker->pid > 0;
}

bool workers_start(struct workers *w, uint32_t count, worker_fn *work, void *context)
{
    assert(count <= WORKERS_MAX);
    *w = (struct workers){.list = memory_new(count, sizeof *w->list)};
    while (w->count < count && start_one(w, work, context))
        ;
    if (w->count == count && w->list[count - 1].pid > 0)
        return true;
    workers_end(w, WORKERS_UNWANTED);
    return false;
}

bool workers_write(int to, const void *data, size_t bytes)
{
    for (const char *next = data; bytes;) {
        ssize_t put = send(to, next, bytes, MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR)
            return false;
        next += put > 0 ? put : 0;
        bytes -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

bool workers_read(const struct workers *w, uint32_t index, void *data, size_t bytes)
{
    for (char *next = data; bytes;) {
        ssize_t got = read(w->list[index].from, next, bytes);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        next += got > 0 ? got : 0;
        bytes -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* Prints the worker's stored messages. Returns false if there are none. */
static bool repeat_words(const struct worker *worker)
{
    char text[WORDS_BYTES];
    uint64_t at = 0;
    ssize_t got;
    while ((got = file_read_at(worker->words, at, text, sizeof text)) > 0 &&
           file_write_next(STDERR_FILENO, text, (size_t)got) == 0)
        at += (uint64_t)got;
    return at > 0;
}

/* Returns the exit code of a wait status. */
static enum exit_code code_of(int status)
{
    if (WIFEXITED(status))
        return (enum exit_code)WEXITSTATUS(status);
    message("a worker process of -j was killed (%s)%s", strsignal(WTERMSIG(status)),
            WTERMSIG(status) == SIGKILL ? "; a lower -j uses less memory" : "");
    return EXIT_ENVIRONMENT;
}

enum exit_code workers_end(struct workers *w, uint32_t how)
{
    enum exit_code code = EXIT_OK;
    for (uint32_t i = 0; i < w->count; i++)
        close(w->list[i].from);
    for (uint32_t i = 0; i < w->count; i++) {
        struct worker *worker = &w->list[i];
        int status = 0;
        while (worker->pid > 0 && waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
            ;
        bool is_reported = how == WORKERS_DONE ? code == EXIT_OK || status == 0 : i == how;
        bool has_said = is_reported && repeat_words(worker);
        if (is_reported && code == EXIT_OK)
            code = code_of(status);
        if (is_reported && !has_said && WIFEXITED(status) &&
            WEXITSTATUS(status) == EXIT_ENVIRONMENT)
            message(
                "a worker process of -j failed, and ulimit -f kept it from saying why; raise it");
        close(worker->words);
    }
    free(w->list);
    *w = (struct workers){0};
    return code;
}

static _Noreturn void become(void (*work)(void *, void *), void *shared, void *context,
                             double seconds)
{
    const struct rlimit no_core = {0, 0};
    struct itimerval limit = {.it_value.tv_sec = (time_t)seconds};
    limit.it_value.tv_usec = (suseconds_t)((seconds - (double)limit.it_value.tv_sec) * 1e6);
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    setitimer(ITIMER_REAL, &limit, NULL);
    work(shared, context);
    _exit(0); /* without the exit handlers of loaded libraries */
}

bool aside_run(void (*work)(void *result, void *context), void *result, size_t bytes, void *context,
               double seconds)
{
    int status = -1;
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    memcpy(shared, result, bytes);
    pid_t pid = fork();
    if (pid == 0)
        become(work, shared, context, seconds);
    if (pid > 0 && waitpid(pid, &status, 0) != pid)
        status = -1;
    memcpy(result, shared, bytes);
    munmap(shared, bytes);
    return status == 0;
}
