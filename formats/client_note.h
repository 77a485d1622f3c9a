/* SPDX-License-Identifier: Apache-2.0 */
/* The notes that say since when the device's records are another client's of CUPTI's, and since
 * when they are ours again. */
#ifndef GPUPROF_FORMATS_CLIENT_NOTE_H
#define GPUPROF_FORMATS_CLIENT_NOTE_H

#define CLIENT_NOTE_HAS "another client of CUPTI's has the GPU's records from here on"
#define CLIENT_NOTE_HAD "the GPU's records are gpuprof's again"

#endif
