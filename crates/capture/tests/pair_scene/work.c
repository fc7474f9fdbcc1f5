/* Work that begins and ends, under functions of its own and marks as <sys/sdt.h> writes them; tells
 * each time before the begin and after the end. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MARK(name, value) MARK_OF(name, "-8@%0", value, 0)

/* With its arguments in the assembler's words, over two numbers. */
#define MARK_OF(name, arguments, first, second)                                 \
	__asm__ volatile("990: nop\n"                                           \
			 ".pushsection .note.stapsdt,\"?\",\"note\"\n"          \
			 ".balign 4\n"                                          \
			 ".4byte 992f-991f, 994f-993f, 3\n"                     \
			 "991: .asciz \"stapsdt\"\n"                            \
			 "992: .balign 4\n"                                     \
			 "993: .8byte 990b\n"                                   \
			 ".8byte _.stapsdt.base\n"                              \
			 ".8byte 0\n"                                           \
			 ".asciz \"work\"\n"                                    \
			 ".asciz \"" name "\"\n"                                \
			 ".asciz \"" arguments "\"\n"                          \
			 "994: .balign 4\n"                                     \
			 ".popsection\n"                                        \
			 ".ifndef _.stapsdt.base\n"                             \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
			 ".weak _.stapsdt.base\n"                               \
			 ".hidden _.stapsdt.base\n"                             \
			 "_.stapsdt.base: .space 1\n"                           \
			 ".size _.stapsdt.base, 1\n"                            \
			 ".popsection\n"                                        \
			 ".endif\n"                                             \
			 :                                                      \
			 : "r"(first), "r"(second)                              \
			 : "memory")

struct slot {
	int id;
	int minus;
};

/* Its first argument is found by an index, the second is no number, the third has a sign. */
#define MARK_BY_INDEX(name, slots, at) \
	MARK_OF(name, "4@(%0,%1,8) 8f@%%xmm0 -4@4(%0,%1,8)", slots, at)

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

__attribute__((noinline)) long work_begin(long id)
{
	struct slot slots[3] = { [2] = { .id = id, .minus = -7 } };

	MARK("begin", id);
	MARK_BY_INDEX("slot_begin", slots, 2l);
	return id + 1000;
}

__attribute__((noinline)) long work_end(long id)
{
	struct slot slots[2] = { [1] = { .id = id, .minus = -8 } };

	MARK("end", id);
	MARK_BY_INDEX("slot_end", slots, 1l);
	return id + 2000;
}

int main(int count, char **words)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	long requests = count > 1 ? atol(words[1]) : 1;

	/* Each begins before the one before it ends: only their ids tell them apart. */
	long long begun_ns = now_ns();
	work_begin(0);
	for (long id = 1; id <= requests; id++) {
		long long next_ns = now_ns();

		work_begin(id);
		nanosleep(&pause, 0);
		work_end(id - 1);
		printf("%ld %lld %lld\n", id - 1, begun_ns, now_ns());
		begun_ns = next_ns;
	}
	return 0;
}
