/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of the machine, which may be a container; of what it takes to record more than calls:
 * samples, waits, calls of the C library; and of the named program and what it will load.
 */
#include "doctor/checks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/text.h"
#include "known_versions.h"
#include "sample_signals.h"

#define KERNEL_MAJOR      4 /* MADV_WIPEONFORK */
#define KERNEL_MINOR      14
#define TMPFS_MAGIC       0x01021994
#define RAMFS_MAGIC       0x858458f6
#define PROGRAM_BYTES_MAX (1ull << 30) /* size of a file that is searched */
#define VERSION_LINES_MAX 64           /* lines of torch/version.py */

/* ---- the machine ----------------------------------------------------------------------------- */

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
    char path[PATH_MAX], release[64];
    unsigned major = 0, minor = 0;
    file_first_line(rooted(p, "/proc/sys/kernel/osrelease", path), release, sizeof release);
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
    if (access(rooted(p, "/proc/self/mem", path), R_OK) == 0)
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
    static const char *const files[] = {"stat", "syscall", "schedstat"};
    uint64_t gaps = p->settings.numbers[SETTING_GAPS];
    if (gaps == GAPS_OFF || (gaps == GAPS_AUTO && !is_sampled(p)))
        return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[PATH_MAX], text[8];
        snprintf(path, sizeof path, "%s/proc/self/task/%ld/%s", p->root,
                 p->root[0] ? 1 : (long)syscall(SYS_gettid), files[i]);
        ssize_t bytes = file_head(path, text, sizeof text);
        if (bytes <= 0)
            return limited(f, "mount the /proc of a real Linux kernel, not of an emulated one",
                           "the recording will not say what waiting threads do: %s: %s", path,
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

/* ---- programs -------------------------------------------------------------------------------- */

void program_python_version(const char *name, unsigned *minor)
{
    sscanf(name + (strncmp(name, "lib", 3) == 0 ? 3 : 0), "python3.%u", minor);
}

/* Whether the file contains both texts. */
static bool file_has(const char *path, const char *one, const char *other)
{
    struct stat st;
    bool found = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        (uint64_t)st.st_size <= PROGRAM_BYTES_MAX) {
        size_t bytes = (size_t)st.st_size;
        void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        found = data != MAP_FAILED && memmem(data, bytes, one, strlen(one)) &&
                memmem(data, bytes, other, strlen(other));
        if (data != MAP_FAILED)
            munmap(data, bytes);
    }
    close(fd);
    return found;
}

static bool is_python(const char *path)
{
    return strncmp(basename(path), "python", 6) == 0;
}

bool program_uses_cuda(const char *path)
{
    return is_python(path) || file_has(path, "libcuda", ""); /* also matches libcudart */
}

/* Whether a CUDA runtime is linked in, which looks up the driver's functions itself. Only a static
 * runtime does so; a shared one leaves it to libcudart. */
static bool has_runtime(const char *path)
{
    struct program program;
    program_look(&program, path);
    return !program.needs_cuda && !is_python(path) &&
           file_has(path, "libcuda.so.1", "cuGetProcAddress");
}

/* ---- Python --------------------------------------------------------------------------------- */

/* Finds the Python in the first line of a script; false: none. */
static bool find_script_python(struct program *program, const char *script)
{
    char line[PATH_MAX + 64] = "", *rest = NULL;
    bool is_script = file_first_line(script, line, sizeof line) && strncmp(line, "#!", 2) == 0;
    char *word = is_script ? strtok_r(line + 2, " \t\n", &rest) : NULL;
    if (word && strcmp(basename(word), "env") == 0)
        word = strtok_r(NULL, " \t\n", &rest);
    return word && is_python(word) && program_find(program, word) == 0;
}

/* Reads __version__ = '2.5.1+cu124'. */
static bool read_version(const char *folder, struct target *p)
{
    char path[PATH_MAX + 32], line[256];
    snprintf(path, sizeof path, "%s/torch/version.py", folder);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    for (int i = 0; i < VERSION_LINES_MAX && fgets(line, sizeof line, file); i++) {
        char *quote = strncmp(line, "__version__", 11) == 0 ? strpbrk(line, "'\"") : NULL;
        if (!quote || p->torch[0])
            continue;
        quote[1 + strcspn(quote + 1, "'\"\n")] = '\0';
        snprintf(p->torch, sizeof p->torch, "%.63s", quote + 1);
        snprintf(p->torch_folder, sizeof p->torch_folder, "%s", folder);
    }
    fclose(file);
    return p->torch[0] != '\0';
}

/* Adds the CUDA runtimes of wheels. */
static void add_runtimes(const char *folder, struct cupti_places *places)
{
    static const char *const below[] = {"nvidia/cuda_runtime/lib", "nvidia/cu13/lib", "torch/lib"};
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        char path[PATH_MAX + 32], file[sizeof path + sizeof((struct dirent *)NULL)->d_name];
        snprintf(path, sizeof path, "%s/%s", folder, below[i]);
        DIR *names = opendir(path);
        for (struct dirent *entry; names && (entry = readdir(names));) {
            snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
            if (strncmp(entry->d_name, "libcudart", 9) == 0)
                cupti_places_add(places, file, entry->d_name);
        }
        if (names)
            closedir(names);
    }
}

__attribute__((format(printf, 2, 3))) static void look_in(struct target *p, const char *form, ...)
{
    char folder[PATH_MAX];
    va_list list;
    va_start(list, form);
    int length = vsnprintf(folder, sizeof folder, form, list);
    va_end(list);
    if (!p->torch[0] && length > 0 && (size_t)length < sizeof folder && read_version(folder, p))
        add_runtimes(folder, &p->start.places);
}

/* Searches below the parent of the folder bin of Python. */
static void look_below(struct target *p, const char *python)
{
    const char *slash = strrchr(python, '/');
    const char *end = slash ? memrchr(python, '/', (size_t)(slash - python)) : NULL;
    int length = end ? (int)(end - python) : 0;
    if (!end)
        return;
    look_in(p, "%.*s/lib/python3.%u/site-packages", length, python, p->start.python_minor);
    look_in(p, "%.*s/local/lib/python3.%u/dist-packages", length, python, p->start.python_minor);
    look_in(p, "%.*s/lib/python3/dist-packages", length, python);
}

/* The path is resolved last, to find a virtual environment first. */
void program_packages_find(struct target *p)
{
    char resolved[PATH_MAX];
    struct program script;
    const char *list = getenv("PYTHONPATH"), *home = getenv("HOME");
    const char *python = is_python(p->program.path)                     ? p->program.path
                         : find_script_python(&script, p->program.path) ? script.path
                                                                        : p->start.path;
    if (!p->start.python_minor)
        return;
    while (list && *list) {
        size_t length = strcspn(list, ":");
        look_in(p, "%.*s", (int)length, list);
        list += length + (list[length] == ':');
    }
    look_below(p, python);
    if (home)
        look_in(p, "%s/.local/lib/python3.%u/site-packages", home, p->start.python_minor);
    if (realpath(python, resolved))
        look_below(p, resolved);
}

/* ---- checks --------------------------------------------------------------------------------- */

bool check_program(const struct target *p, struct check_result *f)
{
    if (!p->argv)
        return false;
    if (p->find_error)
        return broken(f, "name the program's path", "%s: %s", p->argv[0], strerror(p->find_error));
    if (p->program.obstacle)
        return broken(
            f, "link it dynamically with glibc, and start it without setuid or file capabilities",
            "%s: %s; nothing can be recorded", p->program.path, p->program.obstacle);
    return fine(f, "%s", p->program.path);
}

/* Whether there is a program to examine. */
static bool has_program(const struct target *p)
{
    return p->argv && !p->find_error && !p->program.obstacle && !p->library_reason[0];
}

bool check_preload(const struct target *p, struct check_result *f)
{
    *f = p->start.preload;
    return has_program(p);
}

/* The file that will use CUDA, as far as known. */
static const char *program_path(const struct target *p)
{
    return p->start.is_loaded ? p->start.path : p->program.path;
}

bool check_runtime(const struct target *p, struct check_result *f)
{
    if (!has_program(p) || !has_runtime(program_path(p)))
        return false;
    if (p->gpu.cupti.text[0] && p->gpu.cupti.state == CHECK_OK && p->settings.numbers[SETTING_GPU])
        return fine(f,
                    "the CUDA runtime is statically linked: its calls are recorded through CUPTI");
    return limited(
        f, "link with -cudart=shared, or make CUPTI work",
        "the CUDA runtime is statically linked: without CUPTI only its driver calls are recorded");
}

bool check_sanitizer(const struct target *p, struct check_result *f)
{
    if (!has_program(p) || (!p->program.needs_asan && !p->program.has_tsan))
        return false;
    return fine(f, "the program uses %s; gpuprof sets its options to run with it",
                p->program.needs_asan ? "AddressSanitizer" : "ThreadSanitizer");
}

bool check_python(const struct target *p, struct check_result *f)
{
    unsigned minor = p->start.python_minor;
    if (!has_program(p) || !minor)
        return false;
    if (minor < KNOWN_PYTHON_FIRST || minor > KNOWN_PYTHON_LAST)
        return limited(
            f, "use a supported version to get Python frames",
            "stacks will have no Python frames: Python 3.%u is not supported (" KNOWN_PYTHON_TEXT
            " are)",
            minor);
    return fine(f, "Python 3.%u: stacks will have Python frames", minor);
}

bool check_torch(const struct target *p, struct check_result *f)
{
    unsigned major = 0, minor = 0;
    const char *version = p->torch;
    if (!has_program(p) || !version[0])
        return false;
    if (sscanf(version, "%u.%u", &major, &minor) != 2 || major != 2 || minor < KNOWN_TORCH_FIRST ||
        minor > KNOWN_TORCH_LAST)
        return limited(f, "use a supported version for --pytorch=shapes",
                       "PyTorch %s (%s) is not supported (" KNOWN_TORCH_TEXT
                       " are): operators will have names at most",
                       version, p->torch_folder);
    return fine(f, "PyTorch %s (%s): 'gpuprof run --pytorch' records its operators", version,
                p->torch_folder);
}
