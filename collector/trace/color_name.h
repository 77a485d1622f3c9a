/* SPDX-License-Identifier: Apache-2.0 */
/* Viewers of Chrome's trace format take no colours, but the names of some (`cname`). */
#ifndef GPUPROF_COLLECTOR_COLOR_NAME_H
#define GPUPROF_COLLECTOR_COLOR_NAME_H

#include <stdint.h>

#define COLOR_NAME_BYTES 32 /* more than any has */

/* That of the colour that looks most like this one, 0xAARRGGBB; the first byte is not looked at. */
const char *color_name(uint32_t color);

#endif
