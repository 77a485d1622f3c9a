/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What frames.c and frames_cxx.cc share: here(LABEL) prints "LABEL OFFSET", the return address of
 * its caller's call less the place where the program's file begins in memory.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

__attribute__((noinline)) static void here(const char *label)
{
    Dl_info info;
    uintptr_t address = (uintptr_t)__builtin_return_address(0);
    if (dladdr((void *)address, &info))
        printf("%s %lx\n", label, (unsigned long)(address - (uintptr_t)info.dli_fbase));
}

#endif
