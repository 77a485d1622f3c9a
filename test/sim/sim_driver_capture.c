/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"

/*
 * Stream capture. A capture has an origin stream; other streams join it by waiting for an event
 * recorded in it, and must be joined back before it ends.
 */

struct capture {
    struct capture *next; /* in the list of captures that are going on */
    uint64_t id;
    CUgraph graph;
    bool own_graph;
    CUstreamCaptureMode mode;
    CUstream origin;
    const void *thread; /* who began it */
    bool invalid;
};

static struct {
    pthread_mutex_t lock;
    struct capture *first;
    unsigned count; /* atomic; all of them, so that calls outside captures stay cheap */
} captures = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread CUstreamCaptureMode thread_mode __attribute__((tls_model("initial-exec")));
static __thread char thread_mark __attribute__((tls_model("initial-exec")));

static bool is_live(const struct capture *capture)
{
    for (const struct capture *at = captures.first; at; at = at->next)
        if (at == capture)
            return true;
    return false;
}

/* The legacy stream must not be used while a blocking stream of its context captures. */
static bool legacy_conflict(CUstream stream, CUresult *result)
{
    CUcontext context = stream->context;
    if (stream != context->legacy ||
        __atomic_load_n(&context->capture_count, __ATOMIC_ACQUIRE) == 0)
        return false;
    pthread_mutex_lock(&captures.lock);
    for (struct capture *at = captures.first; at; at = at->next)
        if (at->origin->context == context && !(at->origin->flags & CU_STREAM_NON_BLOCKING))
            at->invalid = true;
    pthread_mutex_unlock(&captures.lock);
    *result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return true;
}

bool capture_take(CUstream stream, CUgraphNodeType type, const struct graph_node_params *params,
                  CUresult *result)
{
    if (__builtin_expect(__atomic_load_n(&captures.count, __ATOMIC_ACQUIRE) == 0, 1))
        return false;
    struct capture *capture = stream->capture;
    if (!capture)
        return legacy_conflict(stream, result);
    CUgraphNode node = NULL;
    static const struct graph_node_params nothing;
    if (capture->invalid) {
        *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        return true;
    }
    *result = graph_add(capture->graph, type, params ? params : &nothing, stream->capture_tails,
                        stream->capture_tail_count, &node);
    if (*result == CUDA_SUCCESS) {
        stream->capture_tails[0] = node;
        stream->capture_tail_count = 1;
        sim_call_captured();
    }
    return true;
}

CUresult capture_forbids(CUstream stream)
{
    CUresult result = CUDA_SUCCESS;
    if (__atomic_load_n(&captures.count, __ATOMIC_ACQUIRE) == 0)
        return CUDA_SUCCESS;
    if (!stream->capture) {
        legacy_conflict(stream, &result);
        return result;
    }
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_forbids_thread(void)
{
    bool is_forbidden = false;
    if (__atomic_load_n(&captures.count, __ATOMIC_ACQUIRE) == 0 ||
        thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&captures.lock);
    for (struct capture *at = captures.first; at; at = at->next) {
        bool own = at->thread == &thread_mark;
        bool hit = own ? at->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                       : at->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                             thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (hit)
            is_forbidden = at->invalid = true;
    }
    pthread_mutex_unlock(&captures.lock);
    return is_forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

bool capture_event_record(CUevent event, CUstream stream, CUresult *result)
{
    if (__atomic_load_n(&captures.count, __ATOMIC_ACQUIRE) == 0)
        return false;
    struct capture *capture = stream->capture;
    if (!capture)
        return legacy_conflict(stream, result);
    *result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    if (capture->invalid)
        return true;
    pthread_mutex_lock(&event->lock);
    event->capture = capture;
    event->capture_id = capture->id;
    event->capture_tail_count = stream->capture_tail_count;
    memcpy(event->capture_tails, stream->capture_tails, sizeof event->capture_tails);
    pthread_mutex_unlock(&event->lock);
    sim_call_captured();
    return true;
}

static void tails_merge(CUstream stream, const CUgraphNode *tails, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bool is_known = false;
        for (unsigned j = 0; j < stream->capture_tail_count; j++)
            is_known |= stream->capture_tails[j] == tails[i];
        if (!is_known && stream->capture_tail_count < CAPTURE_TAILS_MAX)
            stream->capture_tails[stream->capture_tail_count++] = tails[i];
    }
}

bool capture_event_wait(CUstream stream, CUevent event, CUresult *result)
{
    if (__atomic_load_n(&captures.count, __ATOMIC_ACQUIRE) == 0)
        return false;
    pthread_mutex_lock(&captures.lock);
    struct capture *from =
        event->capture && is_live(event->capture) && event->capture->id == event->capture_id
            ? event->capture
            : NULL;
    pthread_mutex_unlock(&captures.lock);
    if (!from && !stream->capture)
        return legacy_conflict(stream, result);
    if (!from) {
        stream->capture->invalid = true;
        *result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        return true;
    }
    if (stream->capture && stream->capture != from) {
        stream->capture->invalid = from->invalid = true;
        *result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
        return true;
    }
    if (!stream->capture) {
        stream->capture_tail_count = 0;
        __atomic_store_n(&stream->capture, from, __ATOMIC_RELEASE);
    }
    tails_merge(stream, event->capture_tails, event->capture_tail_count);
    *result = from->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    sim_call_captured();
    return true;
}

static CUresult capture_begin(CUstream handle, CUstreamCaptureMode mode, CUgraph graph,
                              const CUgraphNode *deps, size_t dep_count, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED || dep_count > CAPTURE_TAILS_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream == stream->context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    capture->id = driver_serial();
    capture->own_graph = !graph;
    capture->graph = graph ? graph : graph_make();
    capture->mode = mode;
    capture->origin = stream;
    capture->thread = &thread_mark;
    stream->capture_tail_count = (unsigned)dep_count;
    for (size_t i = 0; i < dep_count; i++)
        stream->capture_tails[i] = deps[i];
    pthread_mutex_lock(&captures.lock);
    capture->next = captures.first;
    captures.first = capture;
    __atomic_add_fetch(&captures.count, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&captures.lock);
    if (!(stream->flags & CU_STREAM_NON_BLOCKING))
        __atomic_add_fetch(&stream->context->capture_count, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&stream->capture, capture, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

/* Is NODE among the origin's last nodes or before them? */
static bool is_joined(CUgraphNode node, const CUgraphNode *tails, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (tails[i] == node || is_joined(node, tails[i]->deps, tails[i]->dep_count))
            return true;
    return false;
}

/* Takes every stream out of the capture; false if one has work that the origin lacks. */
static bool streams_leave(struct capture *capture)
{
    CUstream origin = capture->origin;
    bool all_joined = true;
    pthread_mutex_lock(&origin->context->lock);
    for (CUstream stream = origin->context->streams; stream; stream = stream->next) {
        if (stream->capture != capture || stream == origin)
            continue;
        for (unsigned i = 0; i < stream->capture_tail_count; i++)
            all_joined &= is_joined(stream->capture_tails[i], origin->capture_tails,
                                    origin->capture_tail_count);
        __atomic_store_n(&stream->capture, NULL, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&origin->context->lock);
    __atomic_store_n(&origin->capture, NULL, __ATOMIC_RELEASE);
    return all_joined;
}

static void capture_remove(struct capture *capture)
{
    pthread_mutex_lock(&captures.lock);
    for (struct capture **at = &captures.first; *at; at = &(*at)->next)
        if (*at == capture) {
            *at = capture->next;
            break;
        }
    __atomic_sub_fetch(&captures.count, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&captures.lock);
    if (!(capture->origin->flags & CU_STREAM_NON_BLOCKING))
        __atomic_sub_fetch(&capture->origin->context->capture_count, 1, __ATOMIC_RELEASE);
}

static CUresult capture_end(CUstream handle, CUgraph *graph, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (graph)
        *graph = NULL;
    struct capture *capture = stream->capture;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (stream != capture->origin)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &thread_mark)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    bool all_joined = streams_leave(capture);
    capture_remove(capture);
    if (capture->invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!all_joined)
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (result == CUDA_SUCCESS && graph)
        *graph = capture->graph;
    else if (capture->own_graph)
        graph_discard(capture->graph);
    free(capture);
    return result;
}

void capture_stream_gone(CUstream stream)
{
    struct capture *capture = stream->capture;
    if (capture && capture->origin == stream) {
        streams_leave(capture);
        capture_remove(capture);
        if (capture->own_graph)
            graph_discard(capture->graph);
        free(capture);
    } else if (capture) {
        capture->invalid = true;
    }
}

static CUresult capture_info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                             CUgraph *graph, const CUgraphNode **deps,
                             const CUgraphEdgeData **edges, size_t *count, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    if (legacy_conflict(stream, &result))
        return result;
    struct capture *capture = stream->capture;
    *status = !capture           ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (id)
        *id = capture->id;
    if (graph)
        *graph = capture->graph;
    if (deps)
        *deps = stream->capture_tails;
    if (edges)
        *edges = NULL;
    if (count)
        *count = stream->capture_tail_count;
    return CUDA_SUCCESS;
}

static CUresult capture_update(CUstream handle, const CUgraphNode *deps, size_t count,
                               unsigned flags, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (count > CAPTURE_TAILS_MAX || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags == 1)
        stream->capture_tail_count = 0;
    tails_merge(stream, deps, (unsigned)count);
    return CUDA_SUCCESS;
}

static CUresult capture_mode(CUstreamCaptureMode *mode)
{
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode old = thread_mode;
    thread_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

DRV2(cuStreamBeginCapture, _ptsz, (CUstream stream),
     capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, NULL, 0, pt), A_X(stream))
DRV2(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
     capture_begin(stream, mode, NULL, NULL, 0, pt), A_X(stream), A_U(mode))
DRV2(cuStreamBeginCaptureToGraph, _ptsz,
     (CUstream stream, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
      size_t count, CUstreamCaptureMode mode),
     graph_check(graph) ? capture_begin(stream, mode, graph, deps, count, pt)
                        : CUDA_ERROR_INVALID_VALUE,
     A_X(stream), A_X(graph), A_U(mode))
DRV2(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *graph), capture_end(stream, graph, pt),
     A_X(stream), A_OUT("graph", graph))
DRV2(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus *status),
     capture_info(stream, status, NULL, NULL, NULL, NULL, NULL, pt), A_X(stream))
DRV2(cuStreamGetCaptureInfo, _ptsz,
     (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id),
     capture_info(stream, status, id, NULL, NULL, NULL, NULL, pt), A_X(stream))
DRV2(cuStreamGetCaptureInfo_v2, _ptsz,
     (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
      const CUgraphNode **deps, size_t *count),
     capture_info(stream, status, id, graph, deps, NULL, count, pt), A_X(stream))
DRV2(cuStreamGetCaptureInfo_v3, _ptsz,
     (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
      const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *count),
     capture_info(stream, status, id, graph, deps, edges, count, pt), A_X(stream))
DRV2(cuStreamUpdateCaptureDependencies, _ptsz,
     (CUstream stream, CUgraphNode *deps, size_t count, unsigned flags),
     capture_update(stream, deps, count, flags, pt), A_X(stream))
DRV2(cuStreamUpdateCaptureDependencies_v2, _ptsz,
     (CUstream stream, CUgraphNode *deps, const CUgraphEdgeData *edges, size_t count,
      unsigned flags),
     capture_update(stream, deps, count, flags, pt), A_X(stream))
DRV(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), capture_mode(mode))
