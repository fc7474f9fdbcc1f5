/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a call at a function's entry does while its event is on. The function must find all
 * registers as its caller left them: those for arguments, and any other, because a compiler that
 * sees both functions relies on more than the calling convention (-fipa-ra). Those for numbers are
 * saved here; those for vectors are not touched (-mgeneral-regs-only), except where the record
 * needs a call into the library: around that they are saved as the dynamic linker does.
 */
#define _GNU_SOURCE
#include "patchable.h"

#include <cpuid.h>
#include <rtscope/event.h>

/* Parts of the processor's state that a function's caller may rely on: x87, SSE, AVX, AVX-512. */
#define STATE_PARTS 0xe7u
#define STATE_BYTES_MAX 2816u
#define STATE_HEADER 512u

const struct rtscope_switch *patch_switch;

/* The parts that this system has; 0: it saves them by the instruction that is older. */
static uint32_t state_parts;

__thread uintptr_t patch_calling;

static const struct patch_refusal unknown_vectors = {
    "the processor has more vector registers than are known here", PATCH_INSTRUMENT};

const struct patch_refusal *patch_prepare(void)
{
    uint32_t a, b, c, d;
    /* The event, spelt out, because a trampoline must know its switch. */
    struct rtscope_switch *own;
    RTSCOPE_DECLARE_(own, RTSCOPE_LEVEL_DEBUG_FUNCTION, rtscope_patchable, 0func_entry,
                     x64("addr", 0), x64("call_site", 0), end());
    patch_switch = own;
    __cpuid(1, a, b, c, d);
    if (!(c & bit_OSXSAVE))
        return NULL;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    state_parts = a & STATE_PARTS;
    for (uint32_t part = 2; part < 8; part++) {
        uint32_t bytes, offset;
        if (!(state_parts >> part & 1))
            continue;
        __cpuid_count(0xd, part, bytes, offset, c, d);
        if (bytes + offset > STATE_BYTES_MAX)
            return &unknown_vectors;
    }
    return NULL;
}

static inline __attribute__((always_inline)) void begin_call(unsigned char *state)
{
    *(volatile uintptr_t *)&patch_calling = (uintptr_t)state;
    if (!state_parts) {
        __asm__ volatile("fxsave64 (%0)" : : "r"(state) : "memory");
        return;
    }
    volatile uint64_t *const header = (volatile uint64_t *)(void *)(state + STATE_HEADER);
    for (unsigned place = 0; place < 8; place++)
        header[place] = 0;
    __asm__ volatile("xsave64 (%0)" : : "r"(state), "a"(state_parts), "d"(0) : "memory");
}

static inline __attribute__((always_inline)) void end_call(unsigned char *state)
{
    if (!state_parts)
        __asm__ volatile("fxrstor64 (%0)" : : "r"(state) : "memory");
    else
        __asm__ volatile("xrstor64 (%0)" : : "r"(state), "a"(state_parts), "d"(0) : "memory");
    *(volatile uintptr_t *)&patch_calling = 0;
}

static __attribute__((noinline)) void write_keeping_vectors(const struct rtscope_object *object,
                                                            uint32_t id, uint64_t *payload,
                                                            size_t payload_bytes)
{
    unsigned char state[STATE_BYTES_MAX] __attribute__((aligned(64)));
    begin_call(state);
    rtscope_write_(object, id, payload, payload_bytes);
    end_call(state);
}

static __attribute__((noinline)) int pass_keeping_vectors(const struct rtscope_switch *own,
                                                          void *payload, size_t payload_bytes,
                                                          void *hidden, size_t hidden_bytes)
{
    unsigned char state[STATE_BYTES_MAX] __attribute__((aligned(64)));
    begin_call(state);
    const int passes = rtscope_pass_(own, payload, payload_bytes, hidden, hidden_bytes);
    end_call(state);
    return passes;
}

/* What RTSCOPE_RECORD_ calls below. */
#define rtscope_write_ write_keeping_vectors
#define rtscope_pass_ pass_keeping_vectors

static inline __attribute__((always_inline)) void record(uint64_t function, uint64_t call_site)
{
    const struct rtscope_switch *const rtscope_switch_ = patch_switch;
    const uint8_t rtscope_enabled_ = *(const volatile uint8_t *)&rtscope_switch_->enabled;
    if (!rtscope_enabled_)
        return;
    do
        RTSCOPE_RECORD_(x64("addr", function), x64("call_site", call_site), end());
    while (0);
}

/*
 * An entry within a call into the library: the program replaced what the library calls (memcpy), or
 * a signal came just then, whose handler has no room and calls this function. Its record could be
 * without end, as it makes that call again; it counts as lost. Where no call is made signals do no
 * harm.
 */
static void lose(void)
{
    const unsigned sets = *(const volatile uint8_t *)&patch_switch->sets;
    /* The rings of each set lie behind those of the one before. */
    for (uint32_t set = 0; set < RTSCOPE_SETS_MAX; set++)
        if (sets & 1u << set)
            __atomic_fetch_add(
                &rtscope_ring_(&rtscope_object_, set * rtscope_object_.rings_length)
                     ->lost[RTSCOPE_LOSS_BUSY],
                1, __ATOMIC_RELAXED);
}

/* Whether a function that returns to `call_site` is a signal's handler: there is the system call
 * that ends one, mov $SYS_rt_sigreturn, %rax; syscall. Debuggers know it by the same bytes. */
static int is_handler(uint64_t call_site)
{
    const unsigned char *const code = (const unsigned char *)(uintptr_t)call_site;
    static const unsigned char end[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    unsigned same = 0;
    while (same < sizeof end && code[same] == end[same])
        same++;
    return same == sizeof end;
}

/* The function at this address is entered; `call_site` is where it returns to. */
PATCH_HIDDEN __attribute__((used)) void patch_record(uint64_t function, uint64_t call_site);

void patch_record(uint64_t function, uint64_t call_site)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (__builtin_expect(patch_calling != 0, 0)) {
        if (here < patch_calling && !is_handler(call_site)) {
            lose();
            return;
        }
        /* That call was interrupted, or left by longjmp. Where it goes on, what the program
         * replaced is recorded once. */
        patch_calling = 0;
    }
    record(function, call_site);
}

/* The stack holds, from its top: rax, where the function goes on, where it returns to. Whoever
 * unwinds from here finds the function at its entry. */
__asm__(".pushsection .text\n"
        ".globl patch_entered\n"
        ".hidden patch_entered\n"
        ".type patch_entered, @function\n"
        "patch_entered:\n"
        ".cfi_startproc\n"
        ".cfi_def_cfa_offset 16\n"
        "endbr64\n"
        "pushq %rbp\n"
        ".cfi_def_cfa_offset 24\n"
        ".cfi_offset %rbp, -24\n"
        "movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "pushq %rcx\n"
        "pushq %rdx\n"
        "pushq %rsi\n"
        "pushq %rdi\n"
        "pushq %r8\n"
        "pushq %r9\n"
        "pushq %r10\n"
        "pushq %r11\n"
        "movq 16(%rbp), %rdi\n"
        "subq %rax, %rdi\n"
        "movq 24(%rbp), %rsi\n"
        "andq $-16, %rsp\n"
        "call patch_record\n"
        "leaq -64(%rbp), %rsp\n"
        "popq %r11\n"
        "popq %r10\n"
        "popq %r9\n"
        "popq %r8\n"
        "popq %rdi\n"
        "popq %rsi\n"
        "popq %rdx\n"
        "popq %rcx\n"
        "popq %rbp\n"
        ".cfi_def_cfa %rsp, 16\n"
        "popq %rax\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size patch_entered, .-patch_entered\n"
        ".popsection\n");
