/* SPDX-License-Identifier: Apache-2.0 */
#include "record/gpu_record.h"

#include <string.h>

#include "argument_kind.h"
#include "base/array.h"
#include "base/json_text.h"

#define VOLUME_MAX (1ull << 62)

WORDS(copy_kind, "unknown", "unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA",
      "DtoD", "HtoH", "PtoP");
static WORDS(memory_kind, "Unknown", "Unknown", "Pageable", "Pinned", "Device", "Array", "Managed",
             "Device Static", "Managed Static");
WORDS(sync_kind, "Sync", "Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync");
static WORDS(memory_operation, "unknown", "unknown", "allocate", "release");
static WORDS(pool_operation, "unknown", "unknown", "create", "destroy", "trim");
WORDS(object_kind, "unknown", "unknown", "process", "thread", "device", "context", "stream");
static WORDS(payload_type, "none", "none", "u64", "i64", "double", "u32", "i32", "float");
static WORDS(label, "unknown", "unknown", "domain", "string", "category", "thread");
static WORDS(later_overhead, "Overhead", "Overhead", "Buffer Flush", "Instrumentation", "Resource",
             "Runtime Triggered Module Loading", "Lazy Function Loading", "Command Buffer Full",
             "Activity Buffer Request", "UVM Activity Init");

const char *overhead_kind_text(uint64_t kind)
{
    /* CUPTI numbers the first kind 1 and all others in steps of 65536. */
    return kind == 1 ? "Driver Compiler" : later_overhead_text(kind & 0xffff ? 0 : kind >> 16);
}

static const char *label_kind_text(uint64_t kind)
{
    return kind >= 0x10000 ? "resource" : label_text(kind);
}

char *copy_title(uint64_t kind, uint64_t source, uint64_t destination, char *text)
{
    snprintf(text, GPU_TITLE_BYTES, "Memcpy %s (%s -> %s)", copy_kind_text(kind),
             memory_kind_text(source), memory_kind_text(destination));
    return text;
}

char *set_title(uint64_t kind, char *text)
{
    snprintf(text, GPU_TITLE_BYTES, "Memset (%s)", memory_kind_text(kind));
    return text;
}

uint64_t record_device(const struct record *r)
{
    switch (r->type) {
    case RECORD_MEMORY: return record_arg(r, MEMORY_DEVICE);
    case RECORD_TENSOR: return record_arg(r, TENSOR_DEVICE);
    case RECORD_TENSOR_OOM: return record_arg(r, TENSOR_OOM_DEVICE);
    default: return is_stream_work(r->type) ? record_arg(r, KERNEL_DEVICE) : UINT64_MAX;
    }
}

const char *record_title(const struct record *r, char text[GPU_TITLE_BYTES])
{
    switch (r->type) {
    case RECORD_KERNEL:
        snprintf(text, GPU_TITLE_BYTES, "kernel %llu",
                 (unsigned long long)record_arg(r, KERNEL_NAME_INDEX));
        return text;
    case RECORD_COPY:
        return copy_title(record_arg(r, COPY_KIND), record_arg(r, COPY_SOURCE),
                          record_arg(r, COPY_DESTINATION), text);
    case RECORD_SET: return set_title(record_arg(r, SET_KIND), text);
    case RECORD_GRAPH:
        snprintf(text, GPU_TITLE_BYTES, "CUDA graph %llu",
                 (unsigned long long)record_arg(r, GRAPH_GRAPH));
        return text;
    case RECORD_SYNC: return sync_kind_text(record_arg(r, SYNC_KIND));
    case RECORD_OVERHEAD: return overhead_kind_text(record_arg(r, OVERHEAD_KIND));
    case RECORD_MEMORY: return memory_operation_text(record_arg(r, MEMORY_OPERATION));
    case RECORD_TENSOR: return memory_operation_text(record_arg(r, TENSOR_OPERATION));
    case RECORD_TENSOR_OOM: return "out of memory";
    case RECORD_GIL:
        return r->code == GIL_HELD      ? "GIL held"
               : r->code == GIL_STOPPED ? "stop of the world"
                                        : "wait for the GIL";
    case RECORD_GC: return "garbage collection";
    case RECORD_STEP:
    case RECORD_PAUSE:
    case RECORD_WINDOW:
    case RECORD_DUMP: return event_info(r->type)->name;
    default: return NULL;
    }
}

uint64_t dim3_volume(uint64_t dim3)
{
    unsigned __int128 volume = (unsigned __int128)(uint32_t)dim3 * (dim3 >> 32 & 0xffff);
    volume *= dim3 >> 48;
    return volume < VOLUME_MAX ? (uint64_t)volume : VOLUME_MAX;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* By the numbers of library_types.h and cublas_api.h. "c" is the prefix of a complex type. */
WORDS(cuda_type, NULL, "f32", "f64", "f16", "i8", "cf32", "cf64", "cf16", "ci8", "u8", "cu8", "i32",
      "ci32", "u32", "cu32", "bf16", "cbf16", "i4", "ci4", "u4", "cu4", "i16", "ci16", "u16",
      "cu16", "i64", "ci64", "u64", "cu64", "e4m3", "e5m2", "ue8m0", "e2m3", "e3m2", "e2m1");
WORDS(compute_type,
      NULL, [64] = "f16", [65] = "f16-pedantic", [68] = "f32", [69] = "f32-pedantic", [70] = "f64",
      [71] = "f64-pedantic", [72] = "i32", [73] = "i32-pedantic", [74] = "f32-fast-f16",
      [75] = "f32-fast-bf16", [77] = "f32-fast-tf32", [78] = "f32-emulated-bf16x9");
static WORDS(transpose, NULL, "n", "t", "c", "conjugate");
static WORDS(nccl_type, NULL, "i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16",
             "e4m3", "e5m2");
static WORDS(nccl_op, NULL, "sum", "prod", "max", "min", "avg");
/* enum cudaMemcpyKind */
static WORDS(direction, NULL, "HtoH", "HtoD", "DtoH", "DtoD", "default");

static const char *stream_text(uint64_t value)
{
    return value == GPU_STREAM_NONE ? "none" : NULL;
}

/* Whether the word is specific; a value with a generic word is printed as a number. */
static bool argument_text_is_word(const char *word)
{
    static const char *const others[] = {"unknown", "Unknown", "Sync", "Overhead"};
    for (size_t i = 0; word && i < sizeof others / sizeof others[0]; i++)
        if (strcmp(word, others[i]) == 0)
            return false;
    return word;
}

static char *write_number(uint64_t value, char *out)
{
    return json_number(out, value);
}

/* Prints a size that looks negative as such: the program computed it wrongly. */
static char *write_count(uint64_t value, char *out)
{
    if (value <= INT64_MAX || -value > JSON_EXACT_MAX)
        return write_number(value, out);
    *out++ = '-';
    return json_decimal(out, -value);
}

static char *write_known(uint64_t value, char *out)
{
    return value ? write_number(value - 1, out) : (char *)memcpy(out, "null", 4) + 4;
}

static char *write_hex(uint64_t value, char *out)
{
    *out++ = '"';
    out = json_hex(out, value);
    *out++ = '"';
    return out;
}

static char *write_signed(uint64_t value, char *out)
{
    return json_signed(out, value);
}

static char *write_dim3(uint64_t value, char *out)
{
    *out++ = '[';
    out = json_decimal(out, (uint32_t)value);
    *out++ = ',';
    out = json_decimal(out, value >> 32 & 0xffff);
    *out++ = ',';
    out = json_decimal(out, value >> 48);
    *out++ = ']';
    return out;
}

static char *write_word(const char *word, uint64_t value, char *out)
{
    return argument_text_is_word(word) ? json_escape(out, word, strlen(word))
                                       : write_number(value, out);
}

#define WRITER_OF_WORDS(name)                                                                      \
    static char *write_##name(uint64_t value, char *out)                                           \
    {                                                                                              \
        return write_word(name##_text(value), value, out);                                         \
    }
WRITER_OF_WORDS(direction)
WRITER_OF_WORDS(stream)
WRITER_OF_WORDS(copy_kind)
WRITER_OF_WORDS(memory_kind)
WRITER_OF_WORDS(sync_kind)
WRITER_OF_WORDS(overhead_kind)
WRITER_OF_WORDS(object_kind)
WRITER_OF_WORDS(memory_operation)
WRITER_OF_WORDS(pool_operation)
WRITER_OF_WORDS(payload_type)
WRITER_OF_WORDS(label_kind)
WRITER_OF_WORDS(cuda_type)
WRITER_OF_WORDS(compute_type)
WRITER_OF_WORDS(transpose)
WRITER_OF_WORDS(nccl_type)
WRITER_OF_WORDS(nccl_op)

char *argument_json(unsigned kind, uint64_t value, char *out)
{
    static char *(*const writers[ARG_KIND_END])(uint64_t value, char *out) = {
#define CALL_ARGUMENT(NAME, name, printer)   [ARG_##NAME] = write_##printer,
#define RECORD_ARGUMENT(NAME, name, printer) [ARG_##NAME] = write_##printer,
#include "argument_kinds.def"
    };
    return (kind < ARG_KIND_END && writers[kind] ? writers[kind] : write_hex)(value, out);
}

/* Leaves out the quotes of a single word, and the brackets of a list. */
void argument_print(unsigned kind, uint64_t value, FILE *out)
{
    char json[ARGUMENT_JSON_BYTES + 1];
    *argument_json(kind, value, json) = '\0';
    bool is_bare = *json == '[' || (*json == '"' && !strchr(json, ' '));
    if (strcmp(json, "null") == 0)
        fputs("-", out);
    else
        fprintf(out, "%.*s", (int)strlen(json) - 2 * is_bare, json + is_bare);
}

char *payload_json(uint64_t type, uint64_t value, char *out)
{
    char text[JSON_REAL_MAX + 1];
    double number;
    float single;
    memcpy(&number, &value, sizeof number);
    memcpy(&single, &value, sizeof single); /* the low half: all machines here are little-endian */
    switch (type) {
    case 1: return json_number(out, value);
    case 2: snprintf(text, sizeof text, "%lld", (long long)value); break;
    case 3: *json_real(text, number, false) = '\0'; break;
    case 4: return json_decimal(out, (uint32_t)value);
    case 5: return json_signed(out, value);
    case 6: *json_real(text, (double)single, true) = '\0'; break;
    default: return write_hex(value, out);
    }
    return json_escape(out, text, strlen(text));
}

/* ---- silences -------------------------------------------------------------------------------- */

#define PART_LEAST 10 /* parts below this fraction of a silence are not separated */
#define BURST_MOST 4  /* a thread may wait in calls that take so many times the silence */

enum { RAN, WAITED, DELAYED, OFF, PARTS };

/* Computes the shares; small parts are added to the largest one. */
static struct silence_look shares_of(uint64_t ns[static PARTS], uint64_t all_ns)
{
    uint32_t shares[PARTS], most = RAN;
    for (unsigned i = 0; i < PARTS; i++)
        most = ns[i] > ns[most] ? i : most;
    for (unsigned i = 0; i < PARTS; i++) {
        bool is_small = ns[i] < all_ns / PART_LEAST;
        shares[i] = is_small ? 0 : (uint32_t)((double)SILENCE_ALL * (double)ns[i] / (double)all_ns);
    }
    shares[most] = 0;
    shares[most] = SILENCE_ALL - shares[RAN] - shares[WAITED] - shares[DELAYED] - shares[OFF];
    return (struct silence_look){shares[WAITED], shares[DELAYED], shares[OFF], true};
}

/* Assumes that a thread runs while it makes calls one after another, so it waited in the silence.
 * Preemption is spread over both. */
bool silence_look_of(const struct record *r, struct silence_look *look)
{
    uint64_t silent_ns = record_arg(r, SILENCE_NS), since_ns = record_arg(r, SILENCE_SINCE);
    uint64_t delay_ns = record_arg(r, SILENCE_DELAY), ns[PARTS] = {0};
    if (!silent_ns || since_ns < silent_ns)
        return false;
    uint64_t burst_ns = since_ns - silent_ns;
    uint64_t off_ns = since_ns - min_of(record_arg(r, SILENCE_CPU), since_ns);
    uint64_t most_ns = min_of(off_ns, silent_ns);
    uint64_t least_ns = off_ns > burst_ns ? off_ns - burst_ns : 0;
    if (burst_ns / BURST_MOST > silent_ns && most_ns > least_ns + silent_ns / 2)
        return false;
    if (!delay_ns) {
        ns[OFF] = most_ns;
    } else {
        delay_ns = min_of(delay_ns - 1, off_ns);
        ns[WAITED] = min_of(off_ns - delay_ns, silent_ns);
        ns[DELAYED] = (uint64_t)((unsigned __int128)delay_ns * silent_ns / since_ns);
        ns[DELAYED] = min_of(ns[DELAYED], silent_ns - ns[WAITED]);
    }
    ns[RAN] = silent_ns - ns[WAITED] - ns[DELAYED] - ns[OFF];
    *look = shares_of(ns, silent_ns);
    return true;
}
