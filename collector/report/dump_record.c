/* SPDX-License-Identifier: Apache-2.0 */
#include "report/dump_record.h"

#include "bytes.h"
#include "frame.h"

void dump_frames(const struct record *r, FILE *out)
{
    fputs(" frames=", out);
    for (uint32_t i = 0; i + 8 <= r->byte_count; i += 8) {
        uint64_t frame = load_u64(r->bytes + i);
        if (i)
            fputc(',', out);
        switch (frame_kind(frame)) {
        case FRAME_MODULE:
            fprintf(out, "%u+0x%llx", frame_module(frame), (unsigned long long)frame_offset(frame));
            break;
        case FRAME_ADDRESS: fprintf(out, "0x%llx", (unsigned long long)frame_address(frame)); break;
        case FRAME_PYTHON: fprintf(out, "python:%u", frame_python(frame)); break;
        default: fprintf(out, "?0x%llx", (unsigned long long)frame); break;
        }
    }
    if (r->byte_count % 8)
        fputs(",cut", out);
}
