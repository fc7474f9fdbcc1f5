/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * RTSCOPE_EACH_(M, a, b, …): M(a) M(b) …, and RTSCOPE_NUMBERED_(M, a, b, …): M(2, a) M(1, b) …,
 * for 1 to 24 arguments.
 */
#ifndef RTSCOPE_DETAIL_EACH_H
#define RTSCOPE_DETAIL_EACH_H

#define RTSCOPE_E1_(M, a) M(a)
#define RTSCOPE_E2_(M, a, ...) M(a) RTSCOPE_E1_(M, __VA_ARGS__)
#define RTSCOPE_E3_(M, a, ...) M(a) RTSCOPE_E2_(M, __VA_ARGS__)
#define RTSCOPE_E4_(M, a, ...) M(a) RTSCOPE_E3_(M, __VA_ARGS__)
#define RTSCOPE_E5_(M, a, ...) M(a) RTSCOPE_E4_(M, __VA_ARGS__)
#define RTSCOPE_E6_(M, a, ...) M(a) RTSCOPE_E5_(M, __VA_ARGS__)
#define RTSCOPE_E7_(M, a, ...) M(a) RTSCOPE_E6_(M, __VA_ARGS__)
#define RTSCOPE_E8_(M, a, ...) M(a) RTSCOPE_E7_(M, __VA_ARGS__)
#define RTSCOPE_E9_(M, a, ...) M(a) RTSCOPE_E8_(M, __VA_ARGS__)
#define RTSCOPE_E10_(M, a, ...) M(a) RTSCOPE_E9_(M, __VA_ARGS__)
#define RTSCOPE_E11_(M, a, ...) M(a) RTSCOPE_E10_(M, __VA_ARGS__)
#define RTSCOPE_E12_(M, a, ...) M(a) RTSCOPE_E11_(M, __VA_ARGS__)
#define RTSCOPE_E13_(M, a, ...) M(a) RTSCOPE_E12_(M, __VA_ARGS__)
#define RTSCOPE_E14_(M, a, ...) M(a) RTSCOPE_E13_(M, __VA_ARGS__)
#define RTSCOPE_E15_(M, a, ...) M(a) RTSCOPE_E14_(M, __VA_ARGS__)
#define RTSCOPE_E16_(M, a, ...) M(a) RTSCOPE_E15_(M, __VA_ARGS__)
#define RTSCOPE_E17_(M, a, ...) M(a) RTSCOPE_E16_(M, __VA_ARGS__)
#define RTSCOPE_E18_(M, a, ...) M(a) RTSCOPE_E17_(M, __VA_ARGS__)
#define RTSCOPE_E19_(M, a, ...) M(a) RTSCOPE_E18_(M, __VA_ARGS__)
#define RTSCOPE_E20_(M, a, ...) M(a) RTSCOPE_E19_(M, __VA_ARGS__)
#define RTSCOPE_E21_(M, a, ...) M(a) RTSCOPE_E20_(M, __VA_ARGS__)
#define RTSCOPE_E22_(M, a, ...) M(a) RTSCOPE_E21_(M, __VA_ARGS__)
#define RTSCOPE_E23_(M, a, ...) M(a) RTSCOPE_E22_(M, __VA_ARGS__)
#define RTSCOPE_E24_(M, a, ...) M(a) RTSCOPE_E23_(M, __VA_ARGS__)

#define RTSCOPE_N1_(M, a) M(1, a)
#define RTSCOPE_N2_(M, a, ...) M(2, a) RTSCOPE_N1_(M, __VA_ARGS__)
#define RTSCOPE_N3_(M, a, ...) M(3, a) RTSCOPE_N2_(M, __VA_ARGS__)
#define RTSCOPE_N4_(M, a, ...) M(4, a) RTSCOPE_N3_(M, __VA_ARGS__)
#define RTSCOPE_N5_(M, a, ...) M(5, a) RTSCOPE_N4_(M, __VA_ARGS__)
#define RTSCOPE_N6_(M, a, ...) M(6, a) RTSCOPE_N5_(M, __VA_ARGS__)
#define RTSCOPE_N7_(M, a, ...) M(7, a) RTSCOPE_N6_(M, __VA_ARGS__)
#define RTSCOPE_N8_(M, a, ...) M(8, a) RTSCOPE_N7_(M, __VA_ARGS__)
#define RTSCOPE_N9_(M, a, ...) M(9, a) RTSCOPE_N8_(M, __VA_ARGS__)
#define RTSCOPE_N10_(M, a, ...) M(10, a) RTSCOPE_N9_(M, __VA_ARGS__)
#define RTSCOPE_N11_(M, a, ...) M(11, a) RTSCOPE_N10_(M, __VA_ARGS__)
#define RTSCOPE_N12_(M, a, ...) M(12, a) RTSCOPE_N11_(M, __VA_ARGS__)
#define RTSCOPE_N13_(M, a, ...) M(13, a) RTSCOPE_N12_(M, __VA_ARGS__)
#define RTSCOPE_N14_(M, a, ...) M(14, a) RTSCOPE_N13_(M, __VA_ARGS__)
#define RTSCOPE_N15_(M, a, ...) M(15, a) RTSCOPE_N14_(M, __VA_ARGS__)
#define RTSCOPE_N16_(M, a, ...) M(16, a) RTSCOPE_N15_(M, __VA_ARGS__)
#define RTSCOPE_N17_(M, a, ...) M(17, a) RTSCOPE_N16_(M, __VA_ARGS__)
#define RTSCOPE_N18_(M, a, ...) M(18, a) RTSCOPE_N17_(M, __VA_ARGS__)
#define RTSCOPE_N19_(M, a, ...) M(19, a) RTSCOPE_N18_(M, __VA_ARGS__)
#define RTSCOPE_N20_(M, a, ...) M(20, a) RTSCOPE_N19_(M, __VA_ARGS__)
#define RTSCOPE_N21_(M, a, ...) M(21, a) RTSCOPE_N20_(M, __VA_ARGS__)
#define RTSCOPE_N22_(M, a, ...) M(22, a) RTSCOPE_N21_(M, __VA_ARGS__)
#define RTSCOPE_N23_(M, a, ...) M(23, a) RTSCOPE_N22_(M, __VA_ARGS__)
#define RTSCOPE_N24_(M, a, ...) M(24, a) RTSCOPE_N23_(M, __VA_ARGS__)

/* The number of arguments; of more than 24, a word that the compiler complains of. */
#define RTSCOPE_COUNT_(...)                                                                       \
    RTSCOPE_COUNT_1_(__VA_ARGS__, more_than_23_fields, more_than_23_fields, more_than_23_fields,  \
                     more_than_23_fields, more_than_23_fields, more_than_23_fields,               \
                     more_than_23_fields, more_than_23_fields, more_than_23_fields,               \
                     more_than_23_fields, more_than_23_fields, more_than_23_fields,               \
                     more_than_23_fields, more_than_23_fields, more_than_23_fields,               \
                     more_than_23_fields, more_than_23_fields, more_than_23_fields,               \
                     more_than_23_fields, more_than_23_fields, more_than_23_fields,               \
                     more_than_23_fields, more_than_23_fields, more_than_23_fields, 24, 23, 22,   \
                     21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1,   \
                     0)
#define RTSCOPE_COUNT_1_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16,   \
                         a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30,    \
                         a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44,    \
                         a45, a46, a47, a48, count, ...)                                          \
    count

#define RTSCOPE_JOIN_(a, b, c) RTSCOPE_JOIN_1_(a, b, c)
#define RTSCOPE_JOIN_1_(a, b, c) a##b##c
#define RTSCOPE_EACH_(M, ...)                                                                     \
    RTSCOPE_JOIN_(RTSCOPE_E, RTSCOPE_COUNT_(__VA_ARGS__), _)(M, __VA_ARGS__)
#define RTSCOPE_NUMBERED_(M, ...)                                                                 \
    RTSCOPE_JOIN_(RTSCOPE_N, RTSCOPE_COUNT_(__VA_ARGS__), _)(M, __VA_ARGS__)

#endif
