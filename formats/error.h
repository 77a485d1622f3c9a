/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error codes of formats/ and collector/. Functions return 0 or one of these; iterators return
 * 1 for an item, 0 at the end, or one of these.
 */
#ifndef GPUPROF_FORMATS_ERROR_H
#define GPUPROF_FORMATS_ERROR_H

enum gpuprof_error {
    GPUPROF_NO_MEMORY = -1, /* an allocation failed */
    GPUPROF_IO = -2,        /* a system call failed; errno tells which way */
    GPUPROF_NOT_OURS = -3,  /* not a gpuprof file: wrong magic */
    GPUPROF_VERSION = -4,   /* a format version that this build cannot read */
    GPUPROF_DAMAGED = -5,   /* a checksum or a length is wrong */
    GPUPROF_TRUNCATED = -6, /* the data ends inside an item */
    GPUPROF_LIMIT = -7,     /* a named maximum is exceeded */
    GPUPROF_USAGE = -8,     /* a wrong option or argument */
    GPUPROF_SPOOL = -9,     /* a temporary file cannot be written; see errno */
    GPUPROF_EMPTY = -10,    /* the file has no bytes */
};

/* A short lower-case description, never NULL. */
static inline const char *gpuprof_error_text(int error)
{
    switch (error) {
    case GPUPROF_NO_MEMORY: return "out of memory";
    case GPUPROF_IO: return "input/output error";
    case GPUPROF_NOT_OURS: return "not a gpuprof file";
    case GPUPROF_VERSION: return "its format version is newer than this gpuprof reads";
    case GPUPROF_DAMAGED: return "damaged";
    case GPUPROF_TRUNCATED:
        return "truncated: the process was killed as it began to write, or the copy is incomplete";
    case GPUPROF_LIMIT: return "a limit is exceeded";
    case GPUPROF_USAGE: return "wrong usage";
    case GPUPROF_SPOOL:
        return "cannot write a temporary file in $TMPDIR (or /tmp); set TMPDIR to another folder";
    case GPUPROF_EMPTY:
        return "the file is empty: the process was killed before it wrote anything, or the disk "
               "was full";
    default: return "unknown error";
    }
}

#endif
