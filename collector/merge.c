/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `merge`: all calls of the recordings named, as one trace. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "message.h"
#include "options.h"
#include "trace_writer.h"
#include "verbs.h"

struct merge {
    struct recording rec;
    struct output out;
    const struct trace_format *format;
    struct trace_writer *writer;
    struct timeline *timeline;
    bool begun;
};

static int write_calls(struct merge *m)
{
    struct event event;
    int more;
    int error = 0;
    while ((more = timeline_next(m->timeline, &event)) > 0) {
        if (event.record->type != RECORD_CALL)
            continue;
        if (!m->begun) {
            m->begun = true;
            if ((error = m->format->begin(m->writer, event.begin_ns)) < 0)
                return error;
        }
        if ((error = m->format->call(m->writer, &event)) < 0)
            return error;
        if (m->out.error)
            return 0; /* output_finish reports it */
    }
    if (more < 0)
        return more;
    if (!m->begun)
        error = m->format->begin(m->writer, 0);
    return error < 0 ? error : m->format->end(m->writer);
}

static int merge_write(struct merge *m, const char *path)
{
    int error = output_open(&m->out, path);
    if (error == GPUPROF_USAGE) {
        message("%s: is a recording, and is not overwritten; name another file", path);
        return EXIT_USAGE;
    }
    if (error < 0) {
        message("%s: %s%s", path ? path : "standard output",
                error == GPUPROF_IO ? strerror(errno) : gpuprof_error_text(error),
                error == GPUPROF_IO ? writing_advice(errno) : "");
        return EXIT_ENVIRONMENT;
    }
    m->writer = m->format->create(&m->out, &m->rec);
    m->timeline = timeline_create(&m->rec, OPEN_BYTES_MAX);
    error = m->writer && m->timeline ? write_calls(m) : GPUPROF_NO_MEMORY;
    if (error < 0)
        message("%s: %s", m->timeline ? timeline_path(m->timeline) : "merge",
                error == GPUPROF_IO ? strerror(errno) : gpuprof_error_text(error));
    if (m->writer)
        m->format->free(m->writer);
    timeline_free(m->timeline);
    if (output_finish(&m->out, error == 0) < 0) {
        bool named = path && strcmp(path, "-") != 0;
        message("%s: %s%s", named ? path : "standard output", strerror(errno),
                named ? writing_advice(errno) : "");
        error = GPUPROF_IO;
    }
    return error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
}

int merge_verb(const struct options *options)
{
    struct merge m = {.format = &chrome_format};
    if (!options->output && isatty(STDOUT_FILENO))
        return usage_error("merge: the trace would go to the terminal; name a file: -o trace.json "
                           "(or -o - if you mean it)");
    struct recording_options how = {.keep_live = options->keep_live};
    int code = recording_open(&m.rec, options->paths, options->path_count, &how);
    if (code == EXIT_OK)
        code = merge_write(&m, options->output);
    if (code == EXIT_OK)
        code = recording_verdict(&m.rec, options->strict);
    recording_release(&m.rec);
    return code;
}
