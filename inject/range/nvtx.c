/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX. Each copy of it in the process (one per library that embeds it, and libnvToolsExt.so.1)
 * loads the library in NVTX_INJECTION64_PATH at its first call, and lets it fill in the functions.
 * That is this library, unless the variable names another.
 */
#include "range/nvtx.h"

#include <string.h>
#include <unistd.h>

#include "base/announce.h"
#include "range/labels.h"
#include "range/nvtx_abi.h"
#include "range/user_ranges.h"
#include "record/start.h"
#include "record/state.h"

/* ---- Texts -------------------------------------------------------------------------------- */

/* Buffer for the UTF-8 form of a wide text. */
struct wide {
    char text[RANGE_TEXT_BYTES_MAX];
    uint32_t byte_count;
};

static unsigned encode(uint32_t c, char *out)
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    unsigned count = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (unsigned i = count - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00u >> count) | c);
    return count;
}

static void narrow(struct wide *w, const wchar_t *text)
{
    w->byte_count = 0;
    for (; text && *text; text++) {
        char one[4];
        unsigned count = encode((uint32_t)*text, one);
        if (count > sizeof w->text - w->byte_count) {
            counter_add(COUNTER_TEXTS_TRUNCATED, 1);
            return;
        }
        memcpy(w->text + w->byte_count, one, count);
        w->byte_count += count;
    }
}

/* ---- Events ------------------------------------------------------------------------------- */

enum act { ACT_MARK, ACT_START, ACT_PUSH };

/* Returns an id, a level, or nothing. */
static uint64_t do_act(enum act act, const struct range_event *e)
{
    switch (act) {
    case ACT_START: return range_start(e);
    case ACT_PUSH: return (uint64_t)(int64_t)range_push(e);
    default: range_mark(e); return 0;
    }
}

static uint64_t act_text(enum act act, const char *text)
{
    struct range_event e = {.text = text, .byte_count = range_text_bytes(text)};
    return do_act(act, &e);
}

/* A function of its own, since it needs a few KiB of stack. */
static __attribute__((noinline)) uint64_t act_wide(enum act act, struct range_event *e,
                                                   const wchar_t *text)
{
    struct wide w;
    narrow(&w, text);
    e->text = w.text;
    e->byte_count = w.byte_count;
    return do_act(act, e);
}

static uint64_t act_wide_text(enum act act, const wchar_t *text)
{
    struct range_event e = {0};
    return act_wide(act, &e, text);
}

/* A client may pass anything: values that are not our numbers mean the default domain. */
static uint32_t domain_of(const void *handle)
{
    return (uintptr_t)handle < LABEL_DOMAIN_MAX ? (uint32_t)(uintptr_t)handle : 0;
}

/* Takes the first of several payloads. Schemas are not recorded: those with a fixed number are
 * known. */
static void take_data(struct range_event *e, const struct nvtx_event *a, struct range_data *data)
{
    const struct nvtx_payload *payload = (const struct nvtx_payload *)(uintptr_t)a->payload;
    if (a->payload_type != NVTX_EXTENDED || a->reserved < 1 || !payload || !payload->schema ||
        !payload->data || payload->size == SIZE_MAX)
        return;
    size_t deferred = payload->size < sizeof data->words ? payload->size : sizeof data->words;
    *data = (struct range_data){.schema = payload->schema, .byte_count = payload->size};
    memcpy(data->words, payload->data, deferred);
    e->data = data;
}

static uint64_t act_event(enum act act, const void *domain, const struct nvtx_event *given)
{
    struct nvtx_event a = {0};
    struct range_data data;
    struct range_event e = {.domain = domain_of(domain)};
    if (given)
        memcpy(&a, given, given->size < sizeof a ? given->size : sizeof a);
    e.category = a.category;
    e.color = a.color_type == NVTX_ARGB ? a.color : 0;
    if (a.payload_type >= NVTX_UINT64 && a.payload_type <= NVTX_FLOAT) {
        e.payload_type = (uint32_t)a.payload_type;
        e.payload = a.payload_type < NVTX_UINT32 ? a.payload : (uint32_t)a.payload;
    }
    take_data(&e, &a, &data);
    switch (a.message_type) {
    case NVTX_ASCII:
        e.text = a.message.ascii;
        e.byte_count = range_text_bytes(e.text);
        break;
    case NVTX_UNICODE: return act_wide(act, &e, a.message.unicode);
    case NVTX_REGISTERED: e.message = a.message.registered; break;
    default: break;
    }
    return do_act(act, &e);
}

static void mark_ex(const struct nvtx_event *a)
{
    act_event(ACT_MARK, NULL, a);
}

static void mark_a(const char *text)
{
    act_text(ACT_MARK, text);
}

static void mark_w(const wchar_t *text)
{
    act_wide_text(ACT_MARK, text);
}

static uint64_t start_ex(const struct nvtx_event *a)
{
    return act_event(ACT_START, NULL, a);
}

static uint64_t start_a(const char *text)
{
    return act_text(ACT_START, text);
}

static uint64_t start_w(const wchar_t *text)
{
    return act_wide_text(ACT_START, text);
}

static int push_ex(const struct nvtx_event *a)
{
    return (int)act_event(ACT_PUSH, NULL, a);
}

static int push_a(const char *text)
{
    return (int)act_text(ACT_PUSH, text);
}

static int push_w(const wchar_t *text)
{
    return (int)act_wide_text(ACT_PUSH, text);
}

static int nvtx_pop(void)
{
    return range_pop(0);
}

static void domain_mark_ex(const void *domain, const struct nvtx_event *a)
{
    act_event(ACT_MARK, domain, a);
}

static uint64_t domain_start_ex(const void *domain, const struct nvtx_event *a)
{
    return act_event(ACT_START, domain, a);
}

/* The id identifies the domain. */
static void domain_end(const void *domain, uint64_t id)
{
    (void)domain;
    range_end(id);
}

static int domain_push_ex(const void *domain, const struct nvtx_event *a)
{
    return (int)act_event(ACT_PUSH, domain, a);
}

static int domain_pop(const void *domain)
{
    return range_pop(domain_of(domain));
}

/* ---- Names -------------------------------------------------------------------------------- */

/* Handles are numbers, and never dereferenced. */
static void *handle(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static uint64_t nvtx_name(uint32_t kind, uint64_t of, uint32_t domain, const char *text,
                          uint32_t byte_count)
{
    const char *deferred = text ? text : "";
    uint64_t number = kind == LABEL_OF_DOMAIN ? label_domain(deferred, byte_count)
                      : kind == LABEL_OF_STRING
                          ? label_string(domain, deferred, byte_count)
                          : label_name(kind, of, domain, deferred, byte_count);
    range_labels_changed();
    return number;
}

static uint64_t name_a(uint32_t kind, uint64_t of, const void *domain, const char *text)
{
    return nvtx_name(kind, of, domain_of(domain), text, range_text_bytes(text));
}

static uint64_t name_w(uint32_t kind, uint64_t of, const void *domain, const wchar_t *text)
{
    struct wide w;
    narrow(&w, text);
    return nvtx_name(kind, of, domain_of(domain), w.text, w.byte_count);
}

static void name_category_a(uint32_t category, const char *text)
{
    name_a(LABEL_OF_CATEGORY, category, NULL, text);
}

static void name_category_w(uint32_t category, const wchar_t *text)
{
    name_w(LABEL_OF_CATEGORY, category, NULL, text);
}

static void name_thread_a(uint32_t tid, const char *text)
{
    name_a(LABEL_OF_THREAD, tid, NULL, text);
}

static void name_thread_w(uint32_t tid, const wchar_t *text)
{
    name_w(LABEL_OF_THREAD, tid, NULL, text);
}

/* Names of CUDA's objects are recorded as names of resources of that type. */
#define NAME_CUDA(fn, type, of_type)                                                               \
    static void fn##_a(of_type of, const char *text)                                               \
    {                                                                                              \
        name_a(type, (uint64_t)of, NULL, text);                                                    \
    }                                                                                              \
    static void fn##_w(of_type of, const wchar_t *text)                                            \
    {                                                                                              \
        name_w(type, (uint64_t)of, NULL, text);                                                    \
    }
NAME_CUDA(name_cu_device, NVTX_CU_DEVICE, uint32_t)
NAME_CUDA(name_cu_context, NVTX_CU_CONTEXT, uintptr_t)
NAME_CUDA(name_cu_stream, NVTX_CU_STREAM, uintptr_t)
NAME_CUDA(name_cu_event, NVTX_CU_EVENT, uintptr_t)
NAME_CUDA(name_cuda_device, NVTX_CUDA_DEVICE, uint32_t)
NAME_CUDA(name_cuda_stream, NVTX_CUDA_STREAM, uintptr_t)
NAME_CUDA(name_cuda_event, NVTX_CUDA_EVENT, uintptr_t)

static void domain_name_category_a(const void *domain, uint32_t category, const char *text)
{
    name_a(LABEL_OF_CATEGORY, category, domain, text);
}

static void domain_name_category_w(const void *domain, uint32_t category, const wchar_t *text)
{
    name_w(LABEL_OF_CATEGORY, category, domain, text);
}

static void *domain_register_string_a(const void *domain, const char *text)
{
    return handle(name_a(LABEL_OF_STRING, 0, domain, text));
}

static void *domain_register_string_w(const void *domain, const wchar_t *text)
{
    return handle(name_w(LABEL_OF_STRING, 0, domain, text));
}

static void *domain_create_a(const char *text)
{
    return handle(name_a(LABEL_OF_DOMAIN, 0, NULL, text));
}

static void *domain_create_w(const wchar_t *text)
{
    return handle(name_w(LABEL_OF_DOMAIN, 0, NULL, text));
}

/* A resource's type is its label's kind; an undefined type would look like another kind. */
static void *domain_resource_create(const void *domain, const struct nvtx_resource *given)
{
    struct nvtx_resource r = {0};
    if (given)
        memcpy(&r, given, given->size < sizeof r ? given->size : sizeof r);
    if (r.type < LABEL_OF_RESOURCE)
        return NULL;
    switch (r.message_type) {
    case NVTX_ASCII: return handle(name_a((uint32_t)r.type, r.identifier, domain, r.message.ascii));
    case NVTX_UNICODE:
        return handle(name_w((uint32_t)r.type, r.identifier, domain, r.message.unicode));
    default: return NULL;
    }
}

/* Names stay valid: later records may still use them. */
static void domain_resource_destroy(const void *resource)
{
    (void)resource;
}

static void domain_destroy(const void *domain)
{
    (void)domain;
}

static void initialize(const void *reserved)
{
    (void)reserved;
}

/* ---- The way in --------------------------------------------------------------------------- */

#define FUNCTION(fn) (nvtx_function) fn

static const nvtx_function core[] = {
    [NVTX_MARK_EX] = FUNCTION(mark_ex),
    [NVTX_MARK_A] = FUNCTION(mark_a),
    [NVTX_MARK_W] = FUNCTION(mark_w),
    [NVTX_START_EX] = FUNCTION(start_ex),
    [NVTX_START_A] = FUNCTION(start_a),
    [NVTX_START_W] = FUNCTION(start_w),
    [NVTX_END] = FUNCTION(range_end),
    [NVTX_PUSH_EX] = FUNCTION(push_ex),
    [NVTX_PUSH_A] = FUNCTION(push_a),
    [NVTX_PUSH_W] = FUNCTION(push_w),
    [NVTX_POP] = FUNCTION(nvtx_pop),
    [NVTX_NAME_CATEGORY_A] = FUNCTION(name_category_a),
    [NVTX_NAME_CATEGORY_W] = FUNCTION(name_category_w),
    [NVTX_NAME_THREAD_A] = FUNCTION(name_thread_a),
    [NVTX_NAME_THREAD_W] = FUNCTION(name_thread_w),
};

static const nvtx_function core2[] = {
    [NVTX_DOMAIN_MARK_EX] = FUNCTION(domain_mark_ex),
    [NVTX_DOMAIN_START_EX] = FUNCTION(domain_start_ex),
    [NVTX_DOMAIN_END] = FUNCTION(domain_end),
    [NVTX_DOMAIN_PUSH_EX] = FUNCTION(domain_push_ex),
    [NVTX_DOMAIN_POP] = FUNCTION(domain_pop),
    [NVTX_DOMAIN_RESOURCE_CREATE] = FUNCTION(domain_resource_create),
    [NVTX_DOMAIN_RESOURCE_DESTROY] = FUNCTION(domain_resource_destroy),
    [NVTX_DOMAIN_NAME_CATEGORY_A] = FUNCTION(domain_name_category_a),
    [NVTX_DOMAIN_NAME_CATEGORY_W] = FUNCTION(domain_name_category_w),
    [NVTX_DOMAIN_REGISTER_STRING_A] = FUNCTION(domain_register_string_a),
    [NVTX_DOMAIN_REGISTER_STRING_W] = FUNCTION(domain_register_string_w),
    [NVTX_DOMAIN_CREATE_A] = FUNCTION(domain_create_a),
    [NVTX_DOMAIN_CREATE_W] = FUNCTION(domain_create_w),
    [NVTX_DOMAIN_DESTROY] = FUNCTION(domain_destroy),
    [NVTX_INITIALIZE] = FUNCTION(initialize),
};

static const nvtx_function cuda[] = {
    [NVTX_NAME_CU_DEVICE_A] = FUNCTION(name_cu_device_a),
    [NVTX_NAME_CU_DEVICE_W] = FUNCTION(name_cu_device_w),
    [NVTX_NAME_CU_CONTEXT_A] = FUNCTION(name_cu_context_a),
    [NVTX_NAME_CU_CONTEXT_W] = FUNCTION(name_cu_context_w),
    [NVTX_NAME_CU_STREAM_A] = FUNCTION(name_cu_stream_a),
    [NVTX_NAME_CU_STREAM_W] = FUNCTION(name_cu_stream_w),
    [NVTX_NAME_CU_EVENT_A] = FUNCTION(name_cu_event_a),
    [NVTX_NAME_CU_EVENT_W] = FUNCTION(name_cu_event_w),
};

static const nvtx_function cudart[] = {
    [NVTX_NAME_CUDA_DEVICE_A] = FUNCTION(name_cuda_device_a),
    [NVTX_NAME_CUDA_DEVICE_W] = FUNCTION(name_cuda_device_w),
    [NVTX_NAME_CUDA_STREAM_A] = FUNCTION(name_cuda_stream_a),
    [NVTX_NAME_CUDA_STREAM_W] = FUNCTION(name_cuda_stream_w),
    [NVTX_NAME_CUDA_EVENT_A] = FUNCTION(name_cuda_event_a),
    [NVTX_NAME_CUDA_EVENT_W] = FUNCTION(name_cuda_event_w),
};

#define INSTALL(module, functions)                                                                 \
    install(callbacks, module, functions, sizeof(functions) / sizeof((functions)[0]))

/* Puts `functions` into a module's table. Older copies of NVTX have fewer places. */
static bool install(const struct nvtx_callbacks *callbacks, enum nvtx_module module,
                    const nvtx_function *functions, unsigned count)
{
    nvtx_function **places = NULL;
    unsigned size = 0;
    if (!callbacks->get_functions(module, &places, &size) || !places)
        return false;
    for (unsigned i = 1; i < count && i < size; i++)
        if (places[i])
            *places[i] = functions[i];
    return true;
}

static bool is_recorded; /* set by the constructor */

void nvtx_load(void)
{
    is_recorded = start_is_switched_on(SETTING_NVTX);
    if (is_recorded)
        announce_by(NVTX_VARIABLE);
}

/* Called by each copy of NVTX at its first call, on any thread. Returns 1, or 0: that copy is to do
 * nothing. */
EXPORT int InitializeInjectionNvtx2(nvtx_export_fn get_table);
EXPORT int InitializeInjectionNvtx2(nvtx_export_fn get_table)
{
    if (!start_is_possible() || !is_recorded || !get_table)
        return 0;
    const struct nvtx_callbacks *callbacks = get_table(NVTX_TABLE_CALLBACKS);
    if (!callbacks || callbacks->struct_size < sizeof *callbacks)
        return 0;
    INSTALL(NVTX_CUDA, cuda);
    INSTALL(NVTX_CUDART, cudart);
    bool is_core = INSTALL(NVTX_CORE, core);
    bool is_core2 = INSTALL(NVTX_CORE2, core2);
    return is_core || is_core2;
}
