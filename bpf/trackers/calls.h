// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// The system call that the current task makes: its number and its arguments, in both tables that a
// kernel of 64 bits has. A program of 64 bits may use that for 32 bits as well.

#ifndef RTSCOPE_TRACKERS_CALLS_H
#define RTSCOPE_TRACKERS_CALLS_H

#include "../kernel.h"

#if defined(__TARGET_ARCH_x86)
// arch/x86/include/asm/thread_info.h
#define TS_COMPAT 2

static __always_inline bool call_of_32_bits(struct task_struct *current, struct pt_regs *regs)
{
	return current->thread_info.status & TS_COMPAT;
}

#define call_number(regs) ((rts_s32)(regs)->orig_ax)
#define call_argument_0(regs, of_32_bits) ((of_32_bits) ? (rts_u32)(regs)->bx : (regs)->di)
#define call_argument_1(regs, of_32_bits) ((of_32_bits) ? (rts_u32)(regs)->cx : (regs)->si)
#define call_argument_2(regs, of_32_bits) ((regs)->dx)
#define CALL_FUTEX 202
#else
static __always_inline bool call_of_32_bits(struct task_struct *current, struct pt_regs *regs)
{
	return regs_of_32_bits(regs);
}

#define call_number(regs) ((rts_s32)(regs)->syscallno)
#define call_argument_0(regs, of_32_bits) ((regs)->orig_x0)
#define call_argument_1(regs, of_32_bits) ((regs)->regs[1])
#define call_argument_2(regs, of_32_bits) ((regs)->regs[2])
#define CALL_FUTEX 98
#endif

// Of programs of 32 bits, on both architectures.
#define CALL_FUTEX_OF_32_BITS 240
#define CALL_FUTEX_TIME64 422
// In every table.
#define CALL_FUTEX_WAITV 449
#define CALL_FUTEX_WAIT 455

#endif
