/* SPDX-License-Identifier: Apache-2.0 */
/* The files that are served, put into the program by the assembler. This file is compiled without
 * link-time optimisation, which would not see their names (Makefile). */
#include "view/view.h"

#define EMBED(symbol, file)                                                                        \
    __asm__(".pushsection .rodata\n.globl " symbol "\n" symbol ":\n.incbin \"collector/view/" file \
            "\"\n.byte 0\n.popsection\n")

EMBED("view_index", "index.html");
EMBED("view_perfetto", "perfetto.html");
EMBED("view_script", "perfetto.js");
EMBED("view_style", "view.css");
