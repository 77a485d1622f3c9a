/* SPDX-License-Identifier: Apache-2.0 */
#include "argument_kind.h"

#include <stddef.h>

const char *arg_kind_name(unsigned kind)
{
    static const char *const names[ARG_KIND_END] = {
#define CALL_ARGUMENT(NAME, name, ...)   [ARG_##NAME] = (name),
#define RECORD_ARGUMENT(NAME, name, ...) [ARG_##NAME] = (name),
#include "argument_kinds.def"
    };
    return kind < ARG_KIND_END && names[kind] ? names[kind] : "?";
}
