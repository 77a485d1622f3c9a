/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows_work WORD...: does what each word says, in turn.
 *
 *   NUMBER   cudaMemsetAsync of so many bytes: what is recorded tells by its bytes which one it was
 *   s        gpuprof_step(), from 100 on
 *   ( )      cudaProfilerStart, cudaProfilerStop: their result must be 0
 *   <NAME >  a range of gpuprof.h's, which is NVTX's default domain's; NVTX's own with -DNVTX
 *   {NAME }  a label of PyTorch's (with -DLABELS)
 *   zMS      sleeps; d: waits for the device
 *   r        says "ready" and waits for a line on its standard input
 *   f        forks: the child goes on alone, and the parent exits with its status
 *   t        the rest is done by another thread
 */
#include "gpuprof.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime_api.h"
#ifdef NVTX
#include "nvtx_client.h"
#define gpuprof_range_push nvtxRangePushA
#define gpuprof_range_pop  nvtxRangePop
#endif
#ifdef LABELS
#include "sim_torch.h"
#endif

static void *buffer;

static void label(const char *name)
{
#ifdef LABELS
    static struct sim_op *open[16];
    static unsigned count;
    if (name)
        open[count++] = sim_op_begin(name, SIM_LABEL, -1, 0, "");
    else
        sim_op_end(open[--count]);
#else
    fprintf(stderr, "windows_work: no labels: %s\n", name ? name : "}");
    exit(9);
#endif
}

static void *work(void *words)
{
    static uint64_t step = 100;
    pthread_t thread;
    for (char **word = words; *word; word++) {
        const char *text = *word + 1;
        switch (**word) {
        case 's': gpuprof_step(step++); break;
        case '(':
            if (cudaProfilerStart())
                exit(7);
            break;
        case ')':
            if (cudaProfilerStop())
                exit(7);
            break;
        case '<': gpuprof_range_push(text); break;
        case '>': gpuprof_range_pop(); break;
        case '{': label(text); break;
        case '}': label(NULL); break;
        case 'z': usleep((useconds_t)atoi(text) * 1000); break;
        case 'd': cudaDeviceSynchronize(); break;
        case 'r':
            puts("ready");
            fflush(stdout);
            if (getchar() != '\n')
                exit(6);
            break;
        case 'f': {
            int status = 0;
            pid_t child = fork();
            if (child == 0)
                break;
            waitpid(child, &status, 0);
            exit(WEXITSTATUS(status));
        }
        case 't':
            pthread_create(&thread, NULL, work, word + 1);
            pthread_join(thread, NULL);
            return NULL;
        default:
            if (!isdigit((unsigned char)**word) || (!buffer && cudaMalloc(&buffer, 1 << 20)) ||
                cudaMemsetAsync(buffer, 0, (size_t)atol(*word), NULL))
                exit(8);
        }
    }
    return NULL;
}

int main(int count, char **words)
{
    (void)count;
    work(words + 1);
    return 0;
}
