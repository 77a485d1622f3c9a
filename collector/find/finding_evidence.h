/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shows a finding of time: of all that was charged to it on its device, by name, the rows with
 * most time, and the line that most of it is at.
 */
#ifndef GPUPROF_COLLECTOR_FINDING_EVIDENCE_H
#define GPUPROF_COLLECTOR_FINDING_EVIDENCE_H

#include "find/finding.h"

/* Once places are named: of the device at that place of idle.h's, or of what others waited for its
 * process. 0 or GPUPROF_NO_MEMORY. */
int finding_add_evidence(const struct findings *f, struct finding *to, uint32_t place);

#endif
