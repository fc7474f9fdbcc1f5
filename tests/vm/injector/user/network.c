/* A client of memcached: one request in each period, and how long its answer took. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab.h"

#define PORT 11211
#define REQUEST "get key\r\n"
#define ANSWER_END "END\r\n"

static int connect_to(const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int at_once = 1;
	int line = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		fail("--file is no address", EINVAL);
	if (line < 0 || connect(line, (const struct sockaddr *)&to, sizeof(to)))
		fail("cannot connect", errno);
	if (setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once)))
		fail("cannot send at once", errno);
	return line;
}

static void ask(int line)
{
	const size_t end = sizeof(ANSWER_END) - 1;
	char answer[256];
	size_t got = 0;

	if (write(line, REQUEST, sizeof(REQUEST) - 1) != sizeof(REQUEST) - 1)
		fail("cannot send a request", errno);
	while (got < end || memcmp(answer + got - end, ANSWER_END, end)) {
		ssize_t count = read(line, answer + got, sizeof(answer) - got);

		if (count <= 0)
			fail("no answer", count ? errno : EPIPE);
		got += (size_t)count;
	}
}

void run_client(const char *kind, const struct options *options)
{
	int line = connect_to(options->file);
	uint64_t next_ns;

	place(options->cpu, options->priority);
	next_ns = (now_ns() / options->period_ns + 2) * options->period_ns;
	for (unsigned int i = 0; i < options->count; i++) {
		uint64_t begin_ns;

		sleep_until_ns(next_ns);
		begin_ns = now_ns();
		ask(line);
		truth_add(kind, options->name, options->cpu, begin_ns, now_ns());
		while (next_ns <= now_ns())
			next_ns += options->period_ns;
	}
	close(line);
}
