/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_work: does what each line on its standard input says, and answers with a line when that
 * is done: NUMBER cudaMemset of so many bytes, p gpuprof_stop(), r gpuprof_start(), sNUMBER
 * gpuprof_step(), f forks: the child goes on and says its pid, the parent waits for it.
 */
#include "gpuprof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime_api.h"

int main(void)
{
    static char line[64];
    void *buffer = NULL;
    setvbuf(stdin, NULL, _IONBF, 0); /* a child reads on where its parent was */
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line == 'p') {
            gpuprof_stop();
        } else if (*line == 'r') {
            gpuprof_start();
        } else if (*line == 's') {
            gpuprof_step(strtoul(line + 1, NULL, 10));
        } else if (*line == 'f') {
            fflush(stdout);
            if (fork()) {
                int status = 0;
                wait(&status);
                return WEXITSTATUS(status);
            }
            snprintf(line, sizeof line, "%d", (int)getpid());
        } else if ((!buffer && cudaMalloc(&buffer, 4096)) ||
                   cudaMemset(buffer, 0, strtoul(line, NULL, 10))) {
            return 1;
        }
        puts(line);
        fflush(stdout);
    }
    return 0;
}
