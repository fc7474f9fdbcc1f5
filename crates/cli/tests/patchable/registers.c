/* Loads every register that a call may pass on, calls a function with room at its entry that stores
 * them all, and ends with 0 where both are the same each time. Gives a recorder time before that,
 * where the environment says so. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMES 20000

struct registers {
    uint64_t numbers[15]; /* rax rcx rdx rsi rdi r8 r9 r10 r11 rbx rbp r12 r13 r14 r15 */
    uint64_t vectors[16][8];
    uint64_t masks[8];
};
struct registers given, seen __attribute__((aligned(64)));
static int width;

#define NUMBERS(move)                                                                              \
    move("rax", 0) move("rcx", 8) move("rdx", 16) move("rsi", 24) move("rdi", 32) move("r8", 40)   \
    move("r9", 48) move("r10", 56) move("r11", 64) move("rbx", 72) move("rbp", 80)                 \
    move("r12", 88) move("r13", 96) move("r14", 104) move("r15", 112)
#define EACH(move, name)                                                                           \
    move(name, 0) move(name, 1) move(name, 2) move(name, 3) move(name, 4) move(name, 5)            \
    move(name, 6) move(name, 7) move(name, 8) move(name, 9) move(name, 10) move(name, 11)          \
    move(name, 12) move(name, 13) move(name, 14) move(name, 15)
#define STORE(name, at) "movq %" name ", seen+" #at "(%rip)\n"
#define LOAD(name, at) "movq given+" #at "(%rip), %" name "\n"
#define STORE_VECTOR(move, name, n) move " %" name #n ", seen+120+64*" #n "(%rip)\n"
#define LOAD_VECTOR(move, name, n) move " given+120+64*" #n "(%rip), %" name #n "\n"
#define STORE_X(name, n) STORE_VECTOR("movups", "xmm", n)
#define LOAD_X(name, n) LOAD_VECTOR("movups", "xmm", n)
#define STORE_Y(name, n) STORE_VECTOR("vmovups", "ymm", n)
#define LOAD_Y(name, n) LOAD_VECTOR("vmovups", "ymm", n)
#define STORE_Z(name, n) STORE_VECTOR("vmovups", "zmm", n)
#define LOAD_Z(name, n) LOAD_VECTOR("vmovups", "zmm", n)
#define STORE_K(n) "kmovq %k" #n ", seen+1144+8*" #n "(%rip)\n"
#define LOAD_K(n) "kmovq given+1144+8*" #n "(%rip), %k" #n "\n"
#define EACH_K(move) move(0) move(1) move(2) move(3) move(4) move(5) move(6) move(7)

/* The frame pointer and what else a function must keep is saved around. */
#define PROGRAM(suffix, load, store)                                                               \
    __attribute__((naked, noinline)) void look_##suffix(void)                                      \
    {                                                                                              \
        __asm__(NUMBERS(STORE) store "ret");                                                       \
    }                                                                                              \
    __attribute__((naked, noinline, patchable_function_entry(0))) void call_##suffix(void)         \
    {                                                                                              \
        __asm__("push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\nsub $8, %rsp\n" \
                load NUMBERS(LOAD) "call look_" #suffix "\n"                                       \
                "add $8, %rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret"); \
    }
PROGRAM(x, EACH(LOAD_X, ""), EACH(STORE_X, ""))
PROGRAM(y, EACH(LOAD_Y, ""), EACH(STORE_Y, ""))
PROGRAM(z, EACH(LOAD_Z, "") EACH_K(LOAD_K), EACH(STORE_Z, "") EACH_K(STORE_K))

__attribute__((patchable_function_entry(0))) static int compare(int turn)
{
    const int words = width / 64;
    for (int n = 0; n < 15; n++)
        if (seen.numbers[n] != given.numbers[n])
            return printf("turn %d: number %d\n", turn, n);
    for (int n = 0; n < 16; n++)
        if (memcmp(seen.vectors[n], given.vectors[n], 8 * words) != 0)
            return printf("turn %d: vector %d\n", turn, n);
    if (width == 512 && memcmp(seen.masks, given.masks, sizeof seen.masks) != 0)
        return printf("turn %d: masks\n", turn);
    return 0;
}

int main(void)
{
    uint64_t *const words = (uint64_t *)&given;
    if (getenv("WAIT"))
        usleep(500000);
    width = __builtin_cpu_supports("avx512bw") ? 512 : __builtin_cpu_supports("avx") ? 256 : 128;
    for (int turn = 0; turn < TIMES; turn++) {
        for (unsigned n = 0; n < sizeof given / 8; n++)
            words[n] = (n + 1) * 0x9e3779b97f4a7c15u + (uint64_t)turn;
        memset(&seen, 0, sizeof seen);
        if (width == 512)
            call_z();
        else if (width == 256)
            call_y();
        else
            call_x();
        if (compare(turn))
            return 1;
    }
    return 0;
}
