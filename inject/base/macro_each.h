/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One expansion of a macro for each item of a list: MACRO_EACH(m, (a, b, c)) is m(a) m(b) m(c).
 * MACRO_EACH_IN counts by another list, because a parameter list of none is written (void):
 * MACRO_EACH_IN((x, y), m, (int x, char *y)).
 */
#ifndef GPUPROF_INJECT_MACRO_EACH_H
#define GPUPROF_INJECT_MACRO_EACH_H

#define MACRO_UNPACK(...)   __VA_ARGS__
#define MACRO_JOIN_(a, b)   a##b
#define MACRO_JOIN(a, b)    MACRO_JOIN_(a, b)
#define MACRO_CALL(m, args) m args

/* Counts 0 to 12 items. The leading 0 and `##` make an empty list count 0. */
#define MACRO_COUNT(...) MACRO_COUNT_(0, ##__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

#define MACRO_COUNT_(z, a, b, c, d, e, f, g, h, i, j, k, l, count, ...) count

#define MACRO_EACH_0(m, ...)
#define MACRO_EACH_1(m, a)       m(a)
#define MACRO_EACH_2(m, a, ...)  m(a) MACRO_EACH_1(m, __VA_ARGS__)
#define MACRO_EACH_3(m, a, ...)  m(a) MACRO_EACH_2(m, __VA_ARGS__)
#define MACRO_EACH_4(m, a, ...)  m(a) MACRO_EACH_3(m, __VA_ARGS__)
#define MACRO_EACH_5(m, a, ...)  m(a) MACRO_EACH_4(m, __VA_ARGS__)
#define MACRO_EACH_6(m, a, ...)  m(a) MACRO_EACH_5(m, __VA_ARGS__)
#define MACRO_EACH_7(m, a, ...)  m(a) MACRO_EACH_6(m, __VA_ARGS__)
#define MACRO_EACH_8(m, a, ...)  m(a) MACRO_EACH_7(m, __VA_ARGS__)
#define MACRO_EACH_9(m, a, ...)  m(a) MACRO_EACH_8(m, __VA_ARGS__)
#define MACRO_EACH_10(m, a, ...) m(a) MACRO_EACH_9(m, __VA_ARGS__)
#define MACRO_EACH_11(m, a, ...) m(a) MACRO_EACH_10(m, __VA_ARGS__)
#define MACRO_EACH_12(m, a, ...) m(a) MACRO_EACH_11(m, __VA_ARGS__)

#define MACRO_EACH_IN(counted, m, list)                                                            \
    MACRO_CALL(MACRO_JOIN(MACRO_EACH_, MACRO_CALL(MACRO_COUNT, counted)), (m, MACRO_UNPACK list))
#define MACRO_EACH(m, list) MACRO_EACH_IN(list, m, list)

#endif
