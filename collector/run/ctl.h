/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `ctl`: has running processes start or stop recording, or say which they do, through the
 * control file of their data folder (formats/control_text.h), and waits for their answers.
 */
#ifndef GPUPROF_COLLECTOR_CTL_H
#define GPUPROF_COLLECTOR_CTL_H

#include "base/exit_code.h"
#include "base/options.h"

/* EXIT_ENVIRONMENT: some did not answer; they are named. */
enum exit_code ctl_verb(const struct options *options);

#endif
