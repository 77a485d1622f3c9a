/* SPDX-License-Identifier: Apache-2.0 */
#include "argument_kind.h"

const char *arg_kind_name(unsigned kind)
{
    static const char *const names[] = {
#define CALL_ARGUMENT(NAME, name, ...) [ARG_##NAME] = (name),
#include "argument_kinds.def"
    };
    return kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}
