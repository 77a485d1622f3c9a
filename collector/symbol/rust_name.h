/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Rust, of both manglings: "_R..." (v0), and the older one, which has the form of a C++
 * name with a hash at its end. Lifetimes, hashes and crates' numbers are left out, as people do.
 */
#ifndef GPUPROF_COLLECTOR_RUST_NAME_H
#define GPUPROF_COLLECTOR_RUST_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What a v0 name stands for, in new memory; NULL if it is none, has forms that are not known, or
 * would be longer than `bytes_max`. Takes bounded time, whatever the name.
 */
char *rust_name(const char *mangled, size_t bytes_max);

/* Does the mangled name end in such a hash? */
bool rust_name_is_old(const char *mangled);

/* Takes the hash off such a name, demangled as C++, and its escapes ($LT$) back; in place. */
void rust_name_tidy(char *shown);

#endif
