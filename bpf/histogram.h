// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The bucket of a duration in the log-linear histogram, without a loop and without division.

#ifndef RTSCOPE_HISTOGRAM_H
#define RTSCOPE_HISTOGRAM_H

#include "event.h"

static __always_inline rts_u32 log2_floor(rts_u64 value)
{
	rts_u32 log2 = 0, shift;

	shift = (value > 0xffffffffull) << 5;
	value >>= shift;
	log2 |= shift;
	shift = (value > 0xffff) << 4;
	value >>= shift;
	log2 |= shift;
	shift = (value > 0xff) << 3;
	value >>= shift;
	log2 |= shift;
	shift = (value > 0xf) << 2;
	value >>= shift;
	log2 |= shift;
	shift = (value > 0x3) << 1;
	value >>= shift;
	return log2 | shift | (value >> 1);
}

static __always_inline rts_u32 histogram_bucket(rts_u64 value)
{
	rts_u32 octave, bucket;

	if (value < (1 << RTS_SUB_BITS))
		return value;
	octave = log2_floor(value) - RTS_SUB_BITS;
	bucket = ((octave + 1) << RTS_SUB_BITS) + ((value >> octave) & ((1 << RTS_SUB_BITS) - 1));
	return bucket < RTS_BUCKETS_MAX ? bucket : RTS_BUCKETS_MAX - 1;
}

#endif
