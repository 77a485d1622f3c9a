/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_PARAMS_H
#define SIM_PARAMS_H

/*
 * SIM_STRUCT_OF(a, b) is the members of a struct with the types of the variables a and b,
 * SIM_VALUES_OF(a, b) what fills it. Fourteen at most.
 */

#define SIM_MEMBER(name) __typeof__(name) name;
#define SIM_VALUE(name)  name,

/* clang-format off */
#define SIM_EACH1(m, a) m(a)
#define SIM_EACH2(m, a, ...) m(a) SIM_EACH1(m, __VA_ARGS__)
#define SIM_EACH3(m, a, ...) m(a) SIM_EACH2(m, __VA_ARGS__)
#define SIM_EACH4(m, a, ...) m(a) SIM_EACH3(m, __VA_ARGS__)
#define SIM_EACH5(m, a, ...) m(a) SIM_EACH4(m, __VA_ARGS__)
#define SIM_EACH6(m, a, ...) m(a) SIM_EACH5(m, __VA_ARGS__)
#define SIM_EACH7(m, a, ...) m(a) SIM_EACH6(m, __VA_ARGS__)
#define SIM_EACH8(m, a, ...) m(a) SIM_EACH7(m, __VA_ARGS__)
#define SIM_EACH9(m, a, ...) m(a) SIM_EACH8(m, __VA_ARGS__)
#define SIM_EACH10(m, a, ...) m(a) SIM_EACH9(m, __VA_ARGS__)
#define SIM_EACH11(m, a, ...) m(a) SIM_EACH10(m, __VA_ARGS__)
#define SIM_EACH12(m, a, ...) m(a) SIM_EACH11(m, __VA_ARGS__)
#define SIM_EACH13(m, a, ...) m(a) SIM_EACH12(m, __VA_ARGS__)
#define SIM_EACH14(m, a, ...) m(a) SIM_EACH13(m, __VA_ARGS__)
/* clang-format on */
#define SIM_EACH_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, name, ...) name
#define SIM_EACH_SOME(m, ...)                                                                      \
    SIM_EACH_PICK(__VA_ARGS__, SIM_EACH14, SIM_EACH13, SIM_EACH12, SIM_EACH11, SIM_EACH10,         \
                  SIM_EACH9, SIM_EACH8, SIM_EACH7, SIM_EACH6, SIM_EACH5, SIM_EACH4, SIM_EACH3,     \
                  SIM_EACH2, SIM_EACH1, )                                                          \
    (m, __VA_ARGS__)
#define SIM_EACH(m, ...) __VA_OPT__(SIM_EACH_SOME(m, __VA_ARGS__))

#define SIM_STRUCT_OF(...) SIM_EACH(SIM_MEMBER, ##__VA_ARGS__)
#define SIM_VALUES_OF(...) SIM_EACH(SIM_VALUE, ##__VA_ARGS__)

#endif
