/* SPDX-License-Identifier: Apache-2.0 */
#include "record/stack_record.h"

#include <string.h>

#include "frame.h"
#include "record/gpu_record.h"

/* Is it a build id in hexadecimal digits? */
static bool is_build_id(const uint8_t *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
            return false;
    return length >= 2 && length % 2 == 0 && length <= 2u * BUILD_ID_MAX;
}

uint32_t stack_record_first_bytes(const struct record *r)
{
    const uint8_t *end =
        r->bytes ? memchr(r->bytes, r->type == RECORD_MODULE ? ' ' : '\0', r->byte_count) : NULL;
    return end ? (uint32_t)(end - r->bytes) : r->byte_count;
}

uint32_t stack_record_id_bytes(const struct record *r)
{
    uint32_t bytes = stack_record_first_bytes(r);
    return is_build_id(r->bytes, bytes) ? bytes : 0;
}

static bool is_good_module(const struct record *r)
{
    uint32_t bytes = stack_record_first_bytes(r);
    if (record_arg(r, STACK_STACK) > FRAME_MODULE_MAX || bytes >= r->byte_count)
        return false;
    /* Without a readable path its build id can find it. */
    return is_build_id(r->bytes, bytes) ||
           (bytes == 1 && r->bytes[0] == '-' && bytes + 1 < r->byte_count);
}

uint64_t stack_record_number(const struct record *r)
{
    return record_arg(r, r->type == RECORD_MODULE   ? MODULE_MODULE
                         : r->type == RECORD_PYTHON ? PYTHON_LOCATION
                                                    : STACK_STACK);
}

bool stack_record_is_good(const struct record *r)
{
    uint64_t number = stack_record_number(r);
    switch (r->type) {
    case RECORD_MODULE: return number && is_good_module(r);
    case RECORD_PYTHON: return number && stack_record_first_bytes(r) < r->byte_count;
    case RECORD_STACK:
        return number && number <= UINT32_MAX && r->byte_count && r->byte_count % 8 == 0;
    default: return true;
    }
}
