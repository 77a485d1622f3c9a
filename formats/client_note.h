/* SPDX-License-Identifier: Apache-2.0 */
/* The notes that say since when another CUPTI client has the device records, and since when they
 * are ours again. */
#ifndef GPUPROF_FORMATS_CLIENT_NOTE_H
#define GPUPROF_FORMATS_CLIENT_NOTE_H

/* Key of META records with a note of the library on the recording. Repeated; all are valid. */
#define META_NOTE "said"

/* How many ns the program's CLOCK_MONOTONIC is ahead of the kernel's. */
#define META_CLOCK_AHEAD "clock_ahead"

#define CLIENT_NOTE_HAS "another client of CUPTI's has the GPU's records from here on"
#define CLIENT_NOTE_HAD "the GPU's records are gpuprof's again"

#endif
