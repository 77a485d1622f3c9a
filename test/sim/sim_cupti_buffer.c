/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim_cupti.h"

/*
 * The client's buffers. Records wait in a queue (one of each thread, or one of all), where they
 * change places, and then lie in a buffer until all of its records are complete and it is full, or
 * somebody flushes. All of this is under the lock, and so are the client's callbacks.
 */

enum {
    STAGED_MAX = 64,
    HELD_MAX = 4096,
    NULL_BUFFER_VERSION = 130, /* API 27 and newer drops where older ones crash */
};

struct buffer {
    struct buffer *next;
    uint64_t serial;
    uint8_t *memory;
    size_t bytes, limit, used; /* the limit is the smaller of size and switch */
    size_t record_count, record_max;
    bool is_full;
    struct cupti_record *records; /* payloads are here until delivery */
    size_t record_room;
    size_t *offsets;
};

struct queue {
    struct queue *next;
    unsigned scope;
    uint32_t thread;
    struct buffer *first, *last; /* the last one is being filled */
    struct cupti_record staged[STAGED_MAX];
    unsigned staged_count;
};

/* Of the process or of one subscriber: one pair of callbacks or the other. */
static struct receiver {
    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc complete;
    CUpti_BuffersCallbackRequestFunc_v2 request_v2;
    CUpti_BuffersCallbackCompleteFunc_v2 complete_v2;
    struct queue *queues;
    size_t dropped; /* atomic */
} receivers[SCOPE_COUNT];

static struct {
    uint64_t buffer_serial, dice, drop_count, late_count;
    struct cupti_record *late; /* they come with the next flush but one */
    size_t late_used, late_room, late_due;
} state = {.dice = 88172645463325252u};

static struct {
    pthread_mutex_t lock;
    const uint8_t *begin[HELD_MAX], *end[HELD_MAX];
    unsigned top; /* none is held from here on */
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void held_set(const uint8_t *memory, size_t bytes, bool is_held)
{
    pthread_mutex_lock(&held.lock);
    for (unsigned i = 0; i < HELD_MAX; i++)
        if (held.begin[i] == (is_held ? NULL : memory)) {
            held.begin[i] = is_held ? memory : NULL;
            held.end[i] = memory + bytes;
            if (held.top <= i)
                held.top = i + 1;
            break;
        }
    pthread_mutex_unlock(&held.lock);
}

bool buffer_is_held(const uint8_t *memory)
{
    bool is_held = false;
    pthread_mutex_lock(&held.lock);
    for (unsigned i = 0; i < held.top && !is_held; i++)
        is_held = held.begin[i] && memory >= held.begin[i] && memory < held.end[i];
    pthread_mutex_unlock(&held.lock);
    return is_held;
}

void buffer_register(CUpti_BuffersCallbackRequestFunc request,
                     CUpti_BuffersCallbackCompleteFunc complete)
{
    receivers[0].request = request;
    receivers[0].complete = complete;
}

void buffer_register_v2(unsigned scope, CUpti_BuffersCallbackRequestFunc_v2 request,
                        CUpti_BuffersCallbackCompleteFunc_v2 complete)
{
    receivers[scope].request_v2 = request;
    receivers[scope].complete_v2 = complete;
}

static void drop(unsigned scope, uint64_t count)
{
    __atomic_add_fetch(&receivers[scope].dropped, count, __ATOMIC_RELAXED);
    const struct sim_arg args[] = {NOTE_U("records", count)};
    cupti_note("dropped", 0, args, 1);
}

size_t buffer_dropped(unsigned scope)
{
    return __atomic_exchange_n(&receivers[scope].dropped, 0, __ATOMIC_RELAXED);
}

static void check_zeros(const uint8_t *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i])
            cupti_misuse("ZEROED_OUT_ACTIVITY_BUFFER is 1 and byte %zu of the buffer is not 0", i);
}

static struct buffer *buffer_request(unsigned scope)
{
    const struct receiver *receiver = &receivers[scope];
    CUpti_BufferCallbackRequestInfo info = {sizeof info};
    uint8_t *memory = NULL;
    size_t bytes = 0, record_max = 0;
    if (!receiver->request && !receiver->request_v2)
        return NULL;
    cupti_callback_begin("buffer request");
    if (receiver->request_v2)
        receiver->request_v2(&memory, &bytes, &record_max, &info);
    else
        receiver->request(&memory, &bytes, &record_max);
    cupti_callback_end();
    if (!memory && SIM_CUPTI < NULL_BUFFER_VERSION)
        cupti_misuse("the client gave no buffer: this version crashes");
    if (!memory || !bytes)
        return NULL;
    if ((uintptr_t)memory % 8)
        cupti_misuse("the client's buffer is not aligned to 8 bytes");
    if (buffer_is_held(memory))
        cupti_misuse("the client gave a buffer that it has given already");
    if (attribute_zeroed())
        check_zeros(memory, bytes);
    else
        memset(memory, 0, bytes);
    struct buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        abort();
    buffer->serial = ++state.buffer_serial;
    buffer->memory = memory;
    buffer->bytes = buffer->limit = bytes;
    if (cupti_switches.buffer_bytes && cupti_switches.buffer_bytes < bytes)
        buffer->limit = cupti_switches.buffer_bytes;
    buffer->record_max = record_max;
    held_set(memory, bytes, true);
    return buffer;
}

static bool buffer_has_room(const struct buffer *buffer, size_t bytes)
{
    return buffer && !buffer->is_full && buffer->limit - buffer->used >= bytes &&
           (!buffer->record_max || buffer->record_count < buffer->record_max);
}

static void buffer_append(struct buffer *buffer, const struct cupti_record *record)
{
    if (buffer->record_count == buffer->record_room) {
        buffer->record_room = buffer->record_room ? buffer->record_room * 2 : 16;
        buffer->records = realloc(buffer->records, buffer->record_room * sizeof *buffer->records);
        buffer->offsets = realloc(buffer->offsets, buffer->record_room * sizeof *buffer->offsets);
        if (!buffer->records || !buffer->offsets)
            abort();
    }
    buffer->records[buffer->record_count] = *record;
    buffer->offsets[buffer->record_count++] = buffer->used;
    /* What is in it before its time comes is the kind, as the real one leaves it. */
    uint32_t kind = record->kind;
    memcpy(buffer->memory + buffer->used, &kind, sizeof kind);
    buffer->used += record->bytes;
}

static void queue_put(struct queue *queue, const struct cupti_record *record)
{
    if (!buffer_has_room(queue->last, record->bytes)) {
        if (queue->last && !queue->last->is_full) {
            queue->last->is_full = true;
            cupti_worker_wake();
        }
        struct buffer *buffer = buffer_request(queue->scope);
        if (buffer) {
            if (queue->last)
                queue->last->next = buffer;
            else
                queue->first = buffer;
            queue->last = buffer;
        }
        if (!buffer_has_room(buffer, record->bytes)) {
            drop(queue->scope, 1);
            return;
        }
    }
    buffer_append(queue->last, record);
}

static uint64_t roll(void)
{
    state.dice ^= state.dice << 13;
    state.dice ^= state.dice >> 7;
    return state.dice ^= state.dice << 17;
}

/* Any of those that wait may be the next. */
static void queue_unstage(struct queue *queue)
{
    unsigned at = (unsigned)(roll() % queue->staged_count);
    struct cupti_record record = queue->staged[at];
    queue->staged[at] = queue->staged[--queue->staged_count];
    /* A copy of a pointer here would hide a leak of the client's. */
    memset(&queue->staged[queue->staged_count], 0, sizeof *queue->staged);
    queue_put(queue, &record);
}

static struct queue *queue_get(unsigned scope)
{
    uint32_t thread = attribute_per_thread() ? (uint32_t)(uintptr_t)pthread_self() | 1 : 0;
    struct queue *queue = receivers[scope].queues;
    while (queue && queue->thread != thread)
        queue = queue->next;
    if (!queue) {
        queue = calloc(1, sizeof *queue);
        if (!queue)
            abort();
        queue->thread = thread;
        queue->scope = scope;
        queue->next = receivers[scope].queues;
        receivers[scope].queues = queue;
    }
    return queue;
}

static void late_add(const struct cupti_record *record)
{
    if (state.late_used == state.late_room) {
        state.late_room = state.late_room ? state.late_room * 2 : 16;
        state.late = realloc(state.late, state.late_room * sizeof *state.late);
        if (!state.late)
            abort();
    }
    state.late[state.late_used++] = *record;
}

static void queue_stage(struct queue *queue, const struct cupti_record *record)
{
    uint64_t depth = cupti_switches.disorder < STAGED_MAX ? cupti_switches.disorder : STAGED_MAX;
    queue->staged[queue->staged_count++] = *record;
    while (queue->staged_count && queue->staged_count >= depth)
        queue_unstage(queue);
}

void buffer_add(const struct cupti_record *record)
{
    if (cupti_switches.drop && ++state.drop_count % cupti_switches.drop == 0) {
        drop(record->scope, 1);
        return;
    }
    if (cupti_switches.late && record->is_device && ++state.late_count % cupti_switches.late == 0) {
        late_add(record);
        return;
    }
    queue_stage(queue_get(record->scope), record);
}

static bool buffer_is_complete(const struct buffer *buffer, uint64_t now_ns)
{
    for (size_t i = 0; i < buffer->record_count; i++)
        if (buffer->records[i].end_ns > now_ns)
            return false;
    return true;
}

static void buffer_free(struct buffer *buffer)
{
    free(buffer->records);
    free(buffer->offsets);
    free(buffer);
}

static void buffer_complete(unsigned scope, struct buffer *buffer)
{
    const struct receiver *receiver = &receivers[scope];
    CUpti_BufferCallbackCompleteInfo info = {.structSize = sizeof info,
                                             .threadId = cupti_thread_id(scope)};
    if (receiver->complete_v2)
        receiver->complete_v2(buffer->memory, buffer->bytes, buffer->used, &info);
    else
        receiver->complete(NULL, 0, buffer->memory, buffer->bytes, buffer->used);
}

static void buffer_deliver(unsigned scope, struct buffer *buffer, uint64_t now_ns)
{
    for (size_t i = 0; i < buffer->record_count; i++) {
        struct cupti_record *record = &buffer->records[i];
        if (record->end_ns <= now_ns)
            clock_apply(record);
        memcpy(buffer->memory + buffer->offsets[i], record->payload, record->bytes);
        record_log(record, 'B', buffer->serial);
    }
    held_set(buffer->memory, buffer->bytes, false);
    cupti_callback_begin("buffer completed");
    static _Atomic uint64_t count;
    if (cupti_switches.damage && ++count % cupti_switches.damage == 0)
        memset(buffer->memory, 0xff, sizeof(uint32_t));
    buffer_complete(scope, buffer);
    cupti_callback_end();
    buffer_free(buffer);
}

static void queue_flush(struct queue *queue, enum buffer_flush how)
{
    struct buffer **at = &queue->first, *ready = NULL, **ready_last = &ready;
    uint64_t now_ns = sim_now_ns();
    if (how != FLUSH_FULL)
        while (queue->staged_count)
            queue_unstage(queue);
    queue->last = NULL;
    while (*at) {
        struct buffer *buffer = *at;
        bool go = how == FLUSH_FORCED || ((how == FLUSH_COMPLETE || buffer->is_full) &&
                                          buffer_is_complete(buffer, now_ns));
        if (go && (buffer->record_count || buffer->is_full)) {
            *at = buffer->next;
            buffer->next = NULL;
            *ready_last = buffer;
            ready_last = &buffer->next;
        } else {
            queue->last = buffer;
            at = &buffer->next;
        }
    }
    while (ready) {
        struct buffer *buffer = ready;
        ready = buffer->next;
        buffer_deliver(queue->scope, buffer, now_ns);
    }
}

/* What was held back at the flush before the last one comes now, behind what is newer. */
static void late_release(void)
{
    for (size_t i = 0; i < state.late_due; i++)
        queue_stage(queue_get(state.late[i].scope), &state.late[i]);
    state.late_used -= state.late_due;
    memmove(state.late, state.late + state.late_due, state.late_used * sizeof *state.late);
    state.late_due = state.late_used;
}

void buffer_flush(enum buffer_flush how)
{
    if (how == FLUSH_FORCED)
        state.late_due = state.late_used;
    if (how != FLUSH_FULL && state.late_used)
        late_release();
    for (unsigned scope = 0; scope < SCOPE_COUNT; scope++)
        for (struct queue *queue = receivers[scope].queues; queue; queue = queue->next)
            queue_flush(queue, how);
}

static size_t queue_discard(struct queue *queue)
{
    size_t count = queue->staged_count;
    queue->staged_count = 0;
    while (queue->first) {
        struct buffer *buffer = queue->first;
        queue->first = buffer->next;
        count += buffer->record_count;
        held_set(buffer->memory, buffer->bytes, false);
        buffer_free(buffer);
    }
    queue->last = NULL;
    return count;
}

/* What nobody will ask for any more: how many records that are. */
size_t buffer_discard_all(void)
{
    size_t count = state.late_used;
    state.late_used = state.late_due = 0;
    for (unsigned scope = 0; scope < SCOPE_COUNT; scope++)
        for (struct queue *queue = receivers[scope].queues; queue; queue = queue->next)
            count += queue_discard(queue);
    return count;
}

/* One who has left has nothing any more, and his number is another's. */
void buffer_unregister(unsigned scope)
{
    for (struct queue *queue = receivers[scope].queues; queue; queue = queue->next)
        queue_discard(queue);
    receivers[scope].request_v2 = NULL;
    receivers[scope].complete_v2 = NULL;
    receivers[scope].dropped = 0;
}
