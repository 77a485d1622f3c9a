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

#define START_BYTES   65536       /* stack that a start may need */
#define START_WAIT_NS 5000000000u /* longest wait for another thread's start */

static uint32_t process_id(void)
{
    /* not cached, so that it is right in the child of a raw clone */
    return (uint32_t)syscall(SYS_getpid);
}

/* The initial working directory. "": not known, or all our paths are absolute, as under `gpuprof
 * run`. */
static char first_folder[SETTING_TEXT_BYTES_MAX + 1];

static void remember_folder(void)
{
    const char *out = getenv(setting_infos[SETTING_OUT].variable);
    const char *live = getenv(setting_infos[SETTING_LIVE].variable);
    bool is_absolute = out && *out == '/' && (!live || !*live || *live == '/');
    if (!is_absolute && !getcwd(first_folder, sizeof first_folder))
        first_folder[0] = '\0';
}

/* The program may change its working directory; the place of its data must not change with it. */
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
        /* Copied, since the program may change its environment. */
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

/* References to functions that only glibc has are weak, so that musl's loader does not refuse its
 * programs when a recorded shell starts one. There the library does nothing. */
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static bool libc_is_strange(void)
{
    return !gnu_get_libc_version;
}

/*
 * Called by the loader, or at the first call: another library's constructor may call CUDA before.
 */
__attribute__((constructor)) static void load(void)
{
    static _Atomic uint32_t loaded;
    if (atomic_exchange(&loaded, 1))
        return;
    if (getauxval(AT_SECURE) || libc_is_strange())
        return; /* AT_SECURE, that is setuid or similar: do nothing */
    if (madvise(&fork_page, sizeof fork_page, MADV_WIPEONFORK) < 0) {
        gp.off_reason = errno; /* reported at the first CUDA call, not in every shell */
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

/* In the child of a fork: inherited state belongs to the parent. Its only thread is this one, so no
 * other uses the state. */
static void leave_parent(void)
{
    FEATURES_DO(fork_child, ());
    say_reset();
}

/* Creates what the recording needs; on failure removes it again. */
static bool start_create(void)
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

static bool start_start(const sigset_t *mask)
{
    sanitizer_bypass();
    read_settings();
    ticks_calibrate();
    uint64_t epoch = gp.next_epoch++; /* set before the writer starts, which reads it */
    gp.writer.program_mask = *mask;
    if (!start_create())
        return false;
    atomic_fetch_or(&fork_page.recording, epoch);
    /* it could not write, and has ended the recording before it began */
    if (!atomic_load(&gp.writer.running))
        start_end();
    return true;
}

/* Called by the one thread that may start it; in the child of a fork, again. Wakes the others. */
static uint32_t start_alone(uint32_t pid, const sigset_t *mask)
{
    if (gp.used)
        leave_parent();
    gp.used = true;
    atomic_store(&fork_page.owner, pid);
    uint32_t phase = START_RUNNING;
    if (!start_start(mask))
        atomic_store(&fork_page.phase, START_FAILED);
    else
        /* unless it has ended */
        atomic_compare_exchange_strong(&fork_page.phase, &phase, START_DONE);
    phase = atomic_load(&fork_page.phase);
    futex_wake_all(&fork_page.phase);
    if (phase == START_DONE) {
        FEATURES_DO(started, ());
        writer_wake(); /* it records what walks stacks; a kill may come soon */
    }
    return phase;
}

/*
 * Starts the recording unless another thread does or has; returns the resulting phase. The
 * program's handlers do not run meanwhile: they might call CUDA, or never return, and then nobody
 * would be woken. A file that exceeds RLIMIT_FSIZE is an error for us, and does not end the
 * program.
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
    /* A signal handler's stack may be too small for a start: the next call does it. */
    size_t handlers_bytes = phase == START_IDLE ? signal_stack_bytes() : 0;
    if (handlers_bytes && handlers_bytes < START_BYTES)
        return false;
    if (phase == START_IDLE)
        phase = start_undisturbed(pid);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = now_ns + START_WAIT_NS;
    /* Waits in vain only once: the start may need this thread to go on. A signal ends the wait
     * early. */
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
