/* SPDX-License-Identifier: Apache-2.0 */
/* Embeds the page's files with the assembler. Compiled without link-time optimisation, which would
 * not see their symbols (Makefile). */
#include "page/page.h"

#define EMBED(symbol, file)                                                                        \
    __asm__(".pushsection .rodata\n.globl " symbol "\n" symbol ":\n.incbin \"collector/page/" file \
            "\"\n.byte 0\n.popsection\n")

EMBED("page_head", "page.html");
EMBED("page_style", "page.css");
EMBED("page_script", "page.js");

#define SECTION(id, title, put)                                                                    \
    EMBED("section_" #id, #id ".js");                                                              \
    extern const char section_##id[];
#include "page/page_sections.def"
#undef SECTION

#define SECTION(id, title, put) {#id, title, section_##id, put},
const struct page_section page_sections[] = {
#include "page/page_sections.def"
    {0}};
#undef SECTION

EMBED("section_compare", "compare.js");
