/* SPDX-License-Identifier: Apache-2.0 */
#include "output/standard_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "error.h"

int standard_files_fill(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* The lowest number that is free is the one that a new file gets. */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd) {
            message("/dev/null: %s", strerror(errno));
            return GPUPROF_IO;
        }
    }
    return 0;
}

enum exit_code standard_output_end(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_OK;
    /* An earlier write failed, and its reason is gone by now. */
    int number = errno;
    message("standard output: %s%s", number ? strerror(number) : "it could not be written",
            stdout_advice(number));
    return EXIT_ENVIRONMENT;
}
