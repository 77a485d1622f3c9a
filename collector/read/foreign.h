/* SPDX-License-Identifier: Apache-2.0 */
/* What gpuprof itself has written that is no recording, and who reads it. */
#ifndef GPUPROF_COLLECTOR_FOREIGN_H
#define GPUPROF_COLLECTOR_FOREIGN_H

#define PART_MAGIC 0x0054524150555047ull /* "GPUPART\0": a part of a report begins so */

/* What to do with the file at `path`, which is no recording: "; ..." to be put behind the message.
 */
const char *foreign_advice(const char *path);

#endif
