/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lists of `type, name` pairs, up to ten of them, as prototypes and as values: PROTO_ stands alone,
 * the others behind a first parameter.
 */
#ifndef RTSCOPE_DETAIL_LTTNG_ARGS_H
#define RTSCOPE_DETAIL_LTTNG_ARGS_H

#define RTSCOPE_LTTNG_PARAMS_(...) __VA_ARGS__
#define RTSCOPE_LTTNG_JOIN_(a, b) RTSCOPE_LTTNG_JOIN_1_(a, b)
#define RTSCOPE_LTTNG_JOIN_1_(a, b) a##b
#define RTSCOPE_LTTNG_STRING_(...) RTSCOPE_LTTNG_STRING_1_(__VA_ARGS__)
#define RTSCOPE_LTTNG_STRING_1_(...) #__VA_ARGS__

/* The number of arguments; nothing is one that is empty. */
#define RTSCOPE_LTTNG_COUNT_(...)                                                                 \
    RTSCOPE_LTTNG_COUNT_1_(__VA_ARGS__, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5,\
                           4, 3, 2, 1, 0)
#define RTSCOPE_LTTNG_COUNT_1_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15,  \
                               a16, a17, a18, a19, a20, count, ...)                               \
    count
#define RTSCOPE_LTTNG_LIST_(kind, ...)                                                            \
    RTSCOPE_LTTNG_JOIN_(kind, RTSCOPE_LTTNG_COUNT_(__VA_ARGS__))(__VA_ARGS__)

#define RTSCOPE_LTTNG_PROTO_(...) RTSCOPE_LTTNG_LIST_(RTSCOPE_LTTNG_P, __VA_ARGS__)
#define RTSCOPE_LTTNG_MORE_PROTO_(...) RTSCOPE_LTTNG_LIST_(RTSCOPE_LTTNG_M, __VA_ARGS__)
#define RTSCOPE_LTTNG_MORE_VALUES_(...) RTSCOPE_LTTNG_LIST_(RTSCOPE_LTTNG_V, __VA_ARGS__)

/* No pair may be written as nothing and as void. */
#define RTSCOPE_LTTNG_P1(none) void
#define RTSCOPE_LTTNG_P2(t, n) t n
#define RTSCOPE_LTTNG_P4(t, n, ...) t n, RTSCOPE_LTTNG_P2(__VA_ARGS__)
#define RTSCOPE_LTTNG_P6(t, n, ...) t n, RTSCOPE_LTTNG_P4(__VA_ARGS__)
#define RTSCOPE_LTTNG_P8(t, n, ...) t n, RTSCOPE_LTTNG_P6(__VA_ARGS__)
#define RTSCOPE_LTTNG_P10(t, n, ...) t n, RTSCOPE_LTTNG_P8(__VA_ARGS__)
#define RTSCOPE_LTTNG_P12(t, n, ...) t n, RTSCOPE_LTTNG_P10(__VA_ARGS__)
#define RTSCOPE_LTTNG_P14(t, n, ...) t n, RTSCOPE_LTTNG_P12(__VA_ARGS__)
#define RTSCOPE_LTTNG_P16(t, n, ...) t n, RTSCOPE_LTTNG_P14(__VA_ARGS__)
#define RTSCOPE_LTTNG_P18(t, n, ...) t n, RTSCOPE_LTTNG_P16(__VA_ARGS__)
#define RTSCOPE_LTTNG_P20(t, n, ...) t n, RTSCOPE_LTTNG_P18(__VA_ARGS__)

#define RTSCOPE_LTTNG_M1(none)
#define RTSCOPE_LTTNG_M2(t, n) , t n
#define RTSCOPE_LTTNG_M4(t, n, ...) , t n RTSCOPE_LTTNG_M2(__VA_ARGS__)
#define RTSCOPE_LTTNG_M6(t, n, ...) , t n RTSCOPE_LTTNG_M4(__VA_ARGS__)
#define RTSCOPE_LTTNG_M8(t, n, ...) , t n RTSCOPE_LTTNG_M6(__VA_ARGS__)
#define RTSCOPE_LTTNG_M10(t, n, ...) , t n RTSCOPE_LTTNG_M8(__VA_ARGS__)
#define RTSCOPE_LTTNG_M12(t, n, ...) , t n RTSCOPE_LTTNG_M10(__VA_ARGS__)
#define RTSCOPE_LTTNG_M14(t, n, ...) , t n RTSCOPE_LTTNG_M12(__VA_ARGS__)
#define RTSCOPE_LTTNG_M16(t, n, ...) , t n RTSCOPE_LTTNG_M14(__VA_ARGS__)
#define RTSCOPE_LTTNG_M18(t, n, ...) , t n RTSCOPE_LTTNG_M16(__VA_ARGS__)
#define RTSCOPE_LTTNG_M20(t, n, ...) , t n RTSCOPE_LTTNG_M18(__VA_ARGS__)

#define RTSCOPE_LTTNG_V1(none)
#define RTSCOPE_LTTNG_V2(t, n) , n
#define RTSCOPE_LTTNG_V4(t, n, ...) , n RTSCOPE_LTTNG_V2(__VA_ARGS__)
#define RTSCOPE_LTTNG_V6(t, n, ...) , n RTSCOPE_LTTNG_V4(__VA_ARGS__)
#define RTSCOPE_LTTNG_V8(t, n, ...) , n RTSCOPE_LTTNG_V6(__VA_ARGS__)
#define RTSCOPE_LTTNG_V10(t, n, ...) , n RTSCOPE_LTTNG_V8(__VA_ARGS__)
#define RTSCOPE_LTTNG_V12(t, n, ...) , n RTSCOPE_LTTNG_V10(__VA_ARGS__)
#define RTSCOPE_LTTNG_V14(t, n, ...) , n RTSCOPE_LTTNG_V12(__VA_ARGS__)
#define RTSCOPE_LTTNG_V16(t, n, ...) , n RTSCOPE_LTTNG_V14(__VA_ARGS__)
#define RTSCOPE_LTTNG_V18(t, n, ...) , n RTSCOPE_LTTNG_V16(__VA_ARGS__)
#define RTSCOPE_LTTNG_V20(t, n, ...) , n RTSCOPE_LTTNG_V18(__VA_ARGS__)

#endif
