/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of the cuDNN double's part have in common. */
#ifndef DNN_DOUBLE_PART_H
#define DNN_DOUBLE_PART_H
#include <stdbool.h>
#include <stddef.h>

enum { BAD_PARAM = 2000, NOT_SUPPORTED = 3000, NOT_INITIALIZED = 1001, LINE_BYTES_MAX = 8192 };

struct text {
    char *at;
    size_t room;
};

extern const char *const type_names[]; /* of cudnnDataType_t */

void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_line(const char *text, size_t bytes);
bool refuses(const char *what); /* DNN_REFUSES names it */
int fail(int status);           /* with a message for cudnnGetLastErrorString */
void work(void);

#endif
