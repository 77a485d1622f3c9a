/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer of NVML's means, in words: nvml_results.def. */
#ifndef GPUPROF_FORMATS_NVML_RESULTS_H
#define GPUPROF_FORMATS_NVML_RESULTS_H

/* "no permission"; of a number that is none of them "an error that gpuprof does not know". */
const char *nvml_result_text(int result);

#endif
