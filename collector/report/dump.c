/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `dump`: prints files as text, for people and tests, in the order of the file; one line
 * per header, block and event. Words are separated by one blank, numbers are decimal or 0x and hex,
 * times are nanoseconds on the process's own scale, strings are JSON strings.
 *
 *   file PATH
 *   header process_id= boot_id= host="" pid= parent= pid_namespace= start_time= api_crc= clock=
 *       ticks_zero= mult= monotonic_zero_ns= realtime_zero_ns= live_path=""
 *   block at=OFFSET sequence= thread= records= min_ns= max_ns= position=BEGIN..END payload= stored=
 *       ("at=live" for blocks of the live file), then "damaged" if its content is not valid
 *   call SYMBOL begin= dur= result= [error=NAME] LABEL=VALUE... thread= tid= [correlation=]
 *       [weight=] [stack=] [captured] [nested] [stale] [open]
 *       after a kernel's handle: LABEL_name="demangled", if the file names it
 *   TYPE begin= [dur=] [code=] LABEL=VALUE... [kernel=""] [text=""] thread= tid= [correlation=]
 *   os_call ... function=NAME result= ...
 *   stack ... frames=MODULE+OFFSET,python:LOCATION,ADDRESS (innermost first)
 *       (other records; kinds as words if they have any, one with a blank in it as a string)
 *   losses KEY=VALUE...
 */

#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/api_error.h"
#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/options.h"
#include "bytes.h"
#include "error.h"
#include "frame.h"
#include "output/output.h"
#include "read/recording.h"
#include "record/gpu_record.h"
#include "record/losses.h"
#include "record/op_record.h"
#include "resolve/device_sources.h"
#include "resolve/selection.h"
#include "resolve/stack_table.h"
#include "symbol/kernel_names.h"

#define PICK_NAME_BYTES 1024 /* the length to which a record's text is matched */

/*
 * Which records are printed with --from, --to, --tid, --kind, --name or --min-duration: those that
 * match every filter. Records are not correlated, so no event walk is needed. GPU work counts for
 * the thread that recorded it. Records that only describe others have no kind.
 */
struct dump_pick {
    const struct select_request *request; /* NULL: every record is printed */
    uint64_t from_ns;
    uint64_t to_ns;
    regex_t name;
    bool has_name;
};

struct dump {
    struct recording rec;
    struct output out;
    FILE *text; /* a view of the stream of `out` */
    struct process *process;
    struct losses *losses; /* owned, by process index: from loading and from this pass */
    struct losses *met;    /* those of `process` */
    struct kernel_names texts;
    struct kernel_handles handles; /* from NAME; `kernels`: from KERNEL_NAME */
    struct kernel_handles kernels;
    struct stream_scan scan;
    struct {
        uint8_t *bytes; /* owned */
        size_t capacity;
    } payload;
    bool blocks_only;
    struct dump_pick pick;
    bool printed; /* a record was printed */
};

static enum exit_code dump_pick_make(struct dump_pick *p, const struct select_request *request,
                                     uint64_t origin_ns)
{
    p->request = request->is_given ? request : NULL;
    const struct select_moment *from = &request->from, *to = &request->to;
    p->from_ns = from->ns + (from->is_absolute || !from->is_given ? 0 : origin_ns);
    p->to_ns = to->is_given ? to->ns + (to->is_absolute ? 0 : origin_ns) : UINT64_MAX;
    p->has_name = request->name && regcomp(&p->name, request->name, REG_EXTENDED | REG_NOSUB) == 0;
    return p->from_ns < p->to_ns ? EXIT_OK : usage_error("dump: --to must be later than --from");
}

/* Does the name as in a trace, or the record's text, match? */
static bool dump_pick_names(const struct dump_pick *p, const struct record *r,
                            const struct function *f, const struct kernel_name *kernel)
{
    char text[PICK_NAME_BYTES];
    const char *name = f ? f->name : kernel ? kernel->shown : record_title(r, text);
    if (!name && r->bytes) {
        snprintf(text, sizeof text, "%.*s", (int)min_of(r->byte_count, PICK_NAME_BYTES),
                 (const char *)r->bytes);
        name = text;
    }
    return name && regexec(&p->name, name, 0, NULL, 0) == 0;
}

static bool dump_pick_has(const struct dump *d, const struct thread *thread, const struct record *r,
                          const struct function *f, const struct kernel_name *kernel)
{
    const struct dump_pick *p = &d->pick;
    const struct select_request *w = p->request;
    if (!w)
        return true;
    uint64_t begin_ns = clock_map_ns(&d->process->clock, r->begin);
    enum select_kind kind = selection_kind_of(r, f);
    return begin_ns >= p->from_ns && begin_ns < p->to_ns && r->duration >= w->min_ns &&
           number_list_has(&w->tids, thread->tid) &&
           (!w->kinds || (kind != SELECT_KINDS && w->kinds & 1u << kind)) &&
           (!p->has_name || dump_pick_names(p, r, f, kernel));
}

/* Prints a name from the file; it may contain any bytes. */
static void print_name(const char *before, const char *name, FILE *out)
{
    char *line = json_line(name);
    fprintf(out, "%s%s", before, line);
    free(line);
}

static void print_id(const char *key, const uint8_t *id, FILE *out)
{
    fprintf(out, " %s=", key);
    for (int i = 0; i < 16; i++)
        fprintf(out, "%02x", id[i]);
}

static void print_header(const struct process *p, FILE *out)
{
    const struct stream_header *h = &p->header;
    print_name("file ", p->file.path, out);
    fputs("\nheader", out);
    print_id("process_id", h->process_id, out);
    print_id("boot_id", h->boot_id, out);
    json_printf(out, " host=%s pid=%u parent=%u pid_namespace=%" PRIu64 " start_time=%" PRIu64,
                h->host, h->pid, h->parent_pid, h->pid_namespace, h->start_time);
    fprintf(out, " api_crc=0x%08x", h->api_crc);
    json_printf(out,
                " clock=%u ticks_zero=%" PRIu64 " mult=%" PRIu64 " monotonic_zero_ns=%" PRIu64
                " realtime_zero_ns=%" PRIu64 " live_path=%s\n",
                h->scale.source, h->scale.ticks_zero, h->scale.mult, h->monotonic_zero_ns,
                h->realtime_zero_ns, h->live_path);
}

/* Both passes take names: a handle has its last name before the call, or else a later one. */
static void take_name(struct dump *d, const struct record *r)
{
    struct kernel_handles *handles = r->type == RECORD_NAME          ? &d->handles
                                     : r->type == RECORD_KERNEL_NAME ? &d->kernels
                                                                     : NULL;
    if (!handles || !r->bytes || r->arg_count < 1)
        return;
    kernel_name_set(&d->texts, handles, r->args[0], r->bytes, r->byte_count);
}

static void print_arg(const struct dump *d, const char *label, unsigned kind, uint64_t value)
{
    FILE *out = d->text;
    print_name(" ", label, out);
    fputc('=', out);
    argument_print(kind, value, out);
    const struct kernel_name *name = kind == ARG_KERNEL ? kernel_name_of(&d->handles, value) : NULL;
    if (name) {
        print_name(" ", label, out);
        fprintf(out, "_name=%s", name->json);
    }
}

static void print_call(struct dump *d, const struct record *r, const struct function *f)
{
    FILE *out = d->text;
    if (f && f->domain == FUNCTION_DOMAIN_ANY)
        d->met->unknown_functions++;
    fputs(event_info(r->type)->name, out);
    print_name(" ", f ? f->symbol : "?", out);
    fprintf(out, " begin=%llu dur=%llu result=%d", (unsigned long long)r->begin,
            (unsigned long long)r->duration, r->result);
    const char *error = f && r->result ? api_error_name(f->domain, r->result) : NULL;
    if (error)
        fprintf(out, " error=%s", error);
    for (unsigned i = 0; i < r->arg_count; i++) {
        struct shown_arg a;
        if (function_show(f, r->args, r->arg_count, i, &a))
            print_arg(d, a.label, a.kind, a.value);
    }
}

/* Prints the frames of a STACK record, " frames=3+0x4f,python:7,0x7f00", innermost first. */
static void dump_frames(const struct record *r, FILE *out)
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

/* Prints any other record, with the argument labels of events.def. */
static void print_other(const struct dump *d, const struct record *r,
                        const struct kernel_name *name)
{
    FILE *out = d->text;
    const struct event_info *info = event_info(r->type);
    if (info)
        fputs(info->name, out);
    else
        fprintf(out, "type_%u", r->type);
    fprintf(out, " begin=%llu", (unsigned long long)r->begin);
    if (r->duration)
        fprintf(out, " dur=%llu", (unsigned long long)r->duration);
    if (r->code || r->type == RECORD_API || r->type == RECORD_CALLBACK)
        fprintf(out, " code=%u", r->code);
    if (r->type == RECORD_OS_CALL) {
        char text[OS_TEXT_BYTES];
        print_name(" function=", os_function_name(&d->process->os, r, text), out);
        fprintf(out, " result=%d", r->result);
    }
    for (unsigned i = 0; i < r->arg_count; i++) {
        bool known = info && i < info->arg_count;
        if (known)
            fprintf(out, " %s=", info->args[i].label);
        else
            fprintf(out, " arg%u=", i);
        argument_print(known ? info->args[i].kind : ARG_COUNT, r->args[i], out);
    }
    if (name)
        fprintf(out, " kernel=%s", name->json);
    if (r->type == RECORD_STACK) {
        dump_frames(r, out);
    } else if (r->type == RECORD_OP_INPUTS) {
        fputs(" values=\"", out);
        op_values_print(r, out);
        fputc('"', out);
    } else if (r->bytes) {
        char *quoted = json_string((const char *)r->bytes, r->byte_count);
        fprintf(out, " text=%s", quoted);
        free(quoted);
    }
}

static void print_record(struct dump *d, const struct record *r, const struct thread *thread)
{
    FILE *out = d->text;
    const struct function *f =
        record_has_function(r->type)
            ? function_of(&d->rec.reader.functions, &d->process->codes, r->code)
            : NULL;
    const struct kernel_name *kernel =
        r->type == RECORD_KERNEL && record_arg(r, KERNEL_NAME_INDEX)
            ? kernel_name_of(&d->kernels, record_arg(r, KERNEL_NAME_INDEX))
            : NULL;
    d->met->stacks_unread += !stack_record_is_good(r);
    d->met->devices_unread |= r->type == RECORD_DEVICE_ABSENT && device_missing_of_all(r);
    if (!dump_pick_has(d, thread, r, f, kernel))
        return;
    d->printed = true;
    if (record_has_function(r->type))
        print_call(d, r, f);
    else
        print_other(d, r, kernel);
    fprintf(out, " thread=%u", thread->number);
    if (r->type != RECORD_THREAD) /* a THREAD record has it among its arguments */
        fprintf(out, " tid=%u", thread->tid);
    if (r->correlation)
        fprintf(out, " correlation=%u", r->correlation);
    if (r->weight > 1)
        fprintf(out, " weight=%u", r->weight);
    if (r->stack_id)
        fprintf(out, " stack=%u", r->stack_id);
    fprintf(out, "%s%s%s%s%s\n", r->flags & RECORD_CAPTURED ? " captured" : "",
            r->flags & RECORD_NESTED ? " nested" : "", r->flags & RECORD_STALE ? " stale" : "",
            r->flags & RECORD_OPEN ? " open" : "", r->flags & RECORD_TRACED ? " traced" : "");
}

static void print_block(const struct block_place *place, bool damaged, FILE *out)
{
    const struct block_header *h = &place->header;
    fprintf(out, place->offset & LIVE_BLOCK ? "block at=live" : "block at=%" PRIu64, place->offset);
    fprintf(out,
            " sequence=%" PRIu64 " thread=%u records=%u min_ns=%" PRIu64 " max_ns=%" PRIu64
            " position=%" PRIu64 "..%" PRIu64 " payload=%u stored=%u%s\n",
            h->sequence, h->thread, h->record_count, h->min_ns, h->max_ns, h->position_begin,
            h->position_end, h->payload_bytes, h->stored_bytes, damaged ? " damaged" : "");
}

/* Reads a block and takes its names. Prints it and its events if asked to. */
static int dump_take_block(struct dump *d, struct block_place *place, bool print)
{
    struct process *p = d->process;
    struct block_decoder decoder;
    struct record record;
    int error = process_block(p, &d->rec.reader, place, &d->payload.bytes, &d->payload.capacity);
    if (error == 0)
        error = block_decoder_init(&decoder, d->payload.bytes, place->header.payload_bytes,
                                   place->header.record_count);
    if (error == GPUPROF_IO)
        return error;
    if (print) {
        if (!d->pick.request || error < 0)
            print_block(place, error < 0, d->text);
        d->met->damaged_blocks += error < 0;
        d->met->damaged_records += error < 0 ? place->header.record_count : 0;
    }
    if (error < 0)
        return 0;
    struct thread *thread = thread_find(&p->threads, place->header.thread);
    int more = 1;
    while (thread && !(print && (d->blocks_only || ferror(d->text))) &&
           (more = block_decoder_next(&decoder, &record)) > 0) {
        take_name(d, &record);
        if (print)
            print_record(d, &record, thread);
    }
    if (print && more < 0) {
        d->met->damaged_blocks++;
        fprintf(d->text, "damaged\n");
    }
    block_decoder_release(&decoder);
    return 0;
}

static int dump_walk(struct dump *d, bool print)
{
    struct process *p = d->process;
    struct block_place block = {0};
    int more;
    int error = 0;
    stream_scan_init(&d->scan, &p->file, &d->rec.reader.pool, p->file.first_block);
    while (error == 0 && !ferror(d->text) && (more = stream_scan_next(&d->scan, &block)) != 0)
        error = more < 0 ? more : dump_take_block(d, &block, print);
    for (uint32_t i = 0; error == 0 && i < p->live.count; i++) {
        struct block_place place = {.offset = LIVE_BLOCK | i};
        error = dump_take_block(d, &place, print);
    }
    return error;
}

static void dump_print_losses(const struct losses *l, FILE *out)
{
    fprintf(out, "losses");
    for (unsigned i = 0; i < LOSS_COUNT; i++)
        if (loss_value(l, i))
            fprintf(out, " %s=%llu", loss_info(i).key, (unsigned long long)loss_value(l, i));
    fputc('\n', out);
}

static int dump_process(struct dump *d, struct process *p)
{
    d->process = p;
    d->met = &d->losses[p->index];
    *d->met = p->losses;
    kernel_handles_release(&d->texts, &d->handles);
    kernel_handles_release(&d->texts, &d->kernels);
    print_header(p, d->text);
    int error = d->blocks_only ? 0 : dump_walk(d, false);
    if (error == 0)
        error = dump_walk(d, true);
    if (error == 0)
        dump_print_losses(d->met, d->text);
    if (error < 0)
        message("%s: %s", p->file.path,
                error == GPUPROF_IO ? strerror(errno) : gpuprof_error_text(error));
    return error;
}

/* Returns when the recording's first event began. */
static uint64_t first_event_ns(const struct recording *rec)
{
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        if (p->min_ns <= p->max_ns)
            first_ns = min_of(first_ns, clock_map_ns(&p->clock, p->min_ns));
    }
    return first_ns;
}

static enum exit_code dump_recording(struct dump *d, const struct select_request *request)
{
    uint64_t room = verb_output_room(recording_bytes(&d->rec));
    enum exit_code code = verb_output_open(&d->out, NULL, &room);
    if (code != EXIT_OK)
        return code;
    d->losses = memory_new(d->rec.count + 1u, sizeof *d->losses);
    d->text = d->out.stream;
    kernel_names_limit(&d->texts, recording_bytes(&d->rec));
    int error = 0;
    enum exit_code chosen =
        d->blocks_only && request->is_given
            ? usage_error("dump: --blocks prints no events that could be chosen")
            : dump_pick_make(&d->pick, request, first_event_ns(&d->rec));
    for (uint32_t i = 0; chosen == EXIT_OK && error == 0 && i < d->rec.count; i++)
        error = dump_process(d, d->rec.processes[i]);
    if (chosen == EXIT_OK && error == 0 && d->pick.request && !d->printed)
        chosen = usage_error("dump: no record is in the selection; --from and --to "
                             "count from the first event");
    code = verb_output_close(&d->out, NULL, error);
    return chosen == EXIT_OK ? code : chosen;
}

static enum exit_code dump_run(const struct options *options)
{
    const bool *blocks_only = options->own;
    struct dump d = {.blocks_only = *blocks_only};
    struct recording_options how = {
        .keep_live = true, .no_index = true, .select = &options->select};
    enum exit_code code = recording_open(&d.rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK)
        code = dump_recording(&d, &options->select);
    if (code == EXIT_OK)
        code = recording_verdict(&d.rec, d.losses, d.texts.dropped, options->strict);
    free(d.losses);
    free(d.payload.bytes);
    kernel_handles_release(&d.texts, &d.handles);
    kernel_handles_release(&d.texts, &d.kernels);
    kernel_names_release(&d.texts);
    if (d.pick.has_name)
        regfree(&d.pick.name);
    recording_release(&d.rec);
    return code;
}

static const struct option own_options[] = {
    {OPTIONS_OF(read_options, READ_TIME | READ_PROCESSES | READ_EVENTS)},
    {0, "blocks", NULL, .take = option_flag, .at = 0,
     "Print only the headers and blocks of the files, no events"},
    {OPTIONS_OF(read_options, READ_STRICT)},
    {0},
};

VERB_IS(dump, dump_run, own_options, VERB_OWN(bool, false), TAKES_RECORDINGS | VERB_MORE,
        "DIR|FILE...", "print the blocks and events of recordings as text",
        {PART_EXAMPLE, "gpuprof dump data | grep error=", "print each call that failed"},
        {PART_EXAMPLE, "gpuprof dump data --to=0.1 --kind=call,work",
         "print the calls and GPU work of the first tenth of a second"});
