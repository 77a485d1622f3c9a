/* SPDX-License-Identifier: Apache-2.0 */
#include "glob.h"

#include <stddef.h>

bool glob_matches(const char *pattern, const char *text)
{
    const char *star = NULL,
               *again = NULL; /* the last star, and where the text continues after it */
    const char *p = pattern, *t = text;
    while (*t) {
        if (*p == '*') {
            star = p++;
            again = t;
        } else if (*p == '?' || *p == *t) {
            p++;
            t++;
        } else if (star) { /* it matches one more byte */
            p = star + 1;
            t = ++again;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return !*p;
}
