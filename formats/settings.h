/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a recording, from settings.def. The library reads them from the environment;
 * `gpuprof run` checks its options against the same table and exports them. */
#ifndef GPUPROF_FORMATS_SETTINGS_H
#define GPUPROF_FORMATS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTING_TEXT_BYTES_MAX 1023 /* longest value accepted */
#define SETTING_OFF            UINT64_MAX

enum setting_kind {
    SETTING_KIND_PATH,
    SETTING_KIND_SIZE,
    SETTING_KIND_TIME,
    SETTING_KIND_SHARE,
    SETTING_KIND_SWITCH,
    SETTING_KIND_CHOICE,
    SETTING_KIND_NUMBER,
    SETTING_KIND_FLAGS,
    SETTING_KIND_TEXT,
    SETTING_KIND_FLIGHT,
    SETTING_KIND_SCHEDULE,
    SETTING_KIND_CAPTURE,
    SETTING_KIND_CAPTURE_END,
};

enum setting_index {
#define SETTING(NAME, ...) SETTING_##NAME,
#include "settings.def"
#undef SETTING
    SETTING_COUNT
};

/* Values of settings with a choice, from 0 on, and bits of those with flags. */
#define SETTING(NAME, variable, option, group, kind, default_value, low, high, value, help, ...)   \
    enum { SETTING_##NAME##_BEFORE = -1, ##__VA_ARGS__ };
#include "settings.def"
#undef SETTING

/* Where help lists an option or a setting, in the order of help; with HELP_MORE only if all are
 * asked for (--help-all). */
enum help_group {
    HELP_OTHER,
    HELP_WHAT,
    HELP_WHEN,
    HELP_LIMITS,
    HELP_SHOW,
    HELP_SELECT,
    HELP_READ,
    HELP_OUTPUT,
    HELP_TUNING, /* settings that `run --tune NAME=VALUE` sets */
    HELP_GROUPS,
    HELP_MORE = 64
};

struct setting_info {
    const char *variable;
    const char *option;
    uint8_t group; /* enum help_group */
    uint8_t kind;  /* enum setting_kind */
    const char *default_value;
    uint64_t low;
    uint64_t high;
    const char *value;
    const char *help;
};

extern const struct setting_info setting_infos[SETTING_COUNT];

struct settings {
    uint64_t numbers[SETTING_COUNT];  /* bytes, ns, ppm, 0|1, index of the choice, number, or bits;
                                         for texts: 1 if there is one */
    const char *texts[SETTING_COUNT]; /* the text itself (borrowed) */
};

/* Returns the value of an option given without one ("--sample"); such an option takes a value only
 * after "=". NULL: it needs a value. */
const char *setting_alone(enum setting_index index);

/* Sets all settings to their defaults. */
void settings_init(struct settings *s);

/*
 * Sets one from `text` (kept as a view). 0, or GPUPROF_USAGE with s unchanged and a short
 * reason, in `reason`, that says what would be right.
 */
/* Parses a size as settings accept it, "64M"; returns false if it is not one. */
bool settings_size(const char *text, uint64_t *bytes);

int settings_set(struct settings *s, enum setting_index index, const char *text, char *reason,
                 size_t reason_bytes);

#endif
