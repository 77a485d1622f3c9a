/* SPDX-License-Identifier: Apache-2.0 */
/* What --kind calls events. */
#include "api/api.h"
#include "model/selection.h"

enum select_kind selection_kind_of_call(const struct function *f)
{
    switch (f->class) {
    case API_LAUNCH: return SELECT_LAUNCH;
    case API_GRAPH_LAUNCH: return SELECT_LAUNCH;
    case API_ALLOC: return SELECT_ALLOC;
    case API_COPY: return SELECT_COPY;
    case API_SYNC: return SELECT_SYNC;
    case API_GRAPH: return SELECT_GRAPH;
    default: return SELECT_OTHER;
    }
}

enum select_kind selection_kind_of(const struct record *r, const struct function *f)
{
    switch (r->type) {
    case RECORD_CALL: return f ? selection_kind_of_call(f) : SELECT_OTHER;
    case RECORD_KERNEL: return SELECT_KERNEL;
    case RECORD_COPY: return SELECT_MEMCPY;
    case RECORD_SET: return SELECT_MEMSET;
    case RECORD_GRAPH: return SELECT_GRAPH_RUN;
    case RECORD_SYNC: return SELECT_WAIT;
    case RECORD_OVERHEAD: return SELECT_OVERHEAD;
    case RECORD_MEMORY:
    case RECORD_TENSOR:
    case RECORD_TENSOR_OOM: return SELECT_MEMORY;
    case RECORD_PUSH:
    case RECORD_POP:
    case RECORD_RANGE_START:
    case RECORD_RANGE_END: return SELECT_RANGE;
    case RECORD_OP_BEGIN:
    case RECORD_OP_END: return SELECT_OPERATOR;
    case RECORD_LIBRARY_BEGIN:
    case RECORD_LIBRARY_END: return SELECT_LIBRARY;
    case RECORD_MARK:
    case RECORD_STEP:
    case RECORD_PAUSE:
    case RECORD_WINDOW:
    case RECORD_DUMP: return SELECT_MARK;
    default: return SELECT_KINDS;
    }
}
