/* SPDX-License-Identifier: Apache-2.0 */
#include "page/page_verb.h"

#include "page/page.h"
#include "report/report_verb.h"

enum exit_code page_verb(const struct options *options)
{
    return report_verb(options, page_write);
}
