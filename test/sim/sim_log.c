/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim_failure.h"
#include "sim_text.h"
#include "sim_trace.h"

enum {
    CHUNK_BYTES = 256 * 1024,
    COUNT_KINDS = 3, /* succeeded, failed, captured */
    COUNT_DEPTHS = 2,
    COUNT_SLOTS = SIM_SYMBOL_COUNT_MAX * COUNT_KINDS * COUNT_DEPTHS,
    TIME_DIGITS = 20,
    RESULT_DIGITS = 6,
};

struct sim_thread {
    uint32_t epoch;
    pid_t tid;
    uint64_t seq;
    uint64_t outer_seq;
    unsigned open_count;
    bool captured;       /* by the innermost call */
    bool outer_captured; /* by any call below the outermost */
    char *chunk, *cursor, *limit;
    uint64_t *slots[]; /* in counts mode: where the digits of a counter are */
};

static struct {
    pthread_mutex_t lock;
    uint32_t *epoch; /* wiped on fork */
    uint32_t epochs; /* how many processes this memory has lived in */
    const char *directory;
    bool counts;
    bool gpu;
    int file;
    off_t file_bytes;
    const char *names[SIM_SYMBOL_COUNT_MAX];
    unsigned name_count;
} log_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1};

int sim_mode = SIM_MODE_UNKNOWN;

static const struct sim_log_ops *ops_in_use = &sim_log_local;
static const uint32_t *epoch_in_use;
static __thread struct sim_thread *thread_in_use __attribute__((tls_model("initial-exec")));

uint64_t sim_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Where the page is not wiped (emulators accept the advice and ignore it), plain fork still is
 * seen. */
enum { FORK_PAGES_MAX = 4, FORK_LOCKS_MAX = 8 };
static uint32_t *fork_pages[FORK_PAGES_MAX];
static unsigned fork_page_count;
static pthread_mutex_t *fork_locks[FORK_LOCKS_MAX];
static unsigned fork_lock_count;

/* A thread that is not here may have held the locks. */
static void fork_child(void)
{
    pthread_mutex_init(&log_state.lock, NULL);
    for (unsigned i = 0; i < fork_lock_count; i++)
        pthread_mutex_init(fork_locks[i], NULL);
    for (unsigned i = 0; i < fork_page_count; i++)
        *fork_pages[i] = 0;
}

static void fork_watch(void)
{
    if (fork_page_count == 0 && fork_lock_count == 0)
        pthread_atfork(NULL, NULL, fork_child);
}

void sim_fork_lock(pthread_mutex_t *lock)
{
    fork_watch();
    if (fork_lock_count < FORK_LOCKS_MAX)
        fork_locks[fork_lock_count++] = lock;
}

uint32_t *sim_fork_page(void)
{
    uint32_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        abort();
    madvise(page, 4096, MADV_WIPEONFORK);
    fork_watch();
    if (fork_page_count < FORK_PAGES_MAX)
        fork_pages[fork_page_count++] = page;
    return page;
}

void sim_mode_init(void)
{
    const char *directory = getenv("SIMCUDA_LOG");
    const char *mode = getenv("SIMCUDA_LOG_MODE");
    const char *gpu = getenv("SIMCUDA_LOG_GPU");
    pthread_mutex_lock(&log_state.lock);
    if (sim_mode == SIM_MODE_UNKNOWN) {
        bool failures = sim_failure_init(getenv("SIMCUDA_FAIL"));
        log_state.epoch = sim_fork_page();
        log_state.directory = directory && *directory ? strdup(directory) : NULL;
        log_state.counts = mode && strcmp(mode, "counts") == 0;
        log_state.gpu = log_state.directory && gpu && strcmp(gpu, "0") != 0;
        epoch_in_use = log_state.epoch;
        sim_mode = log_state.directory || failures ? SIM_MODE_WATCH : SIM_MODE_PLAIN;
    }
    pthread_mutex_unlock(&log_state.lock);
}

void sim_log_attach(const struct sim_log_ops *ops)
{
    epoch_in_use = ops->epoch();
    ops_in_use = ops;
    thread_in_use = NULL;
}

/* Each process has a file of its own; a recycled pid must not append to a stranger's. */
static void file_open(void)
{
    char path[4096];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        snprintf(path, sizeof path, "%s/%d.%llx-%x.log", log_state.directory, (int)getpid(),
                 (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec,
                 attempt);
        log_state.file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (log_state.file >= 0 || errno != EEXIST)
            break;
    }
    log_state.file_bytes = 0;
    if (log_state.file < 0)
        fprintf(stderr, "simcuda: %s: %s\n", path, strerror(errno));
}

/* An open call or a counter still points into the old chunk: then it stays mapped. */
static bool chunk_local(struct sim_thread *thread, bool can_unmap)
{
    bool done = false;
    pthread_mutex_lock(&log_state.lock);
    if (log_state.file >= 0 && ftruncate(log_state.file, log_state.file_bytes + CHUNK_BYTES) == 0) {
        char *chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                           log_state.file, log_state.file_bytes);
        if (chunk != MAP_FAILED) {
            log_state.file_bytes += CHUNK_BYTES;
            if (thread->chunk && can_unmap && !log_state.counts)
                munmap(thread->chunk, CHUNK_BYTES);
            thread->chunk = thread->cursor = chunk;
            thread->limit = chunk + CHUNK_BYTES;
            done = true;
        }
    }
    pthread_mutex_unlock(&log_state.lock);
    return done;
}

/* Where there is no memory for a chunk the file takes the line all the same; nobody completes it.
 */
static void line_local(const char *text, size_t bytes)
{
    pthread_mutex_lock(&log_state.lock);
    if (log_state.file >= 0 && ftruncate(log_state.file, log_state.file_bytes + CHUNK_BYTES) == 0) {
        if (pwrite(log_state.file, text, bytes, log_state.file_bytes) != (ssize_t)bytes)
            abort();
        log_state.file_bytes += CHUNK_BYTES;
    }
    pthread_mutex_unlock(&log_state.lock);
}

static char *line_append(struct sim_thread *thread, const char *text, size_t bytes, bool can_unmap)
{
    if (!thread->cursor || (size_t)(thread->limit - thread->cursor) < bytes)
        if (!ops_in_use->chunk(thread, can_unmap)) {
            ops_in_use->line(text, bytes);
            return NULL;
        }
    char *at = thread->cursor;
    memcpy(at, text, bytes);
    thread->cursor += bytes;
    return at;
}

/* Called by a thread's first call, and by its first one after a fork. */
static struct sim_thread *thread_get_local(void)
{
    if (!log_state.directory)
        return NULL;
    pthread_mutex_lock(&log_state.lock);
    if (*log_state.epoch == 0) {
        if (log_state.file >= 0)
            close(log_state.file);
        file_open();
        *log_state.epoch = ++log_state.epochs;
    }
    pthread_mutex_unlock(&log_state.lock);
    size_t bytes = sizeof(struct sim_thread) + COUNT_SLOTS * sizeof(uint64_t *);
    struct sim_thread *thread = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (thread == MAP_FAILED)
        return NULL;
    thread->epoch = *log_state.epoch;
    thread->tid = (pid_t)syscall(SYS_gettid);
    return thread;
}

static __thread struct sim_thread *thread_local_state __attribute__((tls_model("initial-exec")));

static struct sim_thread *thread_local(void)
{
    if (!thread_local_state || thread_local_state->epoch != *log_state.epoch)
        thread_local_state = thread_get_local();
    return thread_local_state;
}

static uint16_t symbol_index_local(const char *name)
{
    pthread_mutex_lock(&log_state.lock);
    unsigned index = log_state.name_count;
    if (index < SIM_SYMBOL_COUNT_MAX - 1)
        log_state.names[log_state.name_count++] = name;
    pthread_mutex_unlock(&log_state.lock);
    return (uint16_t)index;
}

static const uint32_t *epoch_local(void)
{
    if (sim_mode == SIM_MODE_UNKNOWN)
        sim_mode_init();
    return log_state.epoch;
}

static struct sim_thread *thread_current(void)
{
    struct sim_thread *thread = thread_in_use;
    if (!thread || thread->epoch != *epoch_in_use)
        thread = thread_in_use = ops_in_use->thread();
    return thread;
}

const struct sim_log_ops sim_log_local = {
    .thread = thread_local,
    .symbol_index = symbol_index_local,
    .epoch = epoch_local,
    .chunk = chunk_local,
    .line = line_local,
    .tracer = sim_tracer_connect,
    .note = sim_log_note,
};

static void symbol_prepare(struct sim_symbol *symbol)
{
    symbol->failure = sim_failure_find(symbol->name);
    symbol->index = ops_in_use->symbol_index(symbol->name);
    __atomic_store_n(&symbol->prepared, 1, __ATOMIC_RELEASE);
}

/* Adds one to 16 decimal digits kept as two words, each written by a single store. */
static void digits_increment(uint64_t *words)
{
    for (int i = 1; i >= 0; i--) {
        char digits[8];
        memcpy(digits, &words[i], sizeof digits);
        int at = 7;
        while (at >= 0 && digits[at] == '9')
            digits[at--] = '0';
        if (at >= 0)
            digits[at]++;
        uint64_t word;
        memcpy(&word, digits, sizeof word);
        __atomic_store_n(&words[i], word, __ATOMIC_RELAXED);
        if (at >= 0)
            break;
    }
}

/* Layer, depth and name, with a tab before and after. */
static void text_symbol(struct sim_text *text, const struct sim_call *call)
{
    sim_text_char(text, '\t');
    sim_text_char(text, call->symbol->layer);
    sim_text_char(text, '\t');
    sim_text_number(text, call->depth);
    sim_text_char(text, '\t');
    sim_text_string(text, call->symbol->name);
    sim_text_char(text, '\t');
}

static uint64_t *counter_make(struct sim_thread *thread, const struct sim_call *call, int kind)
{
    static const char *const kinds[COUNT_KINDS] = {"ok", "error", "captured"};
    char line[512];
    struct sim_text text = {line, line + sizeof line};
    sim_text_string(&text, "C\t");
    sim_text_number(&text, (uint64_t)thread->tid);
    text_symbol(&text, call);
    sim_text_string(&text, kinds[kind]);
    sim_text_char(&text, '\t');
    /* The digits are stored by words: they must be aligned. Leading zeros are a number's too. */
    if (!thread->cursor || thread->limit - thread->cursor < (ptrdiff_t)sizeof line)
        if (!ops_in_use->chunk(thread, false))
            return NULL;
    uintptr_t at = (uintptr_t)thread->cursor + (uintptr_t)(text.at - line);
    while (at++ & 7)
        sim_text_char(&text, '0');
    ptrdiff_t digits_at = text.at - line;
    sim_text_string(&text, "0000000000000000\n");
    char *copy = line_append(thread, line, (size_t)(text.at - line), false);
    return copy ? (uint64_t *)(void *)(copy + digits_at) : NULL;
}

static void count_call(struct sim_thread *thread, const struct sim_call *call, int kind)
{
    unsigned depth = call->depth ? 1 : 0;
    uint64_t **slot =
        &thread->slots[(call->symbol->index * COUNT_DEPTHS + depth) * COUNT_KINDS + (unsigned)kind];
    if (!*slot)
        *slot = counter_make(thread, call, kind);
    if (*slot)
        digits_increment(*slot);
}

static void line_begin(struct sim_call *call, const struct sim_arg *args, unsigned arg_count,
                       uint64_t begin_ns)
{
    struct sim_thread *thread = call->thread;
    char line[SIM_LINE_BYTES_MAX];
    struct sim_text text = {line, line + sizeof line - 1};
    ptrdiff_t out_at[SIM_OUT_COUNT_MAX];
    sim_text_number(&text, (uint64_t)thread->tid);
    sim_text_char(&text, '\t');
    sim_text_number(&text, thread->seq);
    text_symbol(&text, call);
    sim_text_number(&text, begin_ns ? begin_ns : sim_now_ns());
    sim_text_char(&text, '\t');
    ptrdiff_t end_at = text.at - line;
    sim_text_digits(&text, 0, TIME_DIGITS);
    sim_text_string(&text, "\t------\t0");
    for (unsigned i = 0; i < arg_count; i++) {
        sim_text_char(&text, '\t');
        sim_text_string(&text, args[i].key);
        sim_text_char(&text, '=');
        if (args[i].type == 'o' && call->out_count < SIM_OUT_COUNT_MAX) {
            call->out[call->out_count] = (const void *)(uintptr_t)args[i].value;
            out_at[call->out_count++] = text.at - line + 2;
            sim_text_string(&text, "0x0000000000000000");
        } else {
            sim_text_arg(&text, &args[i]);
        }
    }
    *text.at++ = '\n';
    char *copy = line_append(thread, line, (size_t)(text.at - line), call->depth == 0);
    call->line = copy ? copy + end_at : NULL;
    for (unsigned i = 0; i < call->out_count; i++)
        call->out_text[i] = copy ? copy + out_at[i] : NULL;
}

int sim_call_begin(struct sim_call *call, struct sim_symbol *symbol, const struct sim_arg *args,
                   unsigned arg_count, uint64_t begin_ns)
{
    memset(call, 0, sizeof *call);
    if (sim_mode == SIM_MODE_UNKNOWN)
        sim_mode_init();
    if (sim_mode == SIM_MODE_PLAIN)
        return 0;
    int saved_errno = errno;
    if (!__atomic_load_n(&symbol->prepared, __ATOMIC_ACQUIRE))
        symbol_prepare(symbol);
    call->symbol = symbol;
    struct sim_thread *thread = call->thread = thread_current();
    if (thread) {
        call->depth = thread->open_count++;
        thread->captured = false;
        if (call->depth == 0) {
            thread->outer_seq = thread->seq;
            thread->outer_captured = false;
        }
        if (!log_state.counts)
            line_begin(call, args, arg_count, begin_ns);
        thread->seq++;
    }
    errno = saved_errno;
    return symbol->failure ? sim_failure_code(symbol) : 0;
}

static void line_end(const struct sim_call *call, int result, bool captured)
{
    for (unsigned i = 0; i < call->out_count; i++) {
        uint64_t value = 0;
        if (result == 0 && call->out[i] && call->out_text[i]) {
            memcpy(&value, call->out[i], sizeof value);
            sim_text_hex16(call->out_text[i], value);
        }
    }
    struct sim_text text = {call->line, call->line + TIME_DIGITS + RESULT_DIGITS + 3};
    sim_text_digits(&text, sim_now_ns(), TIME_DIGITS);
    text.at++;
    sim_text_digits(&text, (uint64_t)(unsigned)result, RESULT_DIGITS);
    text.at++;
    *text.at = captured ? '1' : '0';
}

void sim_call_end(struct sim_call *call, int result)
{
    struct sim_thread *thread = call->thread;
    if (!thread || thread != thread_current())
        return;
    thread->open_count = call->depth;
    bool captured =
        call->depth == 0 ? thread->captured || thread->outer_captured : thread->captured;
    thread->outer_captured |= captured;
    if (call->line)
        line_end(call, result, captured);
    else if (log_state.counts)
        count_call(thread, call, result != 0 ? 1 : captured ? 2 : 0);
}

void sim_call_captured(void)
{
    struct sim_thread *thread = sim_mode == SIM_MODE_WATCH ? thread_current() : NULL;
    if (thread)
        thread->captured = true;
}

bool sim_log_gpu_wanted(void)
{
    return log_state.gpu;
}

/* Its sequence number is that of the outermost call. */
void sim_log_note(const struct sim_note *note)
{
    struct sim_thread *thread = sim_mode == SIM_MODE_WATCH ? thread_current() : NULL;
    if (!thread || log_state.counts)
        return;
    char line[SIM_LINE_BYTES_MAX];
    struct sim_text text = {line, line + sizeof line - 1};
    sim_text_number(&text, (uint64_t)thread->tid);
    sim_text_char(&text, '\t');
    sim_text_number(&text, thread->outer_seq);
    sim_text_char(&text, '\t');
    sim_text_char(&text, note->layer);
    sim_text_string(&text, "\t0\t");
    sim_text_string(&text, note->what);
    sim_text_char(&text, '\t');
    sim_text_number(&text, note->start_ns);
    sim_text_char(&text, '\t');
    sim_text_digits(&text, note->end_ns, TIME_DIGITS);
    sim_text_char(&text, '\t');
    sim_text_digits(&text, (uint64_t)(unsigned)note->result, RESULT_DIGITS);
    sim_text_string(&text, "\t0");
    for (unsigned i = 0; i < note->arg_count; i++) {
        sim_text_char(&text, '\t');
        sim_text_string(&text, note->args[i].key);
        sim_text_char(&text, '=');
        sim_text_arg(&text, &note->args[i]);
    }
    *text.at++ = '\n';
    line_append(thread, line, (size_t)(text.at - line), false);
}
