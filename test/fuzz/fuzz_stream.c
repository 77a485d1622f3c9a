/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of everything that reads files. The lower four bits of the first byte say what the rest
 * is, the upper four what reads it (fuzz_outputs.c):
 *   0  a stream file
 *   1  a stream file whose checksums are put right first, so that what lies behind them is reached
 *   2  a block's payload
 *   3  a live file (its header put right), beside an empty stream file
 *   4  raw records
 *   5  a recorded path and the text of a source file (fuzz_source.c)
 *   6  a control file, or an answer to one (control_text.h)
 *   7  names of kernels (fuzz_kernels.c)
 *   8  a baseline file (fuzz_baseline.c)
 *   9  parts of a report (fuzz_parts.c)
 * With libFuzzer (`make fuzz`), or with fuzz_replay.c, which runs the seeds once.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyse/step_report.h"
#include "block.h"
#include "bytes.h"
#include "control_text.h"
#include "crc32c.h"
#include "fuzz_baseline.h"
#include "fuzz_kernels.h"
#include "fuzz_outputs.h"
#include "fuzz_parts.h"
#include "fuzz_source.h"
#include "live.h"
#include "rank.h"
#include "read/recording.h"
#include "record/gpu_record.h"
#include "report/report.h"
#include "trace/trace_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES_MAX (1u << 20)

static char folder[64];
static char stream_path[96];
static char live_path[96];

static void make_folder(void)
{
    if (folder[0])
        return;
    snprintf(folder, sizeof folder, "%s/gpuprof-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder))
        abort();
    snprintf(stream_path, sizeof stream_path, "%s/a.gpuprof", folder);
    snprintf(live_path, sizeof live_path, "%s/a.live", folder);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int take_slice(void *context, const struct slice *s)
{
    chrome_format.take(context, s);
    return 0;
}

static int end(void *context)
{
    chrome_format.end(context);
    return 0;
}

static void write_narrowly(struct recording *rec, struct output *out)
{
    static const struct merge_options options = {0};
    struct walk walk;
    struct trace_scope scope = {.rank = RANK_NONE, .options = &options};
    struct call_tree tree = {0};
    struct consumer consumer = {
        .needs = WALK_SPANS | WALK_WORK | WALK_LOSSES, .take = take_slice, .end = end};
    walk_init(&walk, rec);
    walk.open_bytes_max = rec->processes[0]->file.size % 2 ? 4096 : OPEN_BYTES_MAX;
    if (walk_survey(&walk) == 0) {
        scope.survey = &walk.survey;
        call_tree_init(&tree, &walk.survey, NULL, SYMBOLS_OFF);
        scope.tree = &tree;
        consumer.context = chrome_format.create(out, &walk, &scope);
        if (consumer.context)
            walk_run(&walk, NULL, &consumer, 1);
        chrome_format.free(consumer.context);
    }
    call_tree_release(&tree);
    walk_release(&walk);
}

/* Reads the folder as merge does, with little room; the trace goes nowhere. */
static void read_narrowly(void)
{
    struct recording rec;
    struct output out;
    struct report report;
    struct recording_options options = {.keep_live = true};
    char *paths[] = {folder};
    if (recording_open(&rec, paths, 1, &options) == EXIT_OK) {
        if (output_open(&out, "/dev/null") < 0)
            abort();
        write_narrowly(&rec, &out);
        output_finish(&out, 0);
        enum report_by by = rec.processes[0]->file.size % 3 ? BY_PYTHON_LINE : BY_GRID;
        struct step_request steps = {.is_wanted = true, .by = by == BY_GRID ? "optimizer" : NULL};
        struct report_request request = {
            .by = by, .groups = by != BY_GRID, .symbols = SYMBOLS_OFF, .steps = &steps};
        report_make(&report, &rec, &request);
        report_release(&report);
    }
    recording_release(&rec);
}

static void read_folder(unsigned how)
{
    if (how % (1 + FUZZ_OUTPUTS) == 0)
        read_narrowly();
    else
        fuzz_output(how % (1 + FUZZ_OUTPUTS) - 1, folder);
}

/* Makes every checksum hold that stands where one should. */
static void repair(uint8_t *data, size_t size)
{
    if (size < 132)
        return;
    size_t at = 8 + (size_t)load_u32(data + 4);
    if (at < 12 || at > size)
        return;
    store_u32(data + at - 4, crc32c(0, data, at - 4));
    while (size - at >= BLOCK_HEADER_BYTES) {
        uint8_t *head = data + at;
        size_t head_bytes = 8 + (size_t)load_u32(head + 4);
        if (head_bytes < BLOCK_HEADER_BYTES || head_bytes > size - at)
            return;
        size_t stored = load_u32(head + 64);
        if (stored <= size - at - head_bytes)
            store_u32(head + 68, crc32c(0, head + head_bytes, stored));
        store_u32(head + head_bytes - 4, crc32c(0, head, head_bytes - 4));
        at += head_bytes;
        at += stored <= size - at ? stored : size - at;
    }
}

static void read_payload(const uint8_t *data, size_t size)
{
    struct block_decoder decoder;
    struct record record;
    if (size < 2)
        return;
    /* In memory of its own, so that a read behind its end is seen. */
    uint8_t *payload = malloc(size - 2);
    if (!payload)
        abort();
    memcpy(payload, data + 2, size - 2);
    if (block_decoder_init(&decoder, payload, size - 2, load_u16(data)) == 0) {
        while (block_decoder_next(&decoder, &record) > 0)
            ;
        block_decoder_release(&decoder);
    }
    free(payload);
}

static void read_records(const uint8_t *data, size_t size)
{
    struct record record;
    uint8_t raw[8 * RECORD_WORDS_MAX];
    size_t at = 0;
    int length;
    while (at < size && (length = record_parse(data + at, size - at, &record)) > 0) {
        if (record_write(&record, raw, sizeof raw) <= 0)
            abort(); /* what could be read can be written */
        at += (size_t)length;
    }
}

/* What can be read can be written, and is then the same. */
static void read_control(const char *data, size_t size)
{
    static struct control_text text, again;
    static struct control_status status, same;
    static char out[CONTROL_BYTES_MAX], twice[CONTROL_BYTES_MAX];
    if (control_text_parse(&text, data, size)) {
        size_t bytes = control_text_write(&text, out);
        if (!control_text_parse(&again, out, bytes) || again.count != text.count ||
            control_text_write(&again, twice) != bytes || memcmp(out, twice, bytes) != 0)
            abort();
        for (unsigned i = 0; text.count && i < CONTROL_COMMANDS_MAX + 1; i++)
            control_text_add(&again, &text.commands[i % text.count]);
        if (again.count > CONTROL_COMMANDS_MAX ||
            (text.count &&
             !control_text_has(&again, text.commands[CONTROL_COMMANDS_MAX % text.count].id)))
            abort(); /* that was added last */
    }
    if (control_status_parse(&status, data, size)) {
        size_t bytes = control_status_write(&status, out);
        if (!control_status_parse(&same, out, bytes) ||
            control_status_write(&same, twice) != bytes || memcmp(out, twice, bytes) != 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t copy[INPUT_BYTES_MAX];
    if (size < 1 || size > INPUT_BYTES_MAX)
        return 0;
    unsigned mode = data[0] & 15;
    unsigned how = data[0] >> 4;
    data++;
    size--;
    memcpy(copy, data, size);
    make_folder();
    switch (mode) {
    case 1: repair(copy, size); /* fall through */
    case 0:
        fuzz_write(stream_path, copy, size);
        read_folder(how);
        break;
    case 2: read_payload(data, size); break;
    case 3:
        repair(copy, size < STREAM_HEADER_BYTES_MAX ? size : STREAM_HEADER_BYTES_MAX);
        fuzz_write(stream_path, copy, 0);
        fuzz_write(live_path, copy, size);
        read_folder(how);
        break;
    case 4: read_records(data, size); break;
    case 5: fuzz_source(folder, data, size); break;
    case 6: read_control((const char *)data, size); break;
    case 7: fuzz_kernels(data, size); break;
    case 8: fuzz_baseline((const char *)data, size); break;
    case 9: fuzz_parts(folder, copy, size, how); break;
    default: break;
    }
    remove_folder();
    folder[0] = '\0';
    return 0;
}
