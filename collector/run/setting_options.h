/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a recording (settings.def) as options of a verb: --NAME=VALUE, or --NAME and the
 * value as the next word; a switch needs none.
 */
#ifndef GPUPROF_COLLECTOR_SETTING_OPTIONS_H
#define GPUPROF_COLLECTOR_SETTING_OPTIONS_H

#include "base/exit_code.h"
#include "base/options.h"
#include "settings.h"

/* Where the data goes when nothing is said, as help names it. */
#define DATA_FOLDER_PATTERN "gpuprof.PROGRAM.TIME"

/*
 * Takes the option at argv[*at], which is left at its last word, into `values`, of SETTING_COUNT,
 * as a view. Of what is no setting, or has a wrong value, one line on stderr and EXIT_USAGE; `set`
 * are the options that a hint may name.
 */
enum exit_code setting_option_take(const char *verb, option_set set, const char **values,
                                   char **argv, int *at);

/* The same of one that is known already. */
enum exit_code setting_option_set(const char *verb, const char **values, enum setting_index index,
                                  const char *value);

#endif
