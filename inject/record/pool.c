/* SPDX-License-Identifier: Apache-2.0 */
#include "record/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/objects.h"
#include "base/pages.h"
#include "base/say.h"
#include "base/ticks.h"
#include "base/unnamed.h"
#include "bytes.h"

#define FIRST_BYTES    (1u << 20)
#define GROW_BYTES     (1u << 20)
#define ALLOCATE_TRIES 100
/* space beyond the buffer's size for the first chunks of threads */
#define FURTHER_BYTES (256u << 20)
#define READY_CHUNKS  16 /* free chunks that the writer keeps ready */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* needs Linux 5.14 */
#endif

/* Used by the thread that starts a recording. */
static int live_fd = -1;  /* from pool_create on; the program may close it after it was published */
static dev_t live_device; /* identifies the file */
static ino_t live_inode;

#define TMPFS_MAGIC 0x01021994
#define RAMFS_MAGIC 0x858458f6

/* File systems that are or may be on a network: a store to their pages can hang the program. */
static const uint32_t network_magics[] = {
    0x6969,     /* nfs */
    0x517b,     /* smb */
    0xfe534d42, /* smb2 */
    0xff534d42, /* cifs */
    0x0bd00bd0, /* lustre */
    0x47504653, /* gpfs */
    0x00c36400, /* ceph */
    0x5346414f, /* afs */
    0x01021997, /* 9p */
    0x65735546, /* fuse: sshfs, s3fs, ... */
    0x19830326, /* beegfs */
    0x7461636f, /* ocfs2 */
    0x01161970, /* gfs2 */
};

static bool suits(const char *dir, bool memory_only)
{
    struct statfs fs;
    if (statfs(dir, &fs) < 0)
        return false;
    uint32_t magic = (uint32_t)fs.f_type;
    if (memory_only)
        return magic == TMPFS_MAGIC || magic == RAMFS_MAGIC;
    for (size_t i = 0; i < sizeof network_magics / sizeof network_magics[0]; i++)
        if (magic == network_magics[i])
            return false;
    return true;
}

/* Number of chunks with storage from the start. */
static uint32_t first_chunks(const struct pool *pool)
{
    uint32_t first = FIRST_BYTES / pool->chunk_bytes;
    first = first < 1 ? 1 : first;
    return first < pool->shared_max ? first : pool->shared_max;
}

/* Allocates storage for that part of the file. Returns 0 or an errno value. */
static int allocate(int fd, off_t offset, off_t bytes)
{
    int error = EINTR;
    /* EINTR: programs may have timers that expire all the time */
    for (int i = 0; error == EINTR && i < ALLOCATE_TRIES; i++)
        error = posix_fallocate(fd, offset, bytes);
    return error;
}

/*
 * Pages without storage stay inaccessible for everybody. Code that reads all readable memory (a
 * leak scan) would allocate storage for the file's holes, and get a SIGBUS for each page after its
 * end: 65,000, for which valgrind took minutes. Only there: changing a mapping waits for the
 * program's own mappings, while all threads that want a chunk spin.
 */
static int open_storage(const struct pool *pool, uint32_t first, uint32_t count)
{
    if (!objects_are_watched())
        return 0;
    uintptr_t from = (uintptr_t)(first ? pool_chunk(pool, first) : pool->base);
    uintptr_t to = (uintptr_t)pool_chunk(pool, first + count);
    from &= ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    return mprotect((void *)from, to - from, PROT_READ | PROT_WRITE);
}

/* The initial size; the file grows with chunks beyond the buffer's size. */
static off_t file_bytes(const struct pool *pool)
{
    return LIVE_HEAD_BYTES + (off_t)pool->shared_max * pool->chunk_bytes;
}

/* Creates the file in `dir`, with storage for the first chunks. Returns its descriptor or -1. */
static int create_in(const char *dir, const struct pool *pool, struct stream_header *header)
{
    char id[33];
    for (int i = 0; i < 16; i++)
        snprintf(id + 2 * i, 3, "%02x", header->process_id[i]);
    int length = snprintf(header->live_path, sizeof header->live_path, "%s/gpuprof-%s%s", dir, id,
                          STREAM_LIVE_SUFFIX);
    if (length < 0 || (size_t)length >= sizeof header->live_path)
        return -1;
    int fd = unnamed_open(header->live_path);
    if (fd < 0)
        fd = open(header->live_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    /* fallocate, since touching a hole on a full file system raises SIGBUS. */
    off_t bytes = LIVE_HEAD_BYTES + (off_t)first_chunks(pool) * pool->chunk_bytes;
    int error = ftruncate(fd, file_bytes(pool)) < 0 ? errno : allocate(fd, 0, bytes);
    if (error) {
        unlink(header->live_path);
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static int create_file(const struct pool *pool, struct stream_header *header, const char *data_dir)
{
    const char *wanted = gp.settings.texts[SETTING_LIVE];
    if (wanted[0])
        return create_in(wanted, pool, header);
    int fd = -1;
    if (suits("/dev/shm", true))
        fd = create_in("/dev/shm", pool, header);
    if (fd < 0 && suits(data_dir, false))
        fd = create_in(data_dir, pool, header);
    return fd;
}

static void write_head(struct pool *pool, const struct stream_header *header)
{
    uint8_t *head = pool->base;
    stream_header_write(header, head, STREAM_HEADER_BYTES_MAX);
    store_u32(head + LIVE_OFFSET_VERSION, LIVE_VERSION);
    store_u32(head + LIVE_OFFSET_CHUNK_BYTES, pool->chunk_bytes);
    store_u32(head + LIVE_OFFSET_CHUNK_COUNT, atomic_load(&pool->chunk_max));
    store_u32(head + LIVE_OFFSET_CHUNKS, LIVE_HEAD_BYTES);
    store_u64(head + LIVE_OFFSET_BYTES, (uint64_t)file_bytes(pool));
    chunk_set_u64(head, LIVE_OFFSET_MAGIC, LIVE_MAGIC);
}

static void pool_close_file(void)
{
    if (descriptor_is(live_fd, live_device, live_inode))
        close(live_fd);
    live_fd = -1;
}

static void unmap(struct pool *pool)
{
    pool_close_file();
    if (pool->base)
        munmap(pool->base, pool->map_bytes);
    if (pool->owners)
        munmap(pool->owners, pool->owners_max * sizeof *pool->owners);
    pool->base = NULL;
    pool->owners = NULL;
}

static void go_without_file(struct pool *pool, struct stream_header *header, int reason)
{
    pool->is_file = false;
    header->live_path[0] = '\0';
    note(SAY_LIVE,
         "no live file: %s: a kill loses the events of the last second; set GPUPROF_LIVE to a "
         "local folder with free space",
         error_text(reason));
}

/*
 * Used if there is no file. Shared, so that after a fork the parent does not pay for page copies.
 */
static uint8_t *map_memory(const struct pool *pool, int protection)
{
    void *p =
        mmap(NULL, pool->map_bytes, protection, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Maps space for `further` chunks beyond the buffer's size. Returns 0, or -1: address space may be
 * limited. */
static int map(struct pool *pool, struct stream_header *header, const char *data_dir,
               uint32_t further)
{
    uint32_t room = LIVE_CHUNK_COUNT_MAX - pool->shared_max;
    uint32_t chunk_max = pool->shared_max + (further < room ? further : room);
    atomic_store(&pool->chunk_max, chunk_max);
    pool->map_bytes = LIVE_HEAD_BYTES + (size_t)chunk_max * pool->chunk_bytes;
    int fd = create_file(pool, header, data_dir);
    int error = errno;
    int protection = objects_are_watched() ? PROT_NONE : PROT_READ | PROT_WRITE;
    pool->is_file = fd >= 0;
    if (fd < 0)
        go_without_file(pool, header, error);
    pool->base =
        fd < 0 ? map_memory(pool, protection) : pages_map_file(pool->map_bytes, protection, fd);
    if (pool->base && open_storage(pool, 0, first_chunks(pool)) < 0) {
        munmap(pool->base, pool->map_bytes);
        pool->base = NULL;
    }
    error = errno;
    live_fd = fd;
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0) {
        live_device = st.st_dev;
        live_inode = st.st_ino;
    }
    if (pool->base)
        return 0;
    pool_close_file();
    if (pool->is_file)
        unlink(header->live_path);
    errno = error;
    return -1;
}

static int pool_own_create(struct pool *pool, struct stream_header *header, const char *data_dir)
{
    memset(pool, 0, sizeof *pool);
    pool->chunk_bytes = (uint32_t)gp.settings.numbers[SETTING_CHUNK] & ~4095u;
    uint64_t chunks = gp.settings.numbers[SETTING_BUFFER] / pool->chunk_bytes;
    pool->shared_max = chunks > LIVE_CHUNK_COUNT_MAX ? LIVE_CHUNK_COUNT_MAX : (uint32_t)chunks;
    if (pool->shared_max < 2)
        pool->shared_max = 2; /* the writer's and one more */
    if (map(pool, header, data_dir, FURTHER_BYTES / pool->chunk_bytes) < 0 &&
        map(pool, header, data_dir, 0) < 0)
        return -1;
    pool->owners_max = pool->chunk_max;
    pool->owners = pages_map(pool->owners_max * sizeof *pool->owners);
    if (!pool->owners) {
        int error = errno;
        unmap(pool);
        pool_unlink(header);
        errno = error;
        return -1;
    }
    write_head(pool, header);
    uint32_t allocated = first_chunks(pool);
    atomic_store(&pool->free_count, allocated);
    atomic_store(&pool->allocated, allocated);
    return 0;
}

bool pool_create(void)
{
    if (pool_own_create(&gp.pool, &gp.header, gp.settings.texts[SETTING_OUT]) < 0) {
        say(SAY_START, "recording is off: cannot allocate the buffer: %s", error_text(errno));
        return false;
    }
    _Atomic uint64_t *counters = (_Atomic uint64_t *)(void *)(gp.pool.base + LIVE_OFFSET_COUNTERS);
    for (int i = 0; i < COUNTER_COUNT; i++)
        atomic_store(&counters[i], atomic_load(&gp.counters[i]));
    gp.counters = counters;
    return true;
}

void pool_remove(void)
{
    pool_close_file();
    pool_unlink(&gp.header);
}

void pool_publish(void)
{
    if (live_fd >= 0 && unnamed_link(live_fd, gp.header.live_path) < 0) {
        go_without_file(&gp.pool, &gp.header, errno);
        pool_close_file();
    }
    /*
     * Opens the file by its current name, so that /proc shows that name, which victims.h looks for.
     */
    int named = live_fd < 0 ? -1 : open(gp.header.live_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor_is(named, live_device, live_inode)) {
        close(live_fd);
        live_fd = named;
    } else if (named >= 0) {
        close(named);
    }
    /* Kept open: a process that changes its user may not be able to open it again by name. */
    live_fd = descriptor_move_high(live_fd);
}

void pool_forget(void)
{
    unmap(&gp.pool);
    gp.counters = (_Atomic uint64_t *)(void *)(gp.spare_head + LIVE_OFFSET_COUNTERS);
    memset(gp.spare_head, 0, sizeof gp.spare_head);
}

void pool_unlink(const struct stream_header *header)
{
    if (header->live_path[0])
        unlink(header->live_path);
}

int pool_open_file(void)
{
    int fd = live_fd < 0 ? -1 : fcntl(live_fd, F_DUPFD_CLOEXEC, 3);
    if (descriptor_is(fd, live_device, live_inode))
        return fd;
    if (fd >= 0)
        close(fd);
    fd = open(gp.header.live_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || descriptor_is(fd, live_device, live_inode))
        return fd;
    close(fd);
    errno = ESTALE; /* it is another file */
    return -1;
}

/* Extends the file for `more` chunks. Returns 0 or an errno value; EAGAIN: try later. */
static int extend_file(const struct pool *pool, uint32_t more)
{
    int fd = pool_open_file();
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE ? EAGAIN : errno;
    off_t offset = (off_t)(pool_chunk(pool, atomic_load(&pool->allocated)) - pool->base);
    int error = allocate(fd, offset, (off_t)more * pool->chunk_bytes);
    close(fd);
    return error == EINTR ? EAGAIN : error;
}

static int extend(const struct pool *pool, uint32_t more)
{
    int error = pool->is_file ? extend_file(pool, more) : 0;
    if (!error && open_storage(pool, atomic_load(&pool->allocated), more) < 0)
        error = errno;
    return error;
}

/* Allocates more storage, up to `most` chunks. One thread at a time does it; the others keep
 * searching. Returns false if there are that many already. */
static bool pool_grow(struct pool *pool, uint32_t most)
{
    uint32_t allocated = atomic_load(&pool->allocated);
    uint32_t free = 0;
    if (allocated >= most || allocated >= atomic_load(&pool->chunk_max))
        return false;
    if (!atomic_compare_exchange_strong(&pool->grow_lock, &free, 1))
        return true;
    allocated = atomic_load(&pool->allocated);
    uint32_t more = GROW_BYTES / pool->chunk_bytes;
    more = more < 1 ? 1 : more;
    uint32_t room = atomic_load(&pool->chunk_max) - allocated;
    more = more < room ? more : room;
    int error = more ? extend(pool, more) : EAGAIN;
    if (error == 0) {
        atomic_store(&pool->allocated, allocated + more);
        atomic_fetch_add(&pool->free_count, more);
    } else if (error != EAGAIN) {
        atomic_store(&pool->chunk_max, allocated); /* no space: use what there is */
    }
    atomic_store(&pool->grow_lock, 0);
    return error == 0;
}

void pool_prepare(struct pool *pool)
{
    /* While no thread has filled a chunk, and beyond the buffer's size, all chunks are first ones,
     * of which most threads need few pages. */
    bool is_filled = atomic_load(&pool->is_filled);
    uint32_t most = is_filled ? pool->shared_max : first_chunks(pool);
    if (is_filled && atomic_load(&pool->free_count) < READY_CHUNKS)
        pool_grow(pool, most);
    uint32_t allocated = atomic_load(&pool->allocated);
    if (allocated > most)
        allocated = most;
    if (pool->mapped >= allocated)
        return;
    /* Older kernels do not support it: then each page faults when a thread first writes to it. */
    madvise(pool_chunk(pool, pool->mapped), (size_t)(allocated - pool->mapped) * pool->chunk_bytes,
            MADV_POPULATE_WRITE);
    pool->mapped = allocated;
}

/* Sets head and owner of an empty chunk that begins at `position`. */
static void begin_at(struct pool *pool, uint8_t *chunk, uint64_t position)
{
    struct chunk_owner *owner = pool_owner(pool, chunk);
    atomic_store_explicit(&owner->take, 1 + atomic_fetch_add(&pool->take_count, 1),
                          memory_order_relaxed);
    atomic_store_explicit(&owner->sealed, 0, memory_order_release); /* together with the new take */
    atomic_store_explicit(&owner->used, CHUNK_USED_UNKNOWN, memory_order_release);
    atomic_store_explicit(&owner->position, position, memory_order_release);
    chunk_set_u64(chunk, LIVE_CHUNK_COMMITTED, 0);
    chunk_set_u64(chunk, LIVE_CHUNK_SEALED, 0);
    chunk_set_u64(chunk, LIVE_CHUNK_POSITION, position);
}

static void set_owned(struct chunk_owner *owner, uint8_t *chunk, uint32_t number)
{
    atomic_store_explicit(chunk_state(chunk), LIVE_OWNED, memory_order_release);
    atomic_store_explicit(&owner->word, (uint64_t)number << 32 | LIVE_OWNED, memory_order_release);
}

static uint8_t *pool_take_free(struct pool *pool, uint32_t number, uint32_t tid, uint64_t position)
{
    uint32_t allocated = atomic_load(&pool->allocated);
    uint32_t hint = atomic_load_explicit(&pool->hint, memory_order_relaxed);
    if (atomic_load(&pool->free_count) == 0)
        return NULL;
    for (uint32_t i = 0; i < allocated; i++) {
        uint32_t index = (hint + i) % allocated;
        uint8_t *chunk = pool_chunk(pool, index);
        struct chunk_owner *owner = &pool->owners[index];
        uint64_t is_free = LIVE_FREE;
        if (owner_state(owner) != LIVE_FREE)
            continue;
        /* Not OWNED at once: a reader must not take the old owner's numbers for ours. */
        if (!atomic_compare_exchange_strong(&owner->word, &is_free, LIVE_TAKEN))
            continue;
        atomic_fetch_sub(&pool->free_count, 1);
        atomic_store_explicit(&pool->hint, index + 1, memory_order_relaxed);
        atomic_store(chunk_state(chunk), LIVE_TAKEN);
        chunk_set_u32(chunk, LIVE_CHUNK_THREAD, number);
        chunk_set_u32(chunk, LIVE_CHUNK_TID, tid);
        atomic_store_explicit(&owner->tid, tid, memory_order_relaxed);
        begin_at(pool, chunk, position);
        set_owned(owner, chunk, number);
        return chunk;
    }
    return NULL;
}

uint8_t *pool_take(struct pool *pool, uint32_t number, uint32_t tid, uint64_t position, bool first)
{
    int saved = errno;
    uint8_t *chunk;
    uint32_t most = first ? atomic_load(&pool->chunk_max) : pool->shared_max;
    while (!(chunk = pool_take_free(pool, number, tid, position)) && pool_grow(pool, most))
        ;
    errno = saved;
    return chunk;
}

void pool_begin_anew(struct pool *pool, uint8_t *chunk, uint64_t position)
{
    struct chunk_owner *owner = pool_owner(pool, chunk);
    atomic_store(&owner->word, (uint64_t)owner_number(owner) << 32 | LIVE_TAKEN);
    atomic_store(chunk_state(chunk), LIVE_TAKEN);
    begin_at(pool, chunk, position);
}

void pool_begun(struct pool *pool, uint8_t *chunk)
{
    struct chunk_owner *owner = pool_owner(pool, chunk);
    set_owned(owner, chunk, owner_number(owner));
}

/*
 * The writer and a new thread may both find a dead owner's chunk. When the second one gets to it,
 * the writer may have freed it for a third thread. So state and owner are changed together, in the
 * chunk's head, too.
 */
static void make_full(struct pool *pool, uint8_t *chunk, uint32_t number)
{
    _Static_assert(LIVE_CHUNK_THREAD == LIVE_CHUNK_STATE + 4, "one word");
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)(chunk + LIVE_CHUNK_STATE);
    uint64_t owned = (uint64_t)number << 32 | LIVE_OWNED, full = (uint64_t)number << 32 | LIVE_FULL;
    struct chunk_owner *owner = pool_owner(pool, chunk);
    uint64_t said = owned;
    if (atomic_load(&owner->word) == owned && !atomic_compare_exchange_strong(word, &said, full))
        atomic_compare_exchange_strong(word, &said, full); /* the program has overwritten it */
    if (atomic_compare_exchange_strong(&owner->word, &owned, full))
        atomic_fetch_add(&pool->full_count, 1);
}

void pool_leave(struct pool *pool, uint8_t *chunk, uint32_t number, uint64_t used)
{
    atomic_store_explicit(&pool_owner(pool, chunk)->used, used, memory_order_release);
    atomic_store_explicit(&pool->is_filled, true, memory_order_relaxed);
    make_full(pool, chunk, number);
}

/* Marks the `count` open records from `begin` on as abandoned, and returns where they end; 0 if the
 * program has overwritten them. */
static uint64_t mark_abandoned(uint8_t *records, uint64_t begin, uint64_t count, uint64_t capacity)
{
    uint64_t end = begin;
    for (uint64_t i = 0; i < count && end + 8 * RECORD_HEAD_WORDS <= capacity; i++) {
        uint64_t *words = (uint64_t *)(void *)(records + end);
        uint64_t word0 = words[0], bytes = 8 * (uint64_t)record_word_count(word0);
        if (bytes < 8 * RECORD_HEAD_WORDS || bytes > capacity - end)
            return 0;
        words[0] = word0 | (uint64_t)RECORD_STALE << 8;
        words[2] = ticks_now() - words[1];
        words[3] = 0;
        end += bytes;
    }
    return count <= LIVE_OPEN_MAX ? end : 0;
}

/* The writer and a new thread may both do it: they write the same, and it counts once. */
static void close_open(uint8_t *chunk, uint64_t capacity)
{
    uint64_t committed = chunk_u64(chunk, LIVE_CHUNK_COMMITTED);
    uint64_t count = committed & LIVE_OPEN_MASK, begin = committed - count;
    if (!count || begin > capacity)
        return; /* the writer does the rest */
    uint64_t end = mark_abandoned(chunk + LIVE_CHUNK_HEAD_BYTES, begin, count, capacity);
    if (__atomic_compare_exchange_n((uint64_t *)(void *)(chunk + LIVE_CHUNK_COMMITTED), &committed,
                                    end ? end : begin, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        counter_add(end ? COUNTER_STALE : COUNTER_OVERWRITTEN, end ? count : 1);
}

void pool_leave_dead(struct pool *pool, uint8_t *chunk, uint32_t number)
{
    close_open(chunk, pool->chunk_bytes - LIVE_CHUNK_HEAD_BYTES);
    make_full(pool, chunk, number);
}

void pool_set_sealed(struct pool *pool, uint8_t *chunk, uint64_t sealed)
{
    atomic_store_explicit(&pool_owner(pool, chunk)->sealed, sealed, memory_order_release);
    chunk_set_u64(chunk, LIVE_CHUNK_SEALED, sealed);
}

void pool_free(struct pool *pool, uint8_t *chunk)
{
    /* Cleared before the chunk becomes free: the next owner finds committed == sealed == 0. */
    chunk_set_u64(chunk, LIVE_CHUNK_COMMITTED, 0);
    chunk_set_u64(chunk, LIVE_CHUNK_SEALED, 0);
    chunk_set_u64(chunk, LIVE_CHUNK_PASSED, 0);
    chunk_set_u64(chunk, LIVE_CHUNK_COUNTED, 0);
    atomic_fetch_sub(&pool->full_count, 1);
    atomic_store_explicit(chunk_state(chunk), LIVE_FREE, memory_order_release);
    atomic_store_explicit(&pool_owner(pool, chunk)->word, LIVE_FREE, memory_order_release);
    /* Reuse the lowest first: their pages are mapped, and may be in a cache. */
    uint32_t index = (uint32_t)((size_t)(chunk - pool->base - LIVE_HEAD_BYTES) / pool->chunk_bytes);
    if (index < atomic_load_explicit(&pool->hint, memory_order_relaxed))
        atomic_store_explicit(&pool->hint, index, memory_order_relaxed);
    atomic_fetch_add(&pool->free_count, 1);
}
