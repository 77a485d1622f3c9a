/* SPDX-License-Identifier: Apache-2.0 */
/* What a C library does that our library has a hand in; for one that is not glibc. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void say_so(void)
{
    puts("the end");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int status = 0;
    (void)argv;
    at_quick_exit(say_so);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    waitpid(child, &status, 0);
    void *puts_found = dlsym(RTLD_DEFAULT, "puts"), *ours = dlsym(RTLD_DEFAULT, "cudaMalloc");
    printf("child %d, puts %d, cudaMalloc %d, error %d\n", WEXITSTATUS(status), puts_found != NULL,
           ours != NULL, dlerror() != NULL);
    if (argc > 1)
        quick_exit(3);
    return 3;
}
