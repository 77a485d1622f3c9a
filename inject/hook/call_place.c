/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/call_place.h"

#include "record/stack_place.h"

bool call_is_live_afar(const struct call *outer, const struct call *inner)
{
    uintptr_t at = (uintptr_t)outer;
    return !stack_place_is_gone(at, (uintptr_t)inner) &&
           call_has_mark(outer, stack_place_word((uintptr_t)&outer->mark));
}
