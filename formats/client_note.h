/* SPDX-License-Identifier: Apache-2.0 */
/* The notes that say since when the device's records are another client's of CUPTI's, and since
 * when they are ours again. */
#ifndef GPUPROF_FORMATS_CLIENT_NOTE_H
#define GPUPROF_FORMATS_CLIENT_NOTE_H

/* Key of META records: what the library has to say of the recording. Repeated; all hold. */
#define META_NOTE "said"

/* ... by how many ns the program's CLOCK_MONOTONIC is ahead of the kernel's. */
#define META_CLOCK_AHEAD "clock_ahead"

#define CLIENT_NOTE_HAS "another client of CUPTI's has the GPU's records from here on"
#define CLIENT_NOTE_HAD "the GPU's records are gpuprof's again"

#endif
