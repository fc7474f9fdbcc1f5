/* Work that begins and ends, under functions of its own and marks as <sys/sdt.h> writes them; tells
 * each time before the begin and after the end. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MARK(name, value)                                                       \
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
			 ".asciz \"-8@%0\"\n"                                   \
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
			 : "r"(value))

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

__attribute__((noinline)) long work_begin(long id)
{
	MARK("begin", id);
	return id + 1000;
}

__attribute__((noinline)) long work_end(long id)
{
	MARK("end", id);
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
