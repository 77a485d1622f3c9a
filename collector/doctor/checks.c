/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/checks.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

bool check_result_set(struct check_result *f, enum check_state state, const char *advice,
                      const char *format, ...)
{
    va_list list;
    f->state = state;
    va_start(list, format);
    vsnprintf(f->text, sizeof f->text, format, list);
    va_end(list);
    snprintf(f->advice, sizeof f->advice, "%s", advice ? advice : "");
    return true;
}

static _Noreturn void become(void (*work)(void *, void *), void *shared, void *context,
                             unsigned seconds)
{
    const struct rlimit no_core = {0, 0};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    signal(SIGALRM, SIG_DFL);
    alarm(seconds);
    work(shared, context);
    _exit(0); /* nothing that was loaded gets to run its handlers */
}

bool aside_run(void (*work)(void *result, void *context), void *result, size_t bytes, void *context,
               unsigned seconds)
{
    int status = -1;
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    memcpy(shared, result, bytes);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become(work, shared, context, seconds);
    if (pid > 0 && waitpid(pid, &status, 0) != pid)
        status = -1;
    memcpy(result, shared, bytes);
    munmap(shared, bytes);
    return status == 0;
}
