/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "flight.h"
#include "schedule.h"
#include "unit_word.h"

const struct setting_info setting_infos[SETTING_COUNT] = {
#define SETTING(NAME, variable, option, group, kind, default_value, low, high, value, help, ...)   \
    {variable, option, group, SETTING_KIND_##kind, default_value, low, high, value, help},
#include "settings.def"
#undef SETTING
};

/* The value of an option that is given without one. */
static const char *const alone[SETTING_COUNT] = {[SETTING_SAMPLE] = "100", [SETTING_OS] = "100us"};

const char *setting_alone(enum setting_index index)
{
    return setting_infos[index].kind == SETTING_KIND_SWITCH ? "on" : alone[index];
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* As they are printed; more are accepted (unit_word.h). */
static const struct unit size_units[] = {{"", 1},        {"K", 1 << 10},    {"M", 1 << 20},
                                         {"G", 1 << 30}, {"T", 1ull << 40}, {NULL, 0}};
static const struct unit time_units[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

static const struct unit *units_of(const struct setting_info *info)
{
    return info->kind == SETTING_KIND_SIZE   ? size_units
           : info->kind == SETTING_KIND_TIME ? time_units
                                             : no_units;
}

/* Prints a number as a person would: in the largest unit that makes it an integer. */
static void write_number(uint64_t number, const struct unit *units, char *text, size_t text_bytes)
{
    const struct unit *best = units;
    for (const struct unit *u = units; u->name; u++)
        if (number && number % u->factor == 0 && u->factor > best->factor)
            best = u;
    snprintf(text, text_bytes, "%llu%s", (unsigned long long)(number / best->factor),
             number ? best->name : "");
}

static void write_limit(const struct setting_info *info, uint64_t number, char *text,
                        size_t text_bytes)
{
    unsigned long long whole = number / 10000, rest = number % 10000;
    /* as an integer: some locales have another decimal point */
    if (info->kind == SETTING_KIND_SHARE)
        snprintf(text, text_bytes, rest ? "%llu.%04llu%%" : "%llu%%", whole, rest);
    else
        write_number(number, units_of(info), text, text_bytes);
}

/* Parses an amount and a unit; false for anything else, or above 2^63. (strtoull would accept "
 * -1".) */
static bool parse_number(const char *text, enum setting_kind kind, uint64_t *number)
{
    struct amount amount;
    const char *p = amount_read(text, text + strlen(text), &amount);
    if (!p)
        return false;
    bool is_bare = *p == '\0' && !amount.has_point;
    uint64_t unit = kind == SETTING_KIND_TIME   ? unit_ns(p, strlen(p))
                    : is_bare                   ? 1
                    : kind == SETTING_KIND_SIZE ? unit_bytes(p, strlen(p))
                                                : 0;
    *number = 0;
    return amount_times(&amount, unit, number) ||
           (is_bare && !amount.whole); /* a bare 0 needs no unit */
}

bool settings_size(const char *text, uint64_t *bytes)
{
    return parse_number(text, SETTING_KIND_SIZE, bytes);
}

static bool parse_switch(const char *text, uint64_t *number)
{
    static const char *const words[] = {"0", "1", "off", "on", "no", "yes", "false", "true"};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *number = i & 1;
            return true;
        }
    }
    return false;
}

static bool parse_choice(const char *text, const char *choices, uint64_t *number)
{
    size_t length = strlen(text);
    uint64_t index = 0;
    for (const char *p = choices; length && *p; index++) {
        size_t word = strcspn(p, "|");
        if (word == length && memcmp(p, text, length) == 0) {
            *number = index;
            return true;
        }
        p += word + (p[word] == '|');
    }
    return false;
}

/* Parses comma-separated words of `choices` into bits. Returns the first unknown word, or NULL. */
static const char *parse_flags(const char *text, const char *choices, uint64_t *number)
{
    char word[32];
    *number = 0;
    for (const char *p = text;; p++) {
        size_t length = strcspn(p, ",");
        uint64_t index;
        if (length >= sizeof word)
            return p;
        memcpy(word, p, length);
        word[length] = '\0';
        if (!parse_choice(word, choices, &index))
            return p;
        *number |= (uint64_t)1 << index;
        p += length;
        if (!*p)
            return NULL;
    }
}

/* Parses percent with up to four decimals into parts per million; "%" is optional. */
static bool parse_share(const char *text, uint64_t *number)
{
    struct amount amount;
    const char *p = amount_read(text, text + strlen(text), &amount);
    return p && (!*p || strcmp(p, "%") == 0) && amount.billionths % 100000 == 0 &&
           amount_times(&amount, 10000, number);
}

/* May the value be "off"? */
static bool can_be_off(const struct setting_info *info)
{
    return (info->kind == SETTING_KIND_SIZE || info->kind == SETTING_KIND_TIME ||
            info->kind == SETTING_KIND_SHARE || info->kind == SETTING_KIND_NUMBER) &&
           strstr(info->value, "|off");
}

static bool parse_text(const struct setting_info *info, const char *text, uint64_t *number)
{
    if (can_be_off(info) && strcmp(text, "off") == 0) {
        *number = SETTING_OFF;
        return true;
    }
    struct flight flight;
    struct schedule schedule;
    struct capture capture;
    enum capture_end end;
    uint64_t count;
    *number = *text != '\0';
    switch (info->kind) {
    case SETTING_KIND_PATH:
    case SETTING_KIND_TEXT: return true;
    case SETTING_KIND_FLIGHT: return !*text || flight_parse(text, &flight);
    case SETTING_KIND_SCHEDULE: return !*text || schedule_parse(text, &schedule);
    case SETTING_KIND_CAPTURE: return capture_parse(text, &capture);
    case SETTING_KIND_CAPTURE_END: return capture_end_parse(text, &end, &count);
    case SETTING_KIND_SIZE:
    case SETTING_KIND_TIME:
    case SETTING_KIND_NUMBER: return parse_number(text, info->kind, number);
    case SETTING_KIND_SHARE: return parse_share(text, number);
    case SETTING_KIND_SWITCH: return parse_switch(text, number);
    case SETTING_KIND_FLAGS: return !parse_flags(text, info->value, number);
    default: return parse_choice(text, info->value, number);
    }
}

static const char *const kind_hints[] = {
    [SETTING_KIND_PATH] = "a path",
    [SETTING_KIND_SIZE] = "a size such as 512K, 64M or 1G",
    [SETTING_KIND_TIME] = "a time such as 80us, 200ms or 3s",
    [SETTING_KIND_SHARE] = "a share such as 2% or 0.5%",
    [SETTING_KIND_SWITCH] = "on or off",
    [SETTING_KIND_CHOICE] = "one of",
    [SETTING_KIND_NUMBER] = "a number",
    [SETTING_KIND_FLAGS] = "a comma-separated list of",
    [SETTING_KIND_TEXT] = "a text",
    [SETTING_KIND_FLIGHT] = "a time such as 30s, a size such as 256M (64M to 64G), or 30s,1G",
    [SETTING_KIND_SCHEDULE] = "a schedule such as wait=10,warmup=1,active=3,repeat=2 (also "
                              "skip_first=, skip_first_wait=), or steps such as 10-20",
    [SETTING_KIND_CAPTURE] = "cudaProfilerApi, nvtx:NAME or nvtx:NAME@DOMAIN",
    [SETTING_KIND_CAPTURE_END] = "none, stop, repeat, repeat:N or exit",
};

int settings_set(struct settings *s, enum setting_index index, const char *text, char *reason,
                 size_t reason_bytes)
{
    const struct setting_info *info = &setting_infos[index];
    uint64_t number = 0;
    if (strnlen(text, SETTING_TEXT_BYTES_MAX + 1) > SETTING_TEXT_BYTES_MAX) {
        snprintf(reason, reason_bytes, "the value is longer than %d bytes", SETTING_TEXT_BYTES_MAX);
        return GPUPROF_USAGE;
    }
    char low[32], high[32], range[80] = "";
    bool ranged = info->kind == SETTING_KIND_SIZE || info->kind == SETTING_KIND_TIME ||
                  info->kind == SETTING_KIND_SHARE || info->kind == SETTING_KIND_NUMBER;
    if (ranged) {
        write_limit(info, info->low, low, sizeof low);
        write_limit(info, info->high, high, sizeof high);
        snprintf(range, sizeof range, " (%s to %s)", low, high);
    }
    if (!parse_text(info, text, &number)) {
        bool has_words = info->kind == SETTING_KIND_CHOICE || info->kind == SETTING_KIND_FLAGS;
        bool is_word = info->kind == SETTING_KIND_FLAGS; /* then only the wrong word is named */
        const char *wrong = is_word ? parse_flags(text, info->value, &number) : text;
        int length = (int)(is_word ? strcspn(wrong, ",") : strlen(wrong));
        snprintf(reason, reason_bytes, "'%.*s' is not %s%s%s%s", length < 40 ? length : 40, wrong,
                 kind_hints[info->kind], has_words ? " " : "", has_words ? info->value : range,
                 can_be_off(info) ? ", or off" : "");
        return GPUPROF_USAGE;
    }
    bool is_off = can_be_off(info) && number == SETTING_OFF;
    if (ranged && !is_off && (number < info->low || number > info->high)) {
        snprintf(reason, reason_bytes, "'%.40s' is out of range%s", text, range);
        return GPUPROF_USAGE;
    }
    s->numbers[index] = number;
    s->texts[index] = text;
    return 0;
}

void settings_init(struct settings *s)
{
    char reason[160];
    for (int i = 0; i < SETTING_COUNT; i++)
        settings_set(s, (enum setting_index)i, setting_infos[i].default_value, reason,
                     sizeof reason);
}
