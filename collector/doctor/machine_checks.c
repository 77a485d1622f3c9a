/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the machine, which may be a container, and of what it takes to record more than calls:
 * samples, waits, calls of the C library. */
#include "base/file_at.h"
#include "base/text.h"
#include "doctor/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "sample_signals.h"

#define KERNEL_MAJOR 4 /* MADV_WIPEONFORK */
#define KERNEL_MINOR 14
#define TMPFS_MAGIC  0x01021994
#define RAMFS_MAGIC  0x858458f6

/* Writes `path` below the root to `text`. */
static const char *rooted(const struct target *p, const char *path, char text[static PATH_MAX])
{
    snprintf(text, PATH_MAX, "%s%s", p->root, path);
    return text;
}

bool check_library(const struct target *p, struct check_result *f)
{
    struct statvfs fs;
    if (p->library_reason[0])
        return broken(f, "reinstall gpuprof with all its files in one folder", "%s",
                      p->library_reason);
    if (statvfs(p->library, &fs) == 0 && fs.f_flag & ST_NOEXEC)
        return broken(f, "install gpuprof on another file system, or remount this one with exec",
                      "no program can load %s: its file system is mounted noexec", p->library);
    return fine(f, "%s can be preloaded", p->library);
}

bool check_settings(const struct target *p, struct check_result *f)
{
    return p->wrong_setting[0] &&
           limited(f, "correct it; until then gpuprof uses the default", "%s", p->wrong_setting);
}

bool check_kernel(const struct target *p, struct check_result *f)
{
    char path[PATH_MAX], release[64] = "";
    unsigned major = 0, minor = 0;
    struct utsname name;
    if (!file_first_line(rooted(p, "/proc/sys/kernel/osrelease", path), release, sizeof release) &&
        uname(&name) == 0) /* no /proc */
        snprintf(release, sizeof release, "%.63s", name.release);
    if (sscanf(release, "%u.%u", &major, &minor) == 2 &&
        (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR)))
        return broken(f, "use a machine with kernel 4.14 or newer", "Linux %s is older than 4.14",
                      release);
    return fine(f, "Linux %s", release[0] ? release : "of unknown version");
}

/* Always fine: the collector does not start with an older glibc than it was built for. */
bool check_libc(const struct target *p, struct check_result *f)
{
    (void)p;
    return fine(f, "glibc %s", gnu_get_libc_version());
}

/* Python frames are read from the process's own memory, which seccomp may forbid. */
bool check_memory(const struct target *p, struct check_result *f)
{
    char path[PATH_MAX];
    int from = 1, to = 0;
    struct iovec local = {&to, sizeof to}, remote = {&from, sizeof from};
    if (!p->root[0] && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)sizeof to)
        return fine(f, "Python frames can be read");
    int fd = open(rooted(p, "/proc/self/mem", path), O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    if (fd >= 0)
        return fine(f, "Python frames can be read through /proc/self/mem");
    return limited(f, "allow process_vm_readv in the container (docker run --cap-add=SYS_PTRACE)",
                   "stacks will have no Python frames: process_vm_readv and /proc/self/mem are "
                   "both forbidden here");
}

bool check_live_folder(const struct target *p, struct check_result *f)
{
    char path[PATH_MAX], room[UNIT_TEXT_BYTES], wanted[UNIT_TEXT_BYTES];
    const char *setting = p->settings.texts[SETTING_LIVE];
    const char *folder = setting[0] ? setting : rooted(p, "/dev/shm", path);
    uint64_t buffer = p->settings.numbers[SETTING_BUFFER];
    struct statfs fs;
    if (statfs(folder, &fs) != 0 || access(folder, W_OK | X_OK) != 0)
        return limited(f, "name a local folder with free space with --live or GPUPROF_LIVE",
                       "%s: %s: events wait in the data folder or in memory, and a kill may lose "
                       "the last second",
                       folder, strerror(errno));
    uint64_t free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    bytes_text(room, free_bytes);
    bytes_text(wanted, buffer);
    if (free_bytes < buffer)
        return limited(f,
                       "enlarge it (docker run --shm-size=1g), or name another folder with --live "
                       "or GPUPROF_LIVE",
                       "%s has %s free, but each process may need %s", folder, room, wanted);
    if (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)
        return limited(f, "name a folder on a tmpfs with --live or GPUPROF_LIVE",
                       "%s is not in memory: each call may take a microsecond longer", folder);
    return fine(f, "%s has %s free; each process may need %s", folder, room, wanted);
}

/* NVIDIA's container toolkit mounts libcuda for "compute" only, and devices on request. */
bool check_container(const struct target *p, struct check_result *f)
{
    char path[PATH_MAX];
    bool is_docker = access(rooted(p, "/.dockerenv", path), F_OK) == 0;
    bool is_one = is_docker || access(rooted(p, "/run/.containerenv", path), F_OK) == 0 ||
                  getenv("KUBERNETES_SERVICE_HOST") || getenv("APPTAINER_CONTAINER");
    const char *capabilities = getenv("NVIDIA_DRIVER_CAPABILITIES");
    const char *devices = getenv("NVIDIA_VISIBLE_DEVICES");
    if (!is_one)
        return false;
    if (capabilities && *capabilities && word_in(capabilities, "compute") == UINT_MAX &&
        word_in(capabilities, "all") == UINT_MAX)
        return broken(f, "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                      "this container has no libcuda, because of NVIDIA_DRIVER_CAPABILITIES=%s",
                      capabilities);
    if (devices && (strcmp(devices, "void") == 0 || strcmp(devices, "none") == 0))
        return broken(f, "start the container with NVIDIA_VISIBLE_DEVICES=all, or --gpus all",
                      "this container has no GPU, because of NVIDIA_VISIBLE_DEVICES=%s", devices);
    return fine(
        f,
        "this is a container: keep the data folder on a mount, or it is lost with the container");
}

/* ---- samples, waits, calls of the C library ----------------------------------------------------
 */

static bool is_sampled(const struct target *p)
{
    return p->settings.numbers[SETTING_SAMPLE] != SETTING_OFF;
}

/* A signal that the library can use; ignored signals are inherited. 0: none. */
static int free_signal(const struct target *p)
{
    int n = SAMPLE_SIGNAL_LAST, dump = (int)p->settings.numbers[SETTING_DUMP_SIGNAL];
    struct sigaction found;
    for (; n >= SAMPLE_SIGNAL_FIRST; n--)
        if (n != dump && sigaction(n, NULL, &found) == 0 && found.sa_handler == SIG_DFL)
            return n;
    return 0;
}

/* Creates a timer of CPU time like the library. Returns 0, or an errno. */
static int try_timer(int number)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = number,
                             ._sigev_un._tid = (pid_t)syscall(SYS_gettid)};
    int timer;
    if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer) < 0)
        return errno;
    syscall(SYS_timer_delete, timer);
    return 0;
}

bool check_sample(const struct target *p, struct check_result *f)
{
    int number = free_signal(p), error = try_timer(number ? number : SAMPLE_SIGNAL_LAST);
    if (!is_sampled(p))
        return false;
    if (error)
        return limited(
            f, "allow timer_create in the container, or use --gaps=on, which does not need it",
            "no CPU samples: cannot create a timer on a thread's CPU time: %s", strerror(error));
    if (!number)
        return limited(f, "start it where real-time signals are not ignored, or use --gaps=on",
                       "no CPU samples: no real-time signal is free");
    return fine(f, "signal %d is free for samples, and timers on a thread's CPU time work", number);
}

bool check_gaps(const struct target *p, struct check_result *f)
{
    static const char *const files[][2] = {{"stat", "what waiting threads do"},
                                           {"syscall", "in which system call threads wait"},
                                           {"schedstat", "how long waiting threads ran"}};
    uint64_t gaps = p->settings.numbers[SETTING_GAPS];
    if (gaps == GAPS_OFF || (gaps == GAPS_AUTO && !is_sampled(p)))
        return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[PATH_MAX], text[8];
        snprintf(path, sizeof path, "%s/proc/self/task/%ld/%s", p->root,
                 p->root[0] ? 1 : (long)syscall(SYS_gettid), files[i][0]);
        ssize_t bytes = file_head(path, text, sizeof text);
        if (bytes <= 0)
            return limited(f, "mount the /proc of a real Linux kernel, not of an emulated one",
                           "the recording will not say %s: %s: %s", files[i][1], path,
                           bytes < 0 ? strerror(errno) : "the file is empty");
    }
    return fine(f, "waiting threads can be observed");
}

bool check_os(const struct target *p, struct check_result *f)
{
    char path[ENVIRONMENT_PATH_BYTES], reason[ENVIRONMENT_REASON_BYTES];
    if (p->settings.numbers[SETTING_OS] == SETTING_OFF || p->library_reason[0])
        return false;
    if (!environment_os_library(p->library, path, reason))
        return broken(f, "reinstall gpuprof with all its files in one folder",
                      "'gpuprof run --os' will not start: %s", reason);
    return fine(f, "%s can be preloaded", path);
}
