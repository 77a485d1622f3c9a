/* SPDX-License-Identifier: Apache-2.0 */
#include "library/dnn_read.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/futex.h"
#include "base/objects.h"

#define LIBRARIES_MAX   32 /* loaded during the life of a process */
#define LIBRARY_LOCK_NS 2000000000u

enum { EXECUTION_PLAN_JSON = 405, TYPE_CHAR = 24, FORMAT_NHWC = 1 };

typedef int get_attribute(const void *descriptor, int name, int type, int64_t requested,
                          int64_t *count, void *elements);
typedef int get_tensor(const void *descriptor, int requested, int *type, int *count, int *dims,
                       int *strides);
typedef int get_filter(const void *descriptor, int requested, int *type, int *format, int *count,
                       int *dims);
typedef int get_convolution(const void *descriptor, int requested, int *count, int *padding,
                            int *strides, int *dilations, int *mode, int *type);
typedef int get_groups(const void *descriptor, int *groups);
typedef int get_rnn(const void *descriptor, int *algorithm, int *cells, int *bias, int *directions,
                    int *input, int *type, int *compute, int *math, int *input_size,
                    int *hidden_size, int *projection_size, int *layers, void **dropout,
                    unsigned *flags);
typedef int get_sequences(const void *descriptor, int *type, int *layout, int *length, int *batch,
                          int *size, int requested, int *lengths, void *padding);
typedef void get_error(char *message, size_t bytes);

struct dnn_getters {
    _Atomic uintptr_t low; /* of the library; 0: it was unloaded */
    uintptr_t bytes;
    get_attribute *attribute;
    get_tensor *tensor;
    get_filter *filter;
    get_convolution *convolution;
    get_groups *groups;
    get_rnn *rnn;
    get_sequences *sequences;
    get_error *error;
};

/* Entries are written once, under the lock, before they are counted. */
static struct dnn_getters libraries[LIBRARIES_MAX];
static _Atomic uint32_t library_count;
static struct lock library_lock;

static const struct dnn_getters *dnn_read_find(uintptr_t address)
{
    uint32_t count = atomic_load_explicit(&library_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t low = atomic_load_explicit(&libraries[i].low, memory_order_relaxed);
        if (low && address - low < libraries[i].bytes)
            return &libraries[i];
    }
    return NULL;
}

static void dnn_read_fill(struct dnn_getters *g, const struct object *o)
{
    g->bytes = o->high - o->low;
    g->attribute = (get_attribute *)object_symbol(o, "cudnnBackendGetAttribute");
    g->tensor = (get_tensor *)object_symbol(o, "cudnnGetTensorNdDescriptor");
    g->filter = (get_filter *)object_symbol(o, "cudnnGetFilterNdDescriptor");
    g->convolution = (get_convolution *)object_symbol(o, "cudnnGetConvolutionNdDescriptor");
    g->groups = (get_groups *)object_symbol(o, "cudnnGetConvolutionGroupCount");
    g->rnn = (get_rnn *)object_symbol(o, "cudnnGetRNNDescriptor_v8");
    g->sequences = (get_sequences *)object_symbol(o, "cudnnGetRNNDataDescriptor");
    g->error = (get_error *)object_symbol(o, "cudnnGetLastErrorString");
    atomic_store(&g->low, o->low);
}

const struct dnn_getters *dnn_getters_of(uintptr_t real)
{
    struct object o;
    const struct dnn_getters *g = dnn_read_find(real);
    if (g || !object_at(real, &o) || !lock_take(&library_lock, LIBRARY_LOCK_NS))
        return g;
    uint32_t count = atomic_load(&library_count);
    g = dnn_read_find(real);
    if (!g && count < LIBRARIES_MAX) {
        dnn_read_fill(&libraries[count], &o);
        g = &libraries[count];
        atomic_store_explicit(&library_count, count + 1, memory_order_release);
    }
    lock_drop(&library_lock);
    return g;
}

void dnn_unloaded(void)
{
    struct object o;
    uint32_t count = atomic_load(&library_count);
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t low = atomic_load(&libraries[i].low);
        if (low && !(object_at(low, &o) && o.low == low && o.high - o.low == libraries[i].bytes))
            atomic_store(&libraries[i].low, 0);
    }
}

static bool is_good(const struct dnn_getters *ask, int result)
{
    char message[8];
    if (result != 0 && ask->error)
        ask->error(message, sizeof message);
    return result == 0;
}

bool dnn_ask_json(const struct dnn_getters *ask, const void *plan, int64_t *bytes, char *json)
{
    int64_t requested = *bytes, count = -1;
    if (!ask->attribute || !is_good(ask, ask->attribute(plan, EXECUTION_PLAN_JSON, TYPE_CHAR,
                                                        requested, &count, json)))
        return false;
    *bytes = count;
    return !json || (count > 0 && count <= requested);
}

/* Input size, hidden size, projection size, layers. */
static bool read_rnn(const struct dnn_getters *ask, const void *descriptor, struct dnn_read *r)
{
    int other[6];
    unsigned flags;
    void *dropout;
    r->count = 4;
    return ask->rnn &&
           is_good(ask, ask->rnn(descriptor, &other[0], &r->format, &other[1], &r->groups,
                                 &other[2], &other[3], &r->type, &other[4], &r->dims[0],
                                 &r->dims[1], &r->dims[2], &r->dims[3], &dropout, &flags));
}

/* Steps, sequences, numbers per step. */
static bool read_sequences(const struct dnn_getters *ask, const void *descriptor,
                           struct dnn_read *r)
{
    double padding; /* one value of the type */
    int length, layout;
    r->count = 3;
    return ask->sequences &&
           is_good(ask, ask->sequences(descriptor, &r->type, &layout, &r->dims[0], &r->dims[1],
                                       &r->dims[2], 0, &length, &padding));
}

static bool read_one(const struct dnn_getters *ask, const struct dnn_item *item, struct dnn_read *r)
{
    const void *d = item->descriptor;
    switch ((enum dnn_kind)item->kind) {
    case DNN_IS_TENSOR:
        return ask->tensor &&
               is_good(ask, ask->tensor(d, DNN_DIMS_MAX, &r->type, &r->count, r->dims, r->strides));
    case DNN_IS_FILTER:
        return ask->filter &&
               is_good(ask, ask->filter(d, DNN_DIMS_MAX, &r->type, &r->format, &r->count, r->dims));
    case DNN_IS_CONVOLUTION:
        return ask->convolution && ask->groups &&
               is_good(ask, ask->convolution(d, DNN_DIMS_MAX - 2, &r->count, r->dims, r->strides,
                                             r->dilations, &r->format, &r->type)) &&
               is_good(ask, ask->groups(d, &r->groups));
    case DNN_IS_RNN: return read_rnn(ask, d, r);
    case DNN_IS_SEQUENCES: return read_sequences(ask, d, r);
    case DNN_IS_NONE: break;
    }
    return false;
}

bool dnn_read(const struct dnn_getters *ask, const struct dnn_item *items, struct dnn_read *read)
{
    memset(read, 0, DNN_ITEMS_MAX * sizeof *read);
    for (unsigned i = 0; i < DNN_ITEMS_MAX && items[i].kind; i++)
        if (items[i].descriptor && (!read_one(ask, &items[i], &read[i]) || read[i].count < 1 ||
                                    read[i].count > DNN_DIMS_MAX))
            return false;
    return true;
}

static void widen(int64_t *wide, const int *numbers, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        wide[i] = numbers[i];
}

static void dnn_read_put_numbers(struct dnn_text *text, const char *key, const int *numbers,
                                 unsigned count)
{
    int64_t wide[DNN_DIMS_MAX];
    widen(wide, numbers, count);
    dnn_text_numbers(text, key, strlen(key), wide, count);
}

static void put_convolution(struct dnn_text *text, const struct dnn_read *r)
{
    const unsigned count = (unsigned)r->count;
    dnn_text_word(text, "compute", dnn_type(r->type));
    dnn_read_put_numbers(text, "pad", r->dims, count);
    dnn_read_put_numbers(text, "stride", r->strides, count);
    dnn_read_put_numbers(text, "dilation", r->dilations, count);
    if (r->groups != 1)
        dnn_read_put_numbers(text, "groups", &r->groups, 1);
}

static void put_rnn(struct dnn_text *text, const struct dnn_read *r)
{
    static const char *const cells[] = {"relu", "tanh", "lstm", "gru"};
    static const char *const sizes[] = {"input", "hidden", "projection", "layers"};
    const int directions = r->groups ? 2 : 1;
    dnn_text_word(text, "mode", r->format >= 0 && r->format < 4 ? cells[r->format] : "?");
    dnn_text_word(text, "compute", dnn_type(r->type));
    for (unsigned i = 0; i < 4; i++)
        dnn_read_put_numbers(text, sizes[i], &r->dims[i], 1);
    dnn_read_put_numbers(text, "directions", &directions, 1);
}

static void dnn_read_put_tensor(struct dnn_text *text, const struct dnn_item *item,
                                const struct dnn_read *r)
{
    int64_t dims[DNN_DIMS_MAX], strides[DNN_DIMS_MAX];
    const unsigned count = (unsigned)r->count;
    widen(dims, r->dims, count);
    widen(strides, r->strides, count);
    dnn_text_tensor(text, item->key, strlen(item->key), dims, count, dnn_type(r->type),
                    item->kind == DNN_IS_TENSOR ? dnn_layout(dims, strides, count)
                    : r->format == FORMAT_NHWC  ? DNN_CHANNELS_LAST
                                                : 0);
}

void dnn_read_text(const char *name, const struct dnn_item *items, const struct dnn_read *read,
                   struct dnn_text *text)
{
    dnn_text_operation(text, name, strlen(name));
    for (unsigned i = 0; i < DNN_ITEMS_MAX && items[i].kind; i++)
        if (items[i].descriptor && items[i].kind == DNN_IS_CONVOLUTION)
            put_convolution(text, &read[i]);
        else if (items[i].descriptor && items[i].kind == DNN_IS_RNN)
            put_rnn(text, &read[i]);
        else if (items[i].descriptor)
            dnn_read_put_tensor(text, &items[i], &read[i]);
}
