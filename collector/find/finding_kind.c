/* SPDX-License-Identifier: Apache-2.0 */
#include "find/finding_kind.h"

const struct finding_kind finding_kinds[FINDING_KINDS] = {
#define FINDING(NAME, id, share, floor, title, advice, next)                                       \
    [FINDING_##NAME] = {id, share, floor * 1000000ull, title, advice, next},
#include "find/finding_kinds.def"
};
