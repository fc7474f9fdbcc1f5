/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In the shared library alone, which stays loaded for good (-z nodelete). */
#include "../internal.h"

const int rtscope_stays_ = 1;
