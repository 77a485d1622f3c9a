/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for NVML's results: nvml_results.def. */
#ifndef GPUPROF_FORMATS_NVML_RESULTS_H
#define GPUPROF_FORMATS_NVML_RESULTS_H

/* Returns a text such as "no permission"; for an unknown number "an error that gpuprof does not
 * know". */
const char *nvml_result_text(int result);

#endif
