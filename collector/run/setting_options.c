/* SPDX-License-Identifier: Apache-2.0 */
#include "run/setting_options.h"

#include <string.h>

#include "base/message.h"

static enum setting_index find_setting(const char *name, size_t length)
{
    int i = 0;
    while (i < SETTING_COUNT && !(strlen(setting_infos[i].option) == length &&
                                  memcmp(setting_infos[i].option, name, length) == 0))
        i++;
    return (enum setting_index)i;
}

enum exit_code setting_option_set(const char *verb, const char **values, enum setting_index index,
                                  const char *value)
{
    struct settings check;
    char reason[160] = "it is empty";
    settings_init(&check);
    if (!*value || settings_set(&check, index, value, reason, sizeof reason) != 0)
        return usage_error("%s: --%s: %s", verb, setting_infos[index].option, reason);
    values[index] = value;
    return EXIT_OK;
}

enum exit_code setting_option_take(const char *verb, option_set set, const char **values,
                                   char **argv, int *at)
{
    const char *option = argv[*at];
    const char *name = option + 2;
    size_t length = option[1] == '-' ? strcspn(name, "=") : 0;
    enum setting_index index = length ? find_setting(name, length) : SETTING_COUNT;
    if (index == SETTING_COUNT)
        return option_unknown(verb, set, option);
    const struct setting_info *info = &setting_infos[index];
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    if (!value && info->kind == SETTING_KIND_SWITCH)
        value = "on";
    if (!value && argv[*at + 1])
        value = argv[++*at];
    if (!value)
        return usage_error("%s: %s needs a value: %s", verb, option, info->value);
    return setting_option_set(verb, values, index, value);
}
