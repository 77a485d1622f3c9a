/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `export`: recordings as a file that other programs read (export_formats.def). */
#ifndef GPUPROF_COLLECTOR_EXPORT_VERB_H
#define GPUPROF_COLLECTOR_EXPORT_VERB_H

#include "base/exit_code.h"
#include "base/options.h"

enum exit_code export_verb(const struct options *options);

#endif
