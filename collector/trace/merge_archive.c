/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/merge_trace.h"

#include <stdio.h>
#include <string.h>

#include "error.h"
#include "output/verb_output.h"
#include "output/zip_writer.h"
#include "trace/gpu_rows.h"

#define MANIFEST_NAME "perfetto_manifest.json"

/*
 * Perfetto takes all members for one trace, in which each has a machine of its own; versions that
 * do not know that go by pids alone, which therefore differ. It must be the archive's first member
 * in the order of names or of places: it is in both.
 */
static int write_manifest(struct merge *m, struct zip_writer *zip, const struct rank_file *files)
{
    struct output member;
    int error = zip_writer_begin(zip, MANIFEST_NAME, &member);
    if (error < 0)
        return error;
    output_print(&member, "{\"perfetto_manifest\":{\"version\":1,\"files\":[");
    for (uint32_t i = 0; i < m->rec.count; i++) {
        const struct rank_file *f = &files[i];
        char machine[RANK_FILE_BYTES + STREAM_HOST_BYTES_MAX + 8];
        snprintf(machine, sizeof machine, "%.*s (%s)", (int)f->stem, f->name,
                 f->process->header.host);
        output_json(&member, i ? ",\n{\"path\":" : "\n{\"path\":", f->name);
        output_json(&member, ",\"machine\":{\"name\":", machine);
        output_print(&member, "}}");
    }
    output_write(&member, "\n]}}\n", 5);
    return zip_writer_end(zip, &member);
}

static int write_members(struct merge *m, struct zip_writer *zip, const char *path,
                         const struct rank_file *files)
{
    struct device_pids pids;
    device_pids_init(&pids, m->rec.processes, m->rec.count);
    int error = m->format->for_perfetto ? write_manifest(m, zip, files) : 0, failed = 0;
    for (uint32_t i = 0; error == 0 && failed == 0 && i < m->rec.count; i++) {
        struct trace_scope scope = {
            .only = files[i].process, .rank = files[i].rank, .pids = &pids, .name = files[i].name};
        struct output member;
        if ((error = zip_writer_begin(zip, files[i].name, &member)) < 0)
            break;
        member.room = &m->room;
        if (m->rec.is_parallel)
            member.in_background = true;
        uint64_t room = m->room;
        m->one.path = files[i].name;
        failed = merge_write_trace(m, &member, &scope); /* and it has said why */
        error = zip_writer_end(zip, &member);
        if (failed == 0 && error == 0) {
            m->one.text_bytes = room - m->room;
            merge_say_written(m, files[i].name);
        }
    }
    device_pids_release(&pids);
    if (failed < 0)
        return failed;
    if (error < 0)
        verb_output_failed(path, error);
    else
        zip_writer_finish(zip);
    return error;
}

enum exit_code merge_write_archive(struct merge *m, const char *path, const struct rank_file *files)
{
    struct output out;
    struct zip_writer zip;
    enum exit_code code = verb_output_open(&out, path, NULL); /* its members are bounded */
    if (code != EXIT_OK)
        return code;
    out.stays_plain = true;
    zip_writer_init(&zip, &out);
    int error = write_members(m, &zip, path, files);
    zip_writer_release(&zip);
    return merge_close(m, &out, path, error, true);
}
