/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client side of NVTX of our own, made from its documented protocol: the functions do nothing but
 * what an injected library has put into the tables. Each object that includes this has its own
 * copy, as with NVTX's headers. With -DREAL_NVTX=HEADER that header takes its place.
 */
#ifndef NVTX_CLIENT_H
#define NVTX_CLIENT_H

#ifdef REAL_NVTX
#include REAL_NVTX
#else

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

enum { NVTX_COLOR_UNKNOWN, NVTX_COLOR_ARGB };
enum { NVTX_MESSAGE_UNKNOWN, NVTX_MESSAGE_TYPE_ASCII, NVTX_MESSAGE_TYPE_UNICODE };
enum { NVTX_MESSAGE_TYPE_REGISTERED = 3 };
enum { NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1, NVTX_PAYLOAD_TYPE_INT64, NVTX_PAYLOAD_TYPE_DOUBLE };
enum { NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 = 4, NVTX_PAYLOAD_TYPE_INT32, NVTX_PAYLOAD_TYPE_FLOAT };
#define NVTX_VERSION                       3
#define NVTX_RESOURCE_TYPE_GENERIC_POINTER 0x10001

typedef uint64_t nvtxRangeId_t;
typedef struct client_domain *nvtxDomainHandle_t;
typedef struct client_string *nvtxStringHandle_t;
typedef struct client_resource *nvtxResourceHandle_t;

typedef union {
    const char *ascii;
    const wchar_t *unicode;
    nvtxStringHandle_t registered;
} client_message;

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    union {
        uint64_t ullValue;
        int64_t llValue;
        double dValue;
        uint32_t uiValue;
        int32_t iValue;
        float fValue;
    } payload;
    int32_t messageType;
    client_message message;
} nvtxEventAttributes_t;

typedef struct {
    uint16_t version, size;
    int32_t identifierType;
    union {
        const void *pValue;
        uint64_t ullValue;
    } identifier;
    int32_t messageType;
    client_message message;
} nvtxResourceAttributes_t;

typedef void (*client_fn)(void);
struct client_callbacks {
    size_t struct_size;
    int (*get)(uint32_t module, client_fn ***table, unsigned *size);
};

static client_fn client_tables[6][16]; /* by module */
static client_fn *client_places[6][17];
#define client_core                        client_tables[1]
#define client_cuda                        client_tables[2]
#define client_cudart                      client_tables[4]
#define client_core2                       client_tables[5]
static pthread_once_t client_once = PTHREAD_ONCE_INIT;
static int client_answer = -1; /* what the injected library said */

static int client_get(uint32_t module, client_fn ***table, unsigned *size)
{
    static const unsigned sizes[6] = {0, 16, 9, 0, 7, 16};
    if (module > 5 || !sizes[module])
        return 0;
    *table = client_places[module];
    *size = sizes[module];
    return 1;
}

static const void *client_export(uint32_t id)
{
    static const struct client_callbacks callbacks = {sizeof callbacks, client_get};
    return id == 1 ? &callbacks : NULL;
}

static void client_start(void)
{
    for (int module = 1; module < 6; module++)
        for (int i = 1; i < 16; i++)
            client_places[module][i] = &client_tables[module][i];
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*init)(const void *(*)(uint32_t)) =
        library ? (int (*)(const void *(*)(uint32_t)))dlsym(library, "InitializeInjectionNvtx2")
                : NULL;
    if (init)
        client_answer = init(client_export);
}

static client_fn client_function(client_fn *table, unsigned id)
{
    pthread_once(&client_once, client_start);
    return table[id];
}

#define CLIENT(returns, name, params, args, table, id, otherwise)                                  \
    static inline returns name params                                                              \
    {                                                                                              \
        returns(*fn) params = (returns(*) params)client_function(table, id);                       \
        return fn ? fn args : otherwise;                                                           \
    }
#define CLIENT_VOID(name, params, args, table, id)                                                 \
    static inline void name params                                                                 \
    {                                                                                              \
        void(*fn) params = (void(*) params)client_function(table, id);                             \
        if (fn)                                                                                    \
            fn args;                                                                               \
    }

CLIENT_VOID(nvtxMarkEx, (const nvtxEventAttributes_t *a), (a), client_core, 1)
CLIENT_VOID(nvtxMarkA, (const char *t), (t), client_core, 2)
CLIENT_VOID(nvtxMarkW, (const wchar_t *t), (t), client_core, 3)
CLIENT(nvtxRangeId_t, nvtxRangeStartEx, (const nvtxEventAttributes_t *a), (a), client_core, 4, 0)
CLIENT(nvtxRangeId_t, nvtxRangeStartA, (const char *t), (t), client_core, 5, 0)
CLIENT(nvtxRangeId_t, nvtxRangeStartW, (const wchar_t *t), (t), client_core, 6, 0)
CLIENT_VOID(nvtxRangeEnd, (nvtxRangeId_t id), (id), client_core, 7)
CLIENT(int, nvtxRangePushEx, (const nvtxEventAttributes_t *a), (a), client_core, 8, -2)
CLIENT(int, nvtxRangePushA, (const char *t), (t), client_core, 9, -2)
CLIENT(int, nvtxRangePushW, (const wchar_t *t), (t), client_core, 10, -2)
CLIENT(int, nvtxRangePop, (void), (), client_core, 11, -2)
CLIENT_VOID(nvtxNameCategoryA, (uint32_t c, const char *t), (c, t), client_core, 12)
CLIENT_VOID(nvtxNameCategoryW, (uint32_t c, const wchar_t *t), (c, t), client_core, 13)
CLIENT_VOID(nvtxNameOsThreadA, (uint32_t c, const char *t), (c, t), client_core, 14)
CLIENT_VOID(nvtxNameOsThreadW, (uint32_t c, const wchar_t *t), (c, t), client_core, 15)

CLIENT_VOID(nvtxNameCuDeviceA, (int32_t of, const char *t), (of, t), client_cuda, 1)
CLIENT_VOID(nvtxNameCuDeviceW, (int32_t of, const wchar_t *t), (of, t), client_cuda, 2)
CLIENT_VOID(nvtxNameCuContextA, (void *of, const char *t), (of, t), client_cuda, 3)
CLIENT_VOID(nvtxNameCuContextW, (void *of, const wchar_t *t), (of, t), client_cuda, 4)
CLIENT_VOID(nvtxNameCuStreamA, (void *of, const char *t), (of, t), client_cuda, 5)
CLIENT_VOID(nvtxNameCuStreamW, (void *of, const wchar_t *t), (of, t), client_cuda, 6)
CLIENT_VOID(nvtxNameCuEventA, (void *of, const char *t), (of, t), client_cuda, 7)
CLIENT_VOID(nvtxNameCuEventW, (void *of, const wchar_t *t), (of, t), client_cuda, 8)
CLIENT_VOID(nvtxNameCudaDeviceA, (int32_t of, const char *t), (of, t), client_cudart, 1)
CLIENT_VOID(nvtxNameCudaDeviceW, (int32_t of, const wchar_t *t), (of, t), client_cudart, 2)
CLIENT_VOID(nvtxNameCudaStreamA, (void *of, const char *t), (of, t), client_cudart, 3)
CLIENT_VOID(nvtxNameCudaStreamW, (void *of, const wchar_t *t), (of, t), client_cudart, 4)
CLIENT_VOID(nvtxNameCudaEventA, (void *of, const char *t), (of, t), client_cudart, 5)
CLIENT_VOID(nvtxNameCudaEventW, (void *of, const wchar_t *t), (of, t), client_cudart, 6)

typedef nvtxDomainHandle_t domain_handle;
CLIENT_VOID(nvtxDomainMarkEx, (domain_handle d, const nvtxEventAttributes_t *a), (d, a),
            client_core2, 1)
CLIENT(nvtxRangeId_t, nvtxDomainRangeStartEx, (domain_handle d, const nvtxEventAttributes_t *a),
       (d, a), client_core2, 2, 0)
CLIENT_VOID(nvtxDomainRangeEnd, (domain_handle d, nvtxRangeId_t id), (d, id), client_core2, 3)
CLIENT(int, nvtxDomainRangePushEx, (domain_handle d, const nvtxEventAttributes_t *a), (d, a),
       client_core2, 4, -2)
CLIENT(int, nvtxDomainRangePop, (domain_handle d), (d), client_core2, 5, -2)
CLIENT(nvtxResourceHandle_t, nvtxDomainResourceCreate,
       (domain_handle d, nvtxResourceAttributes_t *a), (d, a), client_core2, 6, NULL)
CLIENT_VOID(nvtxDomainResourceDestroy, (nvtxResourceHandle_t r), (r), client_core2, 7)
CLIENT_VOID(nvtxDomainNameCategoryA, (domain_handle d, uint32_t c, const char *t), (d, c, t),
            client_core2, 8)
CLIENT_VOID(nvtxDomainNameCategoryW, (domain_handle d, uint32_t c, const wchar_t *t), (d, c, t),
            client_core2, 9)
CLIENT(nvtxStringHandle_t, nvtxDomainRegisterStringA, (domain_handle d, const char *t), (d, t),
       client_core2, 10, NULL)
CLIENT(nvtxStringHandle_t, nvtxDomainRegisterStringW, (domain_handle d, const wchar_t *t), (d, t),
       client_core2, 11, NULL)
CLIENT(nvtxDomainHandle_t, nvtxDomainCreateA, (const char *t), (t), client_core2, 12, NULL)
CLIENT(nvtxDomainHandle_t, nvtxDomainCreateW, (const wchar_t *t), (t), client_core2, 13, NULL)
CLIENT_VOID(nvtxDomainDestroy, (domain_handle d), (d), client_core2, 14)
CLIENT_VOID(nvtxInitialize, (const void *r), (r), client_core2, 15)

#endif
#endif
