/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `view`: makes the page and the trace of recordings and serves them to a browser of this
 * machine (http_server.h) until the terminal, or whoever has started it, ends it. What is made lies
 * in files without a name: they go with us, whatever ends us.
 */
#ifndef GPUPROF_COLLECTOR_VIEW_H
#define GPUPROF_COLLECTOR_VIEW_H

#include "base/exit_code.h"
#include "base/options.h"

/* What is embedded (view_files.c). */
extern const char view_index[], view_perfetto[], view_script[], view_style[];

#endif
