/* SPDX-License-Identifier: Apache-2.0 */
#include "page/page.h"

#include "base/json_text.h"
#include "error.h"

#define CUT     "\xe2\x80\xa6"
#define ESCAPED "\\u003c"

#define ESCAPE_BEGUN 5 /* in `escape`: its second byte comes */

static void put(struct page_data *d, const char *bytes, size_t length)
{
    fwrite(bytes, 1, length, d->out);
    d->written += length;
}

/* A byte of a string. It is cut where a letter or an escape begins, never inside of one. */
static void take_text(struct page_data *d, char c)
{
    bool begins = !d->escape && ((unsigned char)c & 0xc0) != 0x80;
    if (d->escape == ESCAPE_BEGUN)
        d->escape = c == 'u' ? 4 : 0;
    else if (d->escape)
        d->escape--;
    else if (c == '\\')
        d->escape = ESCAPE_BEGUN;
    if (begins && c == '"') {
        d->in_text = false;
        put(d, &c, 1);
        return;
    }
    if (begins && d->text_bytes >= PAGE_TEXT_BYTES && !d->is_cut) {
        put(d, CUT, sizeof CUT - 1);
        d->is_cut = true;
    }
    d->text_bytes++;
    if (!d->is_cut && c == '<')
        put(d, ESCAPED, sizeof ESCAPED - 1);
    else if (!d->is_cut)
        put(d, &c, 1);
}

static ssize_t filter(void *cookie, const char *bytes, size_t length)
{
    struct page_data *d = cookie;
    for (size_t i = 0; i < length; i++) {
        if (d->in_text) {
            take_text(d, bytes[i]);
            continue;
        }
        d->in_text = bytes[i] == '"';
        d->text_bytes = 0;
        d->is_cut = false;
        put(d, &bytes[i], 1);
    }
    return ferror(d->out) ? 0 : (ssize_t)length;
}

int page_data_open(struct page_data *d, FILE *out)
{
    *d = (struct page_data){.out = out};
    d->stream = fopencookie(d, "w", (cookie_io_functions_t){.write = filter});
    return d->stream ? 0 : GPUPROF_NO_MEMORY;
}

void page_data_close(struct page_data *d)
{
    if (d->stream)
        fclose(d->stream);
}

void page_put_text(struct page_data *d, const char *text)
{
    json_put("", text, d->stream);
}

uint64_t page_data_written(struct page_data *d)
{
    fflush(d->stream);
    return d->written;
}
