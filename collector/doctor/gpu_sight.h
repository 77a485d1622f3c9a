/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CUDA and CUPTI answer here. They are asked in a process of their own: without a driver some
 * libcupti crash at any call, a driver may take its time, and neither is ever unloaded.
 */
#ifndef GPUPROF_COLLECTOR_GPU_SIGHT_H
#define GPUPROF_COLLECTOR_GPU_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_places.h"

#define SIGHT_TEXT_BYTES 400

enum gpu_answer {
    GPU_NO_LIBRARY,  /* libcuda.so.1 is not found, or cannot be loaded */
    GPU_NO_START,    /* cuInit fails */
    GPU_IN_QUESTION, /* CUDA starts; its process ended, or hung, while CUPTI was looked for */
    GPU_NO_CUPTI,    /* none is found, or none works with the driver */
    GPU_CUPTI_HELD,  /* another client has it */
    GPU_WORKS,
};

struct gpu_sight {
    enum gpu_answer answer;
    char driver[CUPTI_PATH_BYTES_MAX]; /* path of libcuda; "": none */
    int driver_version;                /* 12040: CUDA 12.4; 0: not known */
    int device_count;
    char cupti[CUPTI_PATH_BYTES_MAX];   /* path of the libcupti that was asked last; "": none */
    char refused[CUPTI_PATH_BYTES_MAX]; /* of the first one that the driver refused; "": none */
    char reason[SIGHT_TEXT_BYTES];      /* of an answer other than GPU_WORKS */
};

/* `setting` is GPUPROF_CUPTI's, or empty; it goes before all places. Takes at most 20 seconds. */
void gpu_sight_take(struct gpu_sight *sight, const struct cupti_places *places,
                    const char *setting);

#endif
