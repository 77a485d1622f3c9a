/* SPDX-License-Identifier: Apache-2.0 */
#include "record/start.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/sanitizer.h"
#include "base/say.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "record/feature.h"
#include "record/state.h"
#include "record/wake.h"

#define START_BYTES   65536       /* of stack, which a start may take */
#define START_WAIT_NS 5000000000u /* for another thread's start */

static uint32_t process_id(void)
{
    return (uint32_t)syscall(SYS_getpid); /* not cached: right in the child of a raw clone */
}

/* Where the process began; "": not known, or every path of ours is absolute, as under `run`. */
static char first_folder[SETTING_TEXT_BYTES_MAX + 1];

static void remember_folder(void)
{
    const char *out = getenv(setting_infos[SETTING_OUT].variable);
    const char *live = getenv(setting_infos[SETTING_LIVE].variable);
    bool is_absolute = out && *out == '/' && (!live || !*live || *live == '/');
    if (!is_absolute && !getcwd(first_folder, sizeof first_folder))
        first_folder[0] = '\0';
}

/* The program may change its folder; where its data goes must not change with it. */
static void make_absolute(enum setting_index index)
{
    char cwd[sizeof first_folder];
    const char *text = gp.settings.texts[index];
    if (text[0] == '/' || !first_folder[0])
        return;
    strcpy(cwd, first_folder);
    size_t head = cwd[1] ? strlen(cwd) : 0, tail = strlen(text);
    if (head + 1 + tail >= sizeof cwd)
        return;
    cwd[head] = '/';
    memcpy(cwd + head + 1, text, tail + 1);
    memcpy(gp.setting_texts[index], cwd, head + 1 + tail + 1);
    gp.settings.texts[index] = gp.setting_texts[index];
}

static void read_settings(void)
{
    settings_init(&gp.settings);
    for (int i = 0; i < SETTING_COUNT; i++) {
        const char *text = getenv(setting_infos[i].variable);
        char reason[200];
        if (!text || !*text)
            continue;
        /* Kept as a copy: the program may change its environment. */
        strncpy(gp.setting_texts[i], text, SETTING_TEXT_BYTES_MAX);
        bool whole = strlen(text) <= SETTING_TEXT_BYTES_MAX;
        const char *standard = setting_infos[i].default_value;
        if (settings_set(&gp.settings, (enum setting_index)i, whole ? gp.setting_texts[i] : text,
                         reason, sizeof reason) < 0)
            say(SAY_SETTING, *standard ? "%s: %s; its default %s is used" : "%s: %s; it is ignored",
                setting_infos[i].variable, reason, standard);
    }
    gp.nested = gp.settings.numbers[SETTING_NESTED] != 0;
    make_absolute(SETTING_OUT);
    if (gp.settings.texts[SETTING_LIVE][0])
        make_absolute(SETTING_LIVE);
}

uint64_t start_setting(enum setting_index index)
{
    struct settings settings;
    char reason[200];
    const char *text = getenv(setting_infos[index].variable);
    settings_init(&settings);
    if (text && *text)
        settings_set(&settings, index, text, reason, sizeof reason);
    return settings.numbers[index];
}

/*
 * Of the C library's functions that only glibc has we refer to all weakly, so that musl's loader
 * does not refuse its programs when a shell that is recorded starts one. Nothing is done in them.
 */
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static bool libc_is_strange(void)
{
    return !gnu_get_libc_version;
}

/* By the loader, or at the first call: another library's constructor may call CUDA before. */
__attribute__((constructor)) static void load(void)
{
    static _Atomic uint32_t loaded;
    if (atomic_exchange(&loaded, 1))
        return;
    if (getauxval(AT_SECURE) || libc_is_strange())
        return; /* AT_SECURE, somebody else's rights: do nothing at all */
    if (madvise(&fork_page, sizeof fork_page, MADV_WIPEONFORK) < 0) {
        gp.off_reason = errno; /* said at the first CUDA call, not in every shell */
        return;
    }
    ticks_load();
    atomic_store(&fork_page.owner, process_id());
    gp.off = false;
    remember_folder();
    FEATURES_DO(load, ());
}

bool start_is_possible(void)
{
    if (gp.off)
        load();
    return !gp.off;
}

/*
 * The child of a fork: what it inherited belongs to its parent. Its only thread is here, so nobody
 * else uses any of it.
 */
static void leave_parent(void)
{
    FEATURES_DO(fork_child, ());
    say_reset();
}

/* Makes what the recording needs, or takes away again what it had. */
static bool create(void)
{
    for (unsigned i = 0; i < feature_count; i++) {
        if (features[i].create && !features[i].create()) {
            while (i-- > 0)
                if (features[i].remove)
                    features[i].remove();
            return false;
        }
        if (features[i].start)
            features[i].start();
    }
    return true;
}

static bool start(const sigset_t *mask)
{
    sanitizer_bypass();
    read_settings();
    ticks_calibrate();
    uint64_t epoch = gp.next_epoch++; /* before the writer, which looks at it */
    gp.writer.program_mask = *mask;
    if (!create())
        return false;
    atomic_fetch_or(&fork_page.recording, epoch);
    if (!atomic_load(&gp.writer.running)) /* it could not write, and ended what had not begun */
        start_end();
    return true;
}

/* The only one that may; in the child of a fork, anew. Tells the others. */
static uint32_t start_alone(uint32_t pid, const sigset_t *mask)
{
    if (gp.used)
        leave_parent();
    gp.used = true;
    atomic_store(&fork_page.owner, pid);
    uint32_t phase = START_RUNNING;
    if (!start(mask))
        atomic_store(&fork_page.phase, START_FAILED);
    else
        atomic_compare_exchange_strong(&fork_page.phase, &phase, START_DONE); /* or it has ended */
    phase = atomic_load(&fork_page.phase);
    futex_wake_all(&fork_page.phase);
    if (phase == START_DONE) {
        FEATURES_DO(started, ());
        writer_wake(); /* it tells what walks stacks; a kill may come soon */
    }
    return phase;
}

/*
 * Starts it, unless somebody else does or has: the phase that it is in. No handler of the program's
 * runs in the middle of it (it might call CUDA, or never return: nobody would ever be told), and a
 * file that grows beyond RLIMIT_FSIZE is an error to us, not the end of the program.
 */
static uint32_t start_undisturbed(uint32_t pid)
{
    sigset_t all, old, too_large;
    uint32_t phase = START_IDLE;
    sigfillset(&all);
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (atomic_compare_exchange_strong(&fork_page.phase, &phase, START_RUNNING))
        phase = start_alone(pid, &old);
    if (!sigismember(&old, SIGXFSZ))
        drop_pending(&too_large);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return phase;
}

bool start_load_settings(void)
{
    load();
    if (!gp.off && epoch_now() == EPOCH_NONE)
        read_settings();
    return !gp.off;
}

bool start_recording(void)
{
    load();
    if (gp.off) {
        if (gp.off_reason)
            say(SAY_START,
                "recording is off: madvise(MADV_WIPEONFORK) failed, which needs Linux 4.14 or "
                "newer: %s",
                error_text(gp.off_reason));
        return false;
    }
    struct fork_page *page = &fork_page;
    uint32_t pid = process_id();
    uint32_t owner = atomic_load(&page->owner);
    if (owner != 0 && owner != pid)
        return false;
    uint32_t phase = atomic_load(&page->phase);
    /* A signal handler's stack may have no room for a start: the next call makes it. */
    size_t handlers_bytes = phase == START_IDLE ? signal_stack_bytes() : 0;
    if (handlers_bytes && handlers_bytes < START_BYTES)
        return false;
    if (phase == START_IDLE)
        phase = start_undisturbed(pid);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = now_ns + START_WAIT_NS;
    /* Once in vain, and no more: what holds up the start may need this very thread to go on. A
     * signal ends a wait early. */
    while (phase == START_RUNNING && now_ns < end_ns && !atomic_load(&page->waited)) {
        futex_wait(&page->phase, START_RUNNING, end_ns - now_ns);
        phase = atomic_load(&page->phase);
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
    if (phase == START_RUNNING)
        atomic_store(&page->waited, 1);
    return phase == START_DONE;
}

void start_end(void)
{
    atomic_store(&fork_page.phase, START_FAILED);
    atomic_fetch_and(&fork_page.recording, ~(uint64_t)EPOCH_MASK);
}
