/* SPDX-License-Identifier: Apache-2.0 */
#include "output/new_folder.h"

#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

/* What somebody ignores, as nohup does, is to be ignored. */
static void find_ends(sigset_t *ends)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction now;
    sigemptyset(ends);
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaddset(ends, numbers[i]);
}

int new_folder_make(struct new_folder *f, const char *path)
{
    *f = (struct new_folder){.path = path};
    find_ends(&f->ends);
    pthread_sigmask(SIG_BLOCK, &f->ends, &f->before);
    f->is_made = mkdir(path, 0777) == 0;
    if (f->is_made)
        return 0;
    pthread_sigmask(SIG_SETMASK, &f->before, NULL);
    return -1;
}

static void *wait_for_end(void *context)
{
    const struct new_folder *f = context;
    int number;
    if (sigwait(&f->ends, &number) != 0)
        return NULL;
    rmdir(f->path);
    pthread_sigmask(SIG_UNBLOCK, &f->ends, NULL);
    raise(number); /* whoever waits for us is to see what ended us */
    return NULL;
}

void new_folder_watch(struct new_folder *f)
{
    if (!f->is_made)
        return;
    f->is_watched = pthread_create(&f->thread, NULL, wait_for_end, f) == 0;
    if (!f->is_watched)
        pthread_sigmask(SIG_SETMASK, &f->before, NULL);
}

void new_folder_leave(struct new_folder *f)
{
    if (f->is_made)
        pthread_sigmask(SIG_SETMASK, &f->before, NULL);
    f->is_made = false;
}

void new_folder_end(struct new_folder *f)
{
    if (!f->is_made)
        return;
    if (f->is_watched) {
        pthread_cancel(f->thread);
        pthread_join(f->thread, NULL);
    }
    rmdir(f->path);
    pthread_sigmask(SIG_SETMASK, &f->before, NULL);
}
