/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Filters that a recorder leaves in the area of filters, and that the traced process evaluates
 * before an event is written. Nobody need trust them: jumps lead forward alone, so that a filter of
 * n instructions takes at most n steps, and every access is checked when it happens. A filter that
 * makes no sense lets its events pass.
 *
 * A filter is this header, its instructions, its constants, and zeros to a multiple of 8 bytes.
 */
#ifndef RTSCOPE_FILTER_H
#define RTSCOPE_FILTER_H

#include <stdint.h>

#define RTSCOPE_FILTER_INSTRUCTIONS_MAX 512u
#define RTSCOPE_FILTER_REGISTERS 8u

struct rtscope_filter {
    uint32_t instructions_length;
    uint32_t constants_bytes;
};

/*
 * Registers hold an integer of 128 bits, a float, or no value: what divides by zero has none, and a
 * test that is asked for none fails. A cursor goes over the fields; there is one text.
 */
enum rtscope_filter_op {
    /* The event is written, or not. */
    RTSCOPE_FILTER_PASS = 1,
    RTSCOPE_FILTER_DROP = 2,
    /* The cursor to the payload (a = 0) or the hidden fields (a = 1). */
    RTSCOPE_FILTER_PLACE = 3,
    /* The cursor on by `value` bytes. */
    RTSCOPE_FILTER_SKIP = 4,
    /* The cursor over a uint16_t and as many elements of `a` bytes as it says. */
    RTSCOPE_FILTER_SKIP_COUNTED = 5,
    /* Register a: the number of type b (enum rtscope_field) at the cursor; c = 1: big-endian. */
    RTSCOPE_FILTER_LOAD = 6,
    /* Register a: `value`, signed when b = 1. */
    RTSCOPE_FILTER_INTEGER = 7,
    /* Register a: the double whose bits `value` is. */
    RTSCOPE_FILTER_FLOAT = 8,
    /* Register a: the CPU (b = 0), the thread (b = 1). */
    RTSCOPE_FILTER_FACT = 9,
    /* Register a: - (b = 0) or ~ (b = 1) of itself. */
    RTSCOPE_FILTER_UNARY = 10,
    /* Register a: itself and register c by enum rtscope_filter_binary b. */
    RTSCOPE_FILTER_BINARY = 11,
    /* The text at the cursor: counted (a = 0), or at most `value` bytes (a = 1). */
    RTSCOPE_FILTER_TEXT = 12,
    /* Tests: to the instruction `target` when the result is c. */
    /* Registers a and `value` by enum rtscope_filter_compare b. */
    RTSCOPE_FILTER_IF_COMPARE = 13,
    /* Register a is not zero. */
    RTSCOPE_FILTER_IF_NOT_ZERO = 14,
    /* Register a has a value. */
    RTSCOPE_FILTER_IF_VALUE = 15,
    /* The text and a constant by enum rtscope_filter_compare b; the constant is at the low half of
     * `value`, its bytes are the high half. */
    RTSCOPE_FILTER_IF_TEXT = 16,
    /* The text holds that constant (b = 0), or is covered by the pattern that it is (b = 1). */
    RTSCOPE_FILTER_IF_LIKE = 17,
};

enum rtscope_filter_compare {
    RTSCOPE_FILTER_EQUAL = 0,
    RTSCOPE_FILTER_NOT_EQUAL = 1,
    RTSCOPE_FILTER_LESS = 2,
    RTSCOPE_FILTER_LESS_EQUAL = 3,
    RTSCOPE_FILTER_GREATER = 4,
    RTSCOPE_FILTER_GREATER_EQUAL = 5,
};

enum rtscope_filter_binary {
    RTSCOPE_FILTER_ADD = 0,
    RTSCOPE_FILTER_SUBTRACT = 1,
    RTSCOPE_FILTER_MULTIPLY = 2,
    RTSCOPE_FILTER_DIVIDE = 3,
    RTSCOPE_FILTER_REMAINDER = 4,
    RTSCOPE_FILTER_AND = 5,
    RTSCOPE_FILTER_OR = 6,
    RTSCOPE_FILTER_XOR = 7,
    RTSCOPE_FILTER_SHIFT_LEFT = 8,
    RTSCOPE_FILTER_SHIFT_RIGHT = 9,
};

/* The parts of a pattern: a kind, then what belongs to it. */
enum rtscope_filter_part {
    /* Any run of bytes. */
    RTSCOPE_FILTER_ANY = 0,
    /* Any byte. */
    RTSCOPE_FILTER_ONE = 1,
    /* The byte that follows. */
    RTSCOPE_FILTER_BYTE = 2,
    /* A byte in (1) or not in (0) one of n ranges; then n, and first and last of each. */
    RTSCOPE_FILTER_SET = 3,
};

struct rtscope_instruction {
    /* enum rtscope_filter_op */
    uint8_t op;
    uint8_t a;
    uint8_t b;
    uint8_t c;
    /* Greater than the instruction's own place. */
    uint32_t target;
    uint64_t value;
};

#endif
