/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs `report`, `memory` and `diff`, which write a page, too. */
#ifndef GPUPROF_COLLECTOR_PAGE_VERB_H
#define GPUPROF_COLLECTOR_PAGE_VERB_H

#include "base/exit_code.h"
#include "base/options.h"

enum exit_code page_verb(const struct options *options);
enum exit_code memory_page_verb(const struct options *options);
enum exit_code diff_page_verb(const struct options *options);

#endif
