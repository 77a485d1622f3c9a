/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <string.h>

#define LOCK_NS 2000000000u /* the lock is held only while the text is copied */

void status_set(struct status *status, const char *text)
{
    size_t length = strnlen(text, STATUS_BYTES_MAX - 1);
    if (!lock_take(&status->lock, LOCK_NS))
        return;
    memcpy(status->text, text, length);
    status->text[length] = '\0';
    atomic_fetch_add(&status->version, 1);
    lock_drop(&status->lock);
}

bool status_copy(struct status *status, uint32_t *seen, bool anyway, char text[STATUS_BYTES_MAX])
{
    if ((!anyway && atomic_load(&status->version) == *seen) || !lock_take(&status->lock, LOCK_NS))
        return false;
    *seen = atomic_load(&status->version);
    memcpy(text, status->text, STATUS_BYTES_MAX);
    lock_drop(&status->lock);
    return *text != '\0';
}
