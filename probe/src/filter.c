/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Evaluates the filters of recorders; include/rtscope/filter.h says what their instructions mean.
 * Nothing in shared memory is believed: what is read from there is checked after it was copied. */
#define _GNU_SOURCE
#include "internal.h"

#include <rtscope/filter.h>
#include <sched.h>
#include <string.h>

__extension__ typedef __int128 wide;

struct number {
    enum { NONE, INTEGER, FLOAT } kind;
    wide integer;
    double real;
};

struct bytes {
    const unsigned char *at;
    size_t length;
};

struct machine {
    struct number registers[RTSCOPE_FILTER_REGISTERS];
    /* The payload, the hidden fields. */
    struct bytes parts[2];
    struct bytes constants;
    /* What lies behind the cursor. */
    struct bytes rest;
    struct bytes text;
};

/* The area of filters, set with the file; private to the process. */
struct rtscope_filters_ rtscope_filters_;

static struct number none(void)
{
    const struct number number = {NONE, 0, 0};
    return number;
}

static struct number integer(wide value)
{
    const struct number number = {INTEGER, value, 0};
    return number;
}

static struct number real(double value)
{
    const struct number number = {FLOAT, 0, value};
    return number;
}

static int skip(struct bytes *bytes, uint64_t length)
{
    if (length > bytes->length)
        return 0;
    bytes->at += length;
    bytes->length -= (size_t)length;
    return 1;
}

static const struct {
    unsigned char size;
    enum { UNSIGNED, SIGNED, REAL } meaning;
} numbers[] = {
#define NUMBER(type, size, meaning) [RTSCOPE_FIELD_##type] = {size, meaning},
    RTSCOPE_NUMBERS(NUMBER)
#undef NUMBER
};

/* The number of a type at the cursor; none when it does not fit. */
static struct number load(const struct bytes *rest, unsigned type, int big_endian)
{
    const size_t size = type < sizeof numbers / sizeof *numbers ? numbers[type].size : 0;
    unsigned char bytes[8] = {0};
    uint64_t bits;
    if (size == 0 || size > rest->length)
        return none();
    for (size_t place = 0; place < size; place++)
        bytes[place] = rest->at[big_endian ? size - 1 - place : place];
    memcpy(&bits, bytes, sizeof bits);
    if (numbers[type].meaning == REAL && size == sizeof(float)) {
        float value;
        memcpy(&value, bytes, sizeof value);
        return real((double)value);
    }
    if (numbers[type].meaning == REAL) {
        double value;
        memcpy(&value, bytes, sizeof value);
        return real(value);
    }
    if (numbers[type].meaning == UNSIGNED)
        return integer((wide)bits);
    const unsigned unused = 64 - 8 * (unsigned)size;
    return integer((wide)((int64_t)(bits << unused) >> unused));
}

/* -1, 0, 1; 2 when a float is no number. Exact also between an integer and a float. */
static int order(const struct number *left, const struct number *right)
{
    /* 2 to the power of 127: the first double that is greater than every integer. */
    const double end = 0x1p127;
    if (left->kind == INTEGER && right->kind == INTEGER)
        return (left->integer > right->integer) - (left->integer < right->integer);
    if (left->kind == FLOAT && right->kind == FLOAT)
        return left->real != left->real || right->real != right->real
                   ? 2
                   : (left->real > right->real) - (left->real < right->real);
    if (left->kind == FLOAT) {
        const int reversed = order(right, left);
        return reversed == 2 ? 2 : -reversed;
    }
    if (right->real != right->real)
        return 2;
    if (right->real >= end || right->real < -end)
        return right->real > 0 ? -1 : 1;
    const wide whole = (wide)right->real;
    if (left->integer != whole)
        return left->integer < whole ? -1 : 1;
    return ((double)whole > right->real) - ((double)whole < right->real);
}

static int holds(unsigned compare, int result)
{
    switch (compare) {
    case RTSCOPE_FILTER_EQUAL:
        return result == 0;
    case RTSCOPE_FILTER_NOT_EQUAL:
        return result != 0;
    case RTSCOPE_FILTER_LESS:
        return result == -1;
    case RTSCOPE_FILTER_LESS_EQUAL:
        return result == -1 || result == 0;
    case RTSCOPE_FILTER_GREATER:
        return result == 1;
    default:
        return result == 1 || result == 0;
    }
}

static struct number binary_integers(unsigned op, wide left, wide right)
{
    wide result;
    const int shifts = right >= 0 && right <= 63;
    switch (op) {
    case RTSCOPE_FILTER_ADD:
        return __builtin_add_overflow(left, right, &result) ? none() : integer(result);
    case RTSCOPE_FILTER_SUBTRACT:
        return __builtin_sub_overflow(left, right, &result) ? none() : integer(result);
    case RTSCOPE_FILTER_MULTIPLY:
        return __builtin_mul_overflow(left, right, &result) ? none() : integer(result);
    case RTSCOPE_FILTER_DIVIDE:
    case RTSCOPE_FILTER_REMAINDER:
        /* The least integer has no positive counterpart. */
        if (right == 0 || (right == -1 && __builtin_sub_overflow((wide)0, left, &result)))
            return none();
        return integer(op == RTSCOPE_FILTER_DIVIDE ? left / right : left % right);
    case RTSCOPE_FILTER_AND:
        return integer(left & right);
    case RTSCOPE_FILTER_OR:
        return integer(left | right);
    case RTSCOPE_FILTER_XOR:
        return integer(left ^ right);
    case RTSCOPE_FILTER_SHIFT_LEFT:
        return !shifts || __builtin_mul_overflow(left, (wide)1 << right, &result)
                   ? none()
                   : integer(result);
    case RTSCOPE_FILTER_SHIFT_RIGHT:
        return shifts ? integer(left >> right) : none();
    default:
        return none();
    }
}

static struct number binary(unsigned op, const struct number *left, const struct number *right)
{
    if (left->kind == NONE || right->kind == NONE)
        return none();
    if (left->kind == INTEGER && right->kind == INTEGER)
        return binary_integers(op, left->integer, right->integer);
    const double a = left->kind == FLOAT ? left->real : (double)left->integer;
    const double b = right->kind == FLOAT ? right->real : (double)right->integer;
    switch (op) {
    case RTSCOPE_FILTER_ADD:
        return real(a + b);
    case RTSCOPE_FILTER_SUBTRACT:
        return real(a - b);
    case RTSCOPE_FILTER_MULTIPLY:
        return real(a * b);
    case RTSCOPE_FILTER_DIVIDE:
        return b != 0 ? real(a / b) : none();
    default:
        return none();
    }
}

static struct number unary(unsigned op, const struct number *value)
{
    wide result;
    if (value->kind == FLOAT && op == 0)
        return real(-value->real);
    if (value->kind != INTEGER)
        return none();
    if (op != 0)
        return integer(~value->integer);
    return __builtin_sub_overflow((wide)0, value->integer, &result) ? none() : integer(result);
}

/* Goes over one part of a pattern that is no run: 1 when it takes `byte`, 0 when not, -1 when it
 * is none. */
static int takes(struct bytes *pattern, unsigned char byte)
{
    const unsigned char *const at = pattern->at;
    if (at[0] == RTSCOPE_FILTER_ONE)
        return skip(pattern, 1);
    if (at[0] == RTSCOPE_FILTER_BYTE && pattern->length >= 2) {
        const int same = at[1] == byte;
        skip(pattern, 2);
        return same;
    }
    if (at[0] != RTSCOPE_FILTER_SET || pattern->length < 3 ||
        pattern->length < 3 + 2 * (size_t)at[2])
        return -1;
    int inside = 0;
    for (unsigned place = 0; place < at[2]; place++)
        inside |= at[3 + 2 * place] <= byte && byte <= at[4 + 2 * place];
    skip(pattern, 3 + 2 * (uint64_t)at[2]);
    return inside == (at[1] != 0);
}

/* Whether the pattern covers the text. Only the last run is ever reconsidered: at most pattern
 * times text steps. */
static int covers(struct bytes pattern, struct bytes text)
{
    struct bytes run_pattern = {NULL, 0}, run_text = {NULL, 0};
    while (text.length) {
        int taken = 0;
        if (pattern.length && pattern.at[0] == RTSCOPE_FILTER_ANY) {
            skip(&pattern, 1);
            run_pattern = pattern;
            run_text = text;
            continue;
        }
        if (pattern.length && (taken = takes(&pattern, text.at[0])) < 0)
            return 0;
        if (taken) {
            skip(&text, 1);
        } else {
            if (!run_pattern.at || !skip(&run_text, 1))
                return 0;
            pattern = run_pattern;
            text = run_text;
        }
    }
    while (pattern.length && pattern.at[0] == RTSCOPE_FILTER_ANY)
        skip(&pattern, 1);
    return pattern.length == 0;
}

/* The text at the cursor: none where it does not fit. */
static int take_text(struct machine *machine, const struct rtscope_instruction *one)
{
    struct bytes rest = machine->rest;
    uint16_t counted = 0;
    if (one->a == 0) {
        if (rest.length < sizeof counted)
            return 0;
        memcpy(&counted, rest.at, sizeof counted);
        skip(&rest, sizeof counted);
    }
    const uint64_t length = one->a == 0 ? counted : one->value;
    if (length > rest.length)
        return 0;
    machine->text.at = rest.at;
    machine->text.length = one->a == 0 ? counted : strnlen((const char *)rest.at, (size_t)length);
    return 1;
}

static int move(struct machine *machine, const struct rtscope_instruction *one)
{
    uint16_t count;
    switch (one->op) {
    case RTSCOPE_FILTER_PLACE:
        machine->rest = machine->parts[one->a & 1];
        return 1;
    case RTSCOPE_FILTER_SKIP:
        return skip(&machine->rest, one->value);
    default:
        if (machine->rest.length < sizeof count)
            return 0;
        memcpy(&count, machine->rest.at, sizeof count);
        return skip(&machine->rest, sizeof count + (uint64_t)count * one->a);
    }
}

static struct number fact(unsigned which)
{
    /* The vDSO answers; no system call. */
    return which == 0 ? integer(sched_getcpu()) : integer((wide)rtscope_own_tid());
}

/* Whether the test holds; -1 when it makes no sense. */
static int test(const struct machine *machine, const struct rtscope_instruction *one)
{
    const struct number *const left = &machine->registers[one->a % RTSCOPE_FILTER_REGISTERS];
    if (one->op == RTSCOPE_FILTER_IF_COMPARE) {
        const struct number *const right =
            &machine->registers[one->value % RTSCOPE_FILTER_REGISTERS];
        return left->kind != NONE && right->kind != NONE && holds(one->b, order(left, right));
    }
    if (one->op == RTSCOPE_FILTER_IF_NOT_ZERO)
        return left->kind == INTEGER ? left->integer != 0 : left->kind == FLOAT && left->real != 0;
    if (one->op == RTSCOPE_FILTER_IF_VALUE)
        return left->kind != NONE;
    struct bytes constant = machine->constants;
    const uint64_t at = one->value & UINT32_MAX, length = one->value >> 32;
    if (!skip(&constant, at) || length > constant.length)
        return -1;
    constant.length = (size_t)length;
    const struct bytes text = machine->text;
    if (one->op == RTSCOPE_FILTER_IF_LIKE)
        return one->b ? covers(constant, text)
                      : length == 0 || (text.length && memmem(text.at, text.length, constant.at,
                                                              constant.length) != NULL);
    const size_t common = text.length < constant.length ? text.length : constant.length;
    int result = common ? memcmp(text.at, constant.at, common) : 0;
    if (result == 0)
        result = (text.length > constant.length) - (text.length < constant.length);
    return holds(one->b, (result > 0) - (result < 0));
}

/* One instruction that neither ends nor tests. */
static int compute(struct machine *machine, const struct rtscope_instruction *one)
{
    struct number *const into = &machine->registers[one->a % RTSCOPE_FILTER_REGISTERS];
    double constant;
    switch (one->op) {
    case RTSCOPE_FILTER_LOAD:
        *into = load(&machine->rest, one->b, one->c == 1);
        return 1;
    case RTSCOPE_FILTER_INTEGER:
        *into = integer(one->b ? (wide)(int64_t)one->value : (wide)one->value);
        return 1;
    case RTSCOPE_FILTER_FLOAT:
        memcpy(&constant, &one->value, sizeof constant);
        *into = real(constant);
        return 1;
    case RTSCOPE_FILTER_FACT:
        *into = fact(one->b);
        return 1;
    case RTSCOPE_FILTER_UNARY:
        *into = unary(one->b, into);
        return 1;
    case RTSCOPE_FILTER_BINARY:
        *into = binary(one->b, into, &machine->registers[one->c % RTSCOPE_FILTER_REGISTERS]);
        return 1;
    case RTSCOPE_FILTER_TEXT:
        return take_text(machine, one);
    case RTSCOPE_FILTER_PLACE:
    case RTSCOPE_FILTER_SKIP:
    case RTSCOPE_FILTER_SKIP_COUNTED:
        return move(machine, one);
    default:
        return 0;
    }
}

static int run(struct machine *machine, struct bytes program, uint32_t length)
{
    for (uint32_t place = 0; place < length;) {
        struct rtscope_instruction one;
        memcpy(&one, program.at + place * sizeof one, sizeof one);
        if (one.op == RTSCOPE_FILTER_PASS || one.op == RTSCOPE_FILTER_DROP)
            return one.op == RTSCOPE_FILTER_PASS;
        if (one.op >= RTSCOPE_FILTER_IF_COMPARE && one.op <= RTSCOPE_FILTER_IF_LIKE) {
            const int result = test(machine, &one);
            if (result < 0 || one.target <= place)
                return 1;
            place = (result != 0) == (one.c != 0) ? one.target : place + 1;
            continue;
        }
        if (!compute(machine, &one))
            return 1;
        place++;
    }
    return 1;
}

/* Whether a filter lets an event pass; `parts` are its payload and its hidden fields. */
static int passes(uint32_t filter, const struct bytes parts[2])
{
    struct bytes area = {rtscope_filters_.at, rtscope_filters_.bytes};
    struct rtscope_filter header;
    if (!skip(&area, filter * sizeof(uint64_t)) || area.length < sizeof header)
        return 1;
    memcpy(&header, area.at, sizeof header);
    skip(&area, sizeof header);
    const uint64_t code_bytes =
        (uint64_t)header.instructions_length * sizeof(struct rtscope_instruction);
    if (header.instructions_length > RTSCOPE_FILTER_INSTRUCTIONS_MAX ||
        code_bytes > area.length || header.constants_bytes > area.length - code_bytes)
        return 1;
    struct machine machine;
    memset(&machine, 0, sizeof machine);
    machine.parts[0] = parts[0];
    machine.parts[1] = parts[1];
    machine.rest = machine.parts[0];
    machine.constants.at = area.at + code_bytes;
    machine.constants.length = header.constants_bytes;
    return run(&machine, area, header.instructions_length);
}

/* Those of `sets` whose filters let an event pass; `filters` is where these are. */
static unsigned passed_by(unsigned sets, uint32_t filters, const struct bytes parts[2])
{
    struct bytes area = {rtscope_filters_.at, rtscope_filters_.bytes};
    struct rtscope_filters all;
    if (!filters || !skip(&area, filters * sizeof(uint64_t)) || area.length < sizeof all)
        return sets;
    memcpy(&all, area.at, sizeof all);
    unsigned passed = 0;
    for (unsigned set = 0; set < RTSCOPE_SETS_MAX; set++)
        if (sets & 1u << set && (!all.at[set] || passes(all.at[set], parts)))
            passed |= 1u << set;
    return passed;
}

/* Writes an event into all sets but the first that it is for; gives whether it is for that one too,
 * which is the caller's to write. All filters first: a record's end is filled up with zeros. */
int rtscope_pass_(const struct rtscope_switch *state, void *payload, size_t payload_bytes,
                  void *hidden, size_t hidden_bytes)
{
    const uint64_t word =
        __atomic_load_n((const rtscope_switch_word *)(const void *)state, __ATOMIC_ACQUIRE);
    struct rtscope_switch now;
    const struct bytes parts[2] = {{payload, payload_bytes}, {hidden, hidden_bytes}};
    memcpy(&now, &word, sizeof now);
    const unsigned passed = passed_by(now.sets, now.filter, parts);
    for (unsigned set = 1; set < RTSCOPE_SETS_MAX; set++)
        if (passed & 1u << set && rtscope_write_views[set].rings)
            rtscope_write_(&rtscope_write_views[set], now.id, payload, payload_bytes);
    return passed & 1;
}
