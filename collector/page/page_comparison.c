/* SPDX-License-Identifier: Apache-2.0 */
/* Runs against others: what `gpuprof diff --format=json` prints, drawn. */
#include <stdlib.h>

#include "error.h"
#include "page/page.h"

int page_put_comparison(const struct page *p, struct page_data *d)
{
    return diff_print_json(p->comparison, p->kernels, d->stream);
}

int page_write_comparison(const struct comparison *c, const struct kernel_match *kernels, FILE *out)
{
    char *name = NULL; /* of the first run of each side */
    if (asprintf(&name, "%s against %s", c->sides[0]->names[0], c->sides[1]->names[0]) < 0)
        return GPUPROF_NO_MEMORY;
    const struct page p = {
        .sections = page_comparison_sections, .name = name, .comparison = c, .kernels = kernels};
    int error = page_put(&p, out);
    free(name);
    return error;
}
