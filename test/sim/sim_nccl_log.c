/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../cases/src/nvtx_client.h"
#include "sim_nccl.h"

enum { LINE_BYTES_MAX = 512, EXTENDED = (int)0xdfbd0009, STATIC_SCHEMAS = 1 << 24 };

/* What NVTX's extension for payloads points to. */
struct nvtx_payload {
    uint64_t schema;
    size_t bytes;
    const void *data;
};

/* A line is written as a whole: it is there whatever becomes of the process. */
static void log_line(const char *phase, const char *name, const char *text)
{
    const char *folder = getenv("SIMNCCL_LOG");
    if (!folder)
        return;
    char path[LINE_BYTES_MAX], line[LINE_BYTES_MAX];
    struct timespec now;
    snprintf(path, sizeof path, "%s/nccl-%d.log", folder, (int)getpid());
    clock_gettime(CLOCK_MONOTONIC, &now);
    int bytes = snprintf(line, sizeof line, "%lld\t%ld\t%s\t%s\t%s\n",
                         (long long)now.tv_sec * 1000000000 + now.tv_nsec, syscall(SYS_gettid),
                         phase, name, text);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0 || write(file, line, (size_t)bytes) != bytes) {
        perror(path);
        abort();
    }
    close(file);
}

static nvtxDomainHandle_t domain;
static pthread_once_t domain_once = PTHREAD_ONCE_INIT;

static void domain_make(void)
{
    if (!getenv("NCCL_NVTX_DISABLE"))
        domain = nvtxDomainCreateA("NCCL");
}

static void range_begin(const char *name, const struct payload *payload)
{
    pthread_once(&domain_once, domain_make);
    if (!domain)
        return;
    nvtxEventAttributes_t event = {.version = NVTX_VERSION, .size = sizeof event};
    struct nvtx_payload extended;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, name);
    if (payload && payload->schema) {
        extended = (struct nvtx_payload){STATIC_SCHEMAS + (uint64_t)payload->schema, payload->bytes,
                                         payload->words};
        event.payloadType = EXTENDED;
        event.reserved0 = 1;
        event.payload.ullValue = (uintptr_t)&extended;
    }
    nvtxDomainRangePushEx(domain, &event);
}

void entry_begin(const char *name, const struct payload *payload, const char *format, ...)
{
    char text[LINE_BYTES_MAX / 2];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    range_begin(name, payload);
    log_line("begin", name, text);
}

ncclResult_t entry_end(const char *name, ncclResult_t result)
{
    char text[32];
    snprintf(text, sizeof text, "result=%d", result);
    log_line("end", name, text);
    if (domain)
        nvtxDomainRangePop(domain);
    return result;
}
