/* SPDX-License-Identifier: Apache-2.0 */
#include "table/screen.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/text.h"

#define LINE_BYTES 2048
#define WRAP_WIDTH 100 /* if the width is unknown */

/* Cleans a recorded name, and cuts it to the space left on the line after `text`. */
static char *screen_fit(const struct screen *s, const char *text, const char *name)
{
    char *clean = json_line(name), *cut;
    size_t used = text_width(text, strlen(text));
    if (!clean || !s->width)
        return clean;
    size_t left = s->width > used + TEXT_WIDTH_MIN ? s->width - used : TEXT_WIDTH_MIN;
    cut = text_cut_stack(clean, strlen(clean), left);
    free(clean);
    return cut;
}

void screen_print(struct screen *s, const char *text)
{
    static const char *const alarms[] = {"  collective", "  open",  "  unfinished",
                                         "  no memory",  "  error", "  not enough"};
    s->lines++;
    size_t label = strlen(text) < SCREEN_LABEL_WIDTH ? strlen(text) : SCREEN_LABEL_WIDTH;
    const char *colour = COLOUR_STRONG;
    for (size_t i = 0; i < sizeof alarms / sizeof alarms[0]; i++)
        if (strncmp(text, alarms[i], strlen(alarms[i])) == 0)
            colour = COLOUR_ALARM;
    if (s->has_colour && strspn(text, " ") < label)
        fprintf(s->out, "%s%.*s" COLOUR_END "%s\n", colour, (int)label, text, text + label);
    else
        fprintf(s->out, "%s\n", text);
}

static void print_named(struct screen *s, const char *label, const char *name, const char *format,
                        va_list list)
{
    char text[LINE_BYTES];
    int length = snprintf(text, sizeof text, "  %-*s ", SCREEN_LABEL_WIDTH - 2, label);
    vsnprintf(text + length, sizeof text - (size_t)length, format, list);
    char *clean = json_line(text);
    char *end = clean && name ? screen_fit(s, clean, name) : NULL;
    char *whole = clean ? text_printf("%s%s", clean, end ? end : name ? "?" : "") : NULL;
    char *cut = whole && s->width ? text_cut(whole, strlen(whole), s->width) : NULL;
    screen_print(s, cut ? cut : whole ? whole : "?");
    free(cut);
    free(whole);
    free(end);
    free(clean);
}

void screen_line(struct screen *s, const char *label, const char *name, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_named(s, label, name, format, list);
    va_end(list);
}

void screen_line_freed(struct screen *s, const char *label, char *name, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_named(s, label, name ? name : "?", format, list);
    va_end(list);
    free(name);
}

void screen_wrapped(struct screen *s, const char *label, const char *text, size_t room)
{
    room = room ? room : (s->width ? s->width : WRAP_WIDTH) - SCREEN_LABEL_WIDTH - 1;
    for (size_t length; *text; text += length + (text[length] == ' ')) {
        length = text_wrap(text, room);
        screen_line(s, label, NULL, "%.*s", (int)length, text);
        label = "";
    }
}

void screen_long(struct screen *s, const char *label, const char *format, ...)
{
    size_t room = s->width > SCREEN_LABEL_WIDTH + 1 ? s->width - SCREEN_LABEL_WIDTH - 1
                                                    : (size_t)TEXT_WIDTH_MIN;
    va_list list;
    va_start(list, format);
    char *text = text_vprintf(format, list);
    va_end(list);
    char *clean = text && s->width && !s->is_short ? json_line(text) : NULL;
    char *cut = clean ? text_cut(clean, strlen(clean), 3 * room - room / 5) : NULL;
    if (cut)
        screen_wrapped(s, label, cut, 0);
    else
        screen_line(s, label, NULL, "%s", text ? text : "?");
    free(cut);
    free(clean);
    free(text);
}
