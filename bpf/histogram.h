// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The bucket of a duration in the log-linear histogram, without a loop and without division.

#ifndef RTSCOPE_HISTOGRAM_H
#define RTSCOPE_HISTOGRAM_H

#include "event.h"

// Whether a value below 2^63 is above a limit, as 0 or 1, without a jump.
static __always_inline rts_u64 is_above(rts_u64 value, rts_u64 limit)
{
	return (limit - value) >> 63;
}

static __always_inline rts_u32 log2_floor(rts_u64 value)
{
	rts_u64 log2, shift;

	// Years: nobody is that late.
	if (value >> 63)
		return 63;
	log2 = shift = is_above(value, 0xffffffffull) << 5;
	value >>= shift;
	shift = is_above(value, 0xffff) << 4;
	value >>= shift;
	log2 |= shift;
	shift = is_above(value, 0xff) << 3;
	value >>= shift;
	log2 |= shift;
	shift = is_above(value, 0xf) << 2;
	value >>= shift;
	log2 |= shift;
	shift = is_above(value, 0x3) << 1;
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
