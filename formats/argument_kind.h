/* SPDX-License-Identifier: Apache-2.0 */
/* What the arguments of calls and records are: the rows of argument_kinds.def. */
#ifndef GPUPROF_FORMATS_ARGUMENT_KIND_H
#define GPUPROF_FORMATS_ARGUMENT_KIND_H

enum arg_kind {
#define CALL_ARGUMENT(NAME, ...) ARG_##NAME,
#include "argument_kinds.def"
    ARG_CALL_KIND_COUNT, /* a call has none of those from here on */
#define RECORD_ARGUMENT(NAME, ...) ARG_##NAME,
#include "argument_kinds.def"
    ARG_KIND_END
};

const char *arg_kind_name(unsigned kind); /* "address", ...; "?" if there is none */

#endif
