/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* RTSCOPE_EACH_(M, a, b, …): M(a) M(b) …, for up to 24 arguments or none. */
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

/* The name of the macro for the number of arguments behind the first two, which the caller gives
 * as a level, a provider and a name plus the fields: the fields decide. */
#define RTSCOPE_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, \
                      a18, a19, a20, a21, a22, a23, a24, pick, ...)                               \
    pick
#define RTSCOPE_EACH_(M, ...)                                                                     \
    RTSCOPE_PICK_(__VA_ARGS__, RTSCOPE_E24_, RTSCOPE_E23_, RTSCOPE_E22_, RTSCOPE_E21_,            \
                  RTSCOPE_E20_, RTSCOPE_E19_, RTSCOPE_E18_, RTSCOPE_E17_, RTSCOPE_E16_,           \
                  RTSCOPE_E15_, RTSCOPE_E14_, RTSCOPE_E13_, RTSCOPE_E12_, RTSCOPE_E11_,           \
                  RTSCOPE_E10_, RTSCOPE_E9_, RTSCOPE_E8_, RTSCOPE_E7_, RTSCOPE_E6_, RTSCOPE_E5_,  \
                  RTSCOPE_E4_, RTSCOPE_E3_, RTSCOPE_E2_, RTSCOPE_E1_, unused)                     \
    (M, __VA_ARGS__)

#endif
