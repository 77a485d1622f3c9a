/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose frames test_symbols.py knows: functions inlined into functions, two deep. */
#include "frames.h"

static inline __attribute__((always_inline)) void innermost(void)
{
    here("inlined"); /* line 7 */
}

static inline __attribute__((always_inline)) void middle(void)
{
    innermost(); /* line 12 */
    __asm__ volatile("");
}

__attribute__((noinline)) void outer(void)
{
    middle(); /* line 18 */
    __asm__ volatile("");
}

static __attribute__((noinline)) void plain(void)
{
    here("plain"); /* line 24 */
    __asm__ volatile("");
}

int main(void)
{
    outer();
    plain();
#ifdef OTHER_BUILD
    printf("another build\n");
#endif
    return 0;
}
