/* SPDX-License-Identifier: Apache-2.0 */
#include "base/announce.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/objects.h"

#define OWN_PATH_BYTES_MAX 4096

void announce_by(const char *variable)
{
    char path[OWN_PATH_BYTES_MAX];
    struct object o;
    if (getenv(variable) || !object_at((uintptr_t)&announce_by, &o))
        return;
    size_t head = 0, length = strlen(o.path);
    /* LD_PRELOAD named us by a relative path; the program may change its working directory */
    if (o.path[0] != '/') {
        if (!getcwd(path, sizeof path))
            return;
        head = strlen(path);
        path[head++] = '/';
    }
    if (length == 0 || length >= sizeof path - head)
        return;
    memcpy(path + head, o.path, length + 1);
    setenv(variable, path, 0);
}
