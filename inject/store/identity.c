/* SPDX-License-Identifier: Apache-2.0 */
#include "store/identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "api/api.h"
#include "base/objects.h"
#include "base/proc.h"
#include "base/program_file.h"
#include "base/ticks.h"
#include "client_note.h"
#include "store/meta.h"

#define LIBRARIES_MAX 16
#define AHEAD_NS_MIN  1000000000 /* shortest time between two readings */
#define MAPS_BYTES    8192u      /* of /proc/self/maps per read; a path has at most 4095 */

/* CUDA's libraries seen so far. */
struct libraries {
    char seen[LIBRARIES_MAX][256];
    unsigned count;
};

/* Rank and job (rank.h), what affects how CUDA works and how fast, and what the user asked to
 * record, so that the report can propose the next command. */
static const char *const variables[] = {"RANK",
                                        "LOCAL_RANK",
                                        "WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID",
                                        "TORCHELASTIC_RESTART_COUNT",
                                        "SLURM_PROCID",
                                        "SLURM_LOCALID",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMIX_NAMESPACE",
                                        "MPI_LOCALRANKID",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "PMI_LOCAL_RANK",
                                        "MV2_COMM_WORLD_RANK",
                                        "MV2_COMM_WORLD_LOCAL_RANK",
                                        "MV2_COMM_WORLD_SIZE",
                                        "HOROVOD_RANK",
                                        "HOROVOD_LOCAL_RANK",
                                        "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                                        "HOROVOD_GLOO_RENDEZVOUS_PORT",
                                        "JOB_COMPLETION_INDEX",
                                        "CUDA_VISIBLE_DEVICES",
                                        "CUDA_LAUNCH_BLOCKING",
                                        "CUDA_DEVICE_MAX_CONNECTIONS",
                                        "CUDA_MODULE_LOADING",
                                        "CUDA_CACHE_DISABLE",
                                        "CUDA_FORCE_PTX_JIT",
                                        "NVIDIA_TF32_OVERRIDE",
                                        "PYTORCH_CUDA_ALLOC_CONF",
                                        "PYTORCH_NO_CUDA_MEMORY_CACHING",
                                        "GPUPROF_PYTORCH",
                                        "GPUPROF_BACKTRACE",
                                        "GPUPROF_BACKTRACE_THRESHOLD",
                                        "GPUPROF_DEVICE",
                                        "GPUPROF_NVTX",
                                        "GPUPROF_LIBRARIES",
                                        "GPUPROF_KINDS",
                                        "GPUPROF_GRAPHS",
                                        "GPUPROF_FRONT",
                                        "GPUPROF_SCHEDULE",
                                        "GPUPROF_STEP_BY",
                                        "GPUPROF_CAPTURE_RANGE",
                                        "GPUPROF_CAPTURE_RANGE_END",
                                        "GPUPROF_START_PAUSED",
                                        "GPUPROF_DELAY",
                                        "GPUPROF_DURATION",
                                        "GPUPROF_OVERHEAD_MAX"};

#define VARIABLE_COUNT (sizeof variables / sizeof variables[0])

/* Filled by the thread that starts a recording, for its writer. */
static char variable_values[VARIABLE_COUNT][256];
static bool variable_set[VARIABLE_COUNT];

/* Reads up to capacity - 1 bytes of a small file and terminates them; returns the length, 0 on
 * failure. */
static size_t identity_read_file(const char *path, char *text, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    if (fd >= 0) {
        ssize_t n;
        while (length < capacity - 1 && (n = read(fd, text + length, capacity - 1 - length)) > 0)
            length += (size_t)n;
        close(fd);
    }
    text[length] = '\0';
    return length;
}

static void parse_boot_id(uint8_t *id)
{
    char text[64];
    identity_read_file("/proc/sys/kernel/random/boot_id", text, sizeof text);
    unsigned digits = 0;
    memset(id, 0, 16);
    for (const char *p = text; *p && digits < 32; p++) {
        int value = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : -1;
        if (value >= 0) {
            id[digits / 2] |= (uint8_t)(value << (digits % 2 ? 0 : 4));
            digits++;
        }
    }
}

static uint64_t parse_start_time(void)
{
    char text[1024];
    identity_read_file("/proc/self/stat", text, sizeof text);
    const char *p = proc_stat_field(text, PROC_STAT_START_TIME);
    return p ? strtoull(p, NULL, 10) : 0;
}

/* How far CLOCK_MONOTONIC is ahead of the kernel's own clock in this time namespace. */
static int64_t parse_monotonic_shift(void)
{
    char text[256];
    identity_read_file("/proc/self/timens_offsets", text, sizeof text);
    const char *p = strstr(text, "monotonic");
    char *end = NULL;
    int64_t seconds = p ? strtoll(p + strlen("monotonic"), &end, 10) : 0;
    return p ? seconds * 1000000000 + strtoll(end, NULL, 10) : 0;
}

static uint64_t parse_namespace(const char *path)
{
    char text[64];
    ssize_t n = readlink(path, text, sizeof text - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *p = strchr(text, '[');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}

/* Read by the thread that starts the recording: getenv on another thread would race with setenv. */
static void read_variables(void)
{
    for (size_t i = 0; i < VARIABLE_COUNT; i++) {
        const char *value = getenv(variables[i]);
        variable_set[i] = value != NULL;
        snprintf(variable_values[i], sizeof variable_values[i], "%s", value ? value : "");
    }
}

void identity_fill(void)
{
    struct stream_header *h = &gp.header;
    memset(h, 0, sizeof *h);
    h->scale = process_clock.scale;
    h->monotonic_zero_ns = process_clock.monotonic_zero_ns;
    h->realtime_zero_ns = process_clock.realtime_zero_ns;
    if (getrandom(h->process_id, sizeof h->process_id, GRND_NONBLOCK) != sizeof h->process_id) {
        /*
         * Early at boot there may be no random bytes: time, pid and an address are unique enough.
         */
        uint64_t parts[2] = {clock_ns(CLOCK_REALTIME), ticks_now() ^ (uint64_t)getpid() << 40};
        memcpy(h->process_id, parts, sizeof parts);
    }
    read_variables();
    parse_boot_id(h->boot_id);
    h->pid_namespace = parse_namespace("/proc/self/ns/pid");
    /* /proc shows the offsets of the children's namespace. */
    if (parse_namespace("/proc/self/ns/time") == parse_namespace("/proc/self/ns/time_for_children"))
        h->monotonic_shift_ns = parse_monotonic_shift();
    h->start_time = parse_start_time();
    h->pid = (uint32_t)syscall(SYS_getpid);
    h->parent_pid = (uint32_t)getppid();
    h->api_crc = api_table_crc();
    if (gethostname(h->host, sizeof h->host - 1) < 0)
        strcpy(h->host, "unknown");
    for (char *p = h->host; *p; p++)
        if (*p == '/' || (unsigned char)*p < ' ') /* it becomes part of a file name */
            *p = '_';
}

/* Replaces spaces inside arguments by a mark if any argument contains one; the first character says
 * so. Otherwise spaces separate arguments. */
static void append_command(struct thread *t, char *text, size_t capacity)
{
    size_t length = identity_read_file("/proc/self/cmdline", text, capacity), bytes;
    bool is_plain = true, has_mark = memchr(text, ARGUMENT_SEPARATOR, length);
    length -= length && text[length - 1] == '\0';
    for (size_t i = 0; i < length; i++) {
        is_plain &= text[i] != ' ' && (text[i] || (i + 1 < length && text[i + 1]));
        text[i] = text[i] ? text[i] : ARGUMENT_SEPARATOR;
    }
    if (has_mark) /* ambiguous: the mark alone says that the arguments are not known */
        meta_append(t, "argv", (char[]){ARGUMENT_SEPARATOR}, 1);
    else if (!is_plain)
        meta_append(t, "argv", text, length);
    for (size_t i = 0; i < length; i++)
        text[i] = text[i] == ARGUMENT_SEPARATOR ? ' ' : text[i];
    for (bytes = length; bytes && text[bytes - 1] == ' ';)
        bytes--;
    meta_append(t, "cmdline", text, bytes);
}

static void append_process(struct thread *t)
{
    static char text[RECORD_BYTES_MAX];
    struct utsname kernel;
    size_t length = program_file(text, sizeof text);
    if (length)
        meta_append(t, "exe", text, length);
    append_command(t, text, sizeof text);
    if (getcwd(text, sizeof text))
        meta_append_text(t, "cwd", text);
    if (uname(&kernel) == 0) {
        meta_append_text(t, "kernel", kernel.release);
        meta_append_text(t, "machine", kernel.machine);
    }
    meta_append_text(t, "gpuprof", GPUPROF_RELEASE);
    meta_append_text(t, "live", gp.pool.is_file ? "file" : "memory");
}

static void append_variables(struct thread *t)
{
    for (size_t i = 0; i < VARIABLE_COUNT; i++) {
        char key[64];
        snprintf(key, sizeof key, "env.%s", variables[i]);
        if (variable_set[i])
            meta_append_text(t, key, variable_values[i]);
    }
}

void identity_append_function(struct thread *writer, unsigned code)
{
    const struct api_function *f = &api_functions[code];
    char text[512];
    int n = snprintf(text, sizeof text, "%s|%s|%s|", f->symbol, api_domain_name(f->domain),
                     api_class_name(f->class));
    for (unsigned a = 0; a < f->arg_count && n > 0 && (size_t)n < sizeof text; a++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s:%s", a ? "," : "",
                      arg_kind_name(f->args[a].kind), f->args[a].label);
    if (n <= 0 || (size_t)n >= sizeof text)
        return;
    struct record r = {.type = RECORD_API,
                       .code = (uint16_t)code,
                       .begin = gp.header.scale.ticks_zero, /* valid from the beginning */
                       .bytes = (const uint8_t *)text,
                       .byte_count = (uint32_t)n};
    thread_append(writer, &r);
}

/* Functions of libraries that use CUDA are twice as many, and few of them are called. */
static void append_api_table(struct thread *writer)
{
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++)
        if (api_libraries[api_functions[i].domain].layer == API_OWNER)
            identity_append_function(writer, i);
}

/* A library such as libfaketime may replace the kernel's clock: records the difference. The start
 * time of the process is on the kernel's clock. */
static void append_clock_ahead(struct thread *writer)
{
    struct timespec kernel_time;
    char text[32];
    if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &kernel_time) < 0)
        return;
    int64_t kernel_ns = (int64_t)kernel_time.tv_sec * 1000000000 + kernel_time.tv_nsec;
    int64_t ahead_ns = (int64_t)clock_ns(CLOCK_MONOTONIC) - kernel_ns;
    if (ahead_ns < AHEAD_NS_MIN && ahead_ns > -AHEAD_NS_MIN)
        return;
    snprintf(text, sizeof text, "%lld", (long long)ahead_ns);
    meta_append_text(writer, META_CLOCK_AHEAD, text);
}

void identity_append_all(struct thread *writer)
{
    append_process(writer);
    append_variables(writer);
    append_api_table(writer);
    append_clock_ahead(writer);
    identity_append_anchor(writer);
}

void identity_append_anchor(struct thread *writer)
{
    struct record r = {RECORD_WITH(ANCHOR, 0)};
    ticks_sample(&r.begin, &r.args[ANCHOR_MONOTONIC_NS]);
    r.args[ANCHOR_REALTIME_NS] =
        clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - r.args[ANCHOR_MONOTONIC_NS]);
    thread_append(writer, &r);
}

void identity_append_counters(struct thread *writer)
{
    static uint64_t written[COUNTER_COUNT];
    static uint64_t epoch;
    if (epoch != writer->epoch) { /* the child of a fork counts for itself */
        memset(written, 0, sizeof written);
        epoch = writer->epoch;
    }
    for (unsigned i = 0; i < COUNTER_COUNT; i++) {
        uint64_t value = atomic_load_explicit(&gp.counters[i], memory_order_relaxed);
        if (value == written[i])
            continue;
        written[i] = value;
        struct record r = {RECORD_WITH(COUNTER, [COUNTER_VALUE] = value), .code = (uint16_t)i,
                           .begin = ticks_now(), .bytes = (const uint8_t *)counter_infos[i].name,
                           .byte_count = (uint32_t)strlen(counter_infos[i].name)};
        thread_append(writer, &r);
    }
}

/* Notes the file in a line of /proc/self/maps if it is a new library of CUDA. */
static void append_library(struct thread *writer, struct libraries *found, char *line)
{
    static const char *const stems[] = {"/libcuda.so", "/libcudart.so", "/libcudart-",
                                        "/libcupti.so"};
    char *path = strchr(line, '/');
    if (!path || found->count == LIBRARIES_MAX)
        return;
    bool wanted = false;
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
        char *at = strstr(path, stems[i]);
        wanted |= at && !strchr(at + 1, '/');
    }
    for (unsigned i = 0; wanted && i < found->count; i++)
        wanted = strncmp(found->seen[i], path, sizeof found->seen[i] - 1) != 0;
    if (!wanted)
        return;
    snprintf(found->seen[found->count++], sizeof found->seen[0], "%s", path);
    meta_append_text(writer, "library", path);
}

/*
 * Reads /proc/self/maps, which takes no lock of the loader; with read(), because stdio allocates. A
 * line longer than the buffer loses its beginning: it is no CUDA library then, or found elsewhere.
 */
static void read_libraries(struct thread *writer, struct libraries *found)
{
    static char text[MAPS_BYTES + 1]; /* used by the writer only */
    size_t length = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t n;
    while (fd >= 0 && (n = read(fd, text + length, MAPS_BYTES - length)) > 0) {
        char *line = text, *end;
        text[length + (size_t)n] = '\0';
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            append_library(writer, found, line);
        }
        length = strlen(line);
        if (length == MAPS_BYTES)
            length = 0;
        memmove(text, line, length);
    }
    if (fd >= 0)
        close(fd);
}

void identity_append_libraries(struct thread *writer)
{
    static struct libraries found;
    static uint64_t epoch, seen;
    uint64_t loaded = objects_loaded();
    if (epoch != writer->epoch) {
        found.count = 0;
        seen = 0;
        epoch = writer->epoch;
    }
    if (found.count < LIBRARIES_MAX && seen != loaded)
        read_libraries(writer, &found);
    seen = loaded;
}

void identity_append_end(struct thread *writer, uint32_t reason)
{
    struct record r = {RECORD_WITH(END, [END_REASON] = reason), .begin = ticks_now()};
    thread_append(writer, &r);
}
