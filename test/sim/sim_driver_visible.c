/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_VISIBLE_DEVICES, as the real driver takes it: a list of numbers, or of UUIDs ("GPU-...",
 * "MIG-...") of which the first characters are enough if they fit one device alone. The devices are
 * those of the list, in its order; what is no device ends it, and one that is named twice leaves
 * none. Of parts (MIG) a process has one at most.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"
#include "sim_nvml.h"

#define ENTRY_BYTES 48

static void uuid_text(int device, const char *head, char text[static ENTRY_BYTES])
{
    char raw[] = "simulated-gpu-00";
    raw[14] = (char)('0' + device / 10 % 10);
    raw[15] = (char)('0' + device % 10);
    if (strcmp(head, "MIG-") == 0)
        memcpy(raw + SIM_MIG_NAME_AT, SIM_MIG_NAME, sizeof SIM_MIG_NAME - 1);
    int n = snprintf(text, ENTRY_BYTES, "%s", head);
    for (unsigned i = 0; i < 16; i++)
        n += snprintf(text + n, ENTRY_BYTES - (size_t)n, "%s%02x",
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)raw[i]);
}

/* -1: none, or more than one. */
static int device_of(const char *entry, size_t length, int count)
{
    const char *head = strncmp(entry, "MIG-", 4) == 0 ? "MIG-" : "GPU-";
    int found = -1;
    if (strncmp(entry, head, 4) != 0) {
        char *end;
        long number = strtol(entry, &end, 10);
        return end != entry && number >= 0 && number < count ? (int)number : -1;
    }
    for (int i = 0; i < count; i++) {
        char text[ENTRY_BYTES];
        uuid_text(i, head, text);
        if (strncmp(text, entry, length) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return *head == 'M' && !getenv("SIMCUDA_MIG") ? -1 : found;
}

int devices_visible(int count, int devices[static DEVICE_COUNT_MAX])
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int visible = 0;
    for (; !list && visible < count; visible++)
        devices[visible] = visible;
    for (const char *entry = list; entry && *entry;) {
        size_t length = strcspn(entry, ",");
        int device = device_of(entry, length, count);
        if (device < 0)
            break;
        for (int i = 0; i < visible; i++)
            if (devices[i] == device)
                return 0;
        devices[visible++] = device;
        if (strncmp(entry, "MIG-", 4) == 0)
            break;
        entry += length;
        entry += *entry == ',';
    }
    return visible;
}
