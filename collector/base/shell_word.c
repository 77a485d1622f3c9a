/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shell_word.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SHELL_PLAIN /* what means itself to every shell */                                         \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_%+,-./:=@"

char *shell_word(const char *text)
{
    /* zsh takes =ls for the place of ls. */
    bool is_plain = text[0] && text[0] != '=' && text[strspn(text, SHELL_PLAIN)] == '\0';
    char *word = malloc(4 * strlen(text) + 3), *at = word;
    if (!word)
        return NULL;
    if (!is_plain)
        *at++ = '\'';
    for (; *text; text++) {
        if (*text == '\'')
            at = stpcpy(at, "'\\'");
        *at++ = *text;
    }
    if (!is_plain)
        *at++ = '\'';
    *at = '\0';
    return word;
}
