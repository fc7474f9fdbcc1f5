/* Periods by timers that tell a task by a descriptor, alone or through epoll, or by a signal. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "actor.h"

static struct itimerspec times_of(uint64_t period_ns, uint64_t first_ns)
{
	return (struct itimerspec){
		.it_interval = { (time_t)(period_ns / 1000000000u), (long)(period_ns % 1000000000u) },
		.it_value = { (time_t)(first_ns / 1000000000u), (long)(first_ns % 1000000000u) },
	};
}

/* Through `epoll`, or by a read that blocks. */
static void timer_make(struct player *player, uint64_t period_ns, bool epoll)
{
	struct itimerspec times = times_of(period_ns, player->next_ns);
	struct epoll_event event = { .events = EPOLLIN };

	player->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (epoll) {
		player->epoll = epoll_create1(EPOLL_CLOEXEC);
		epoll_ctl(player->epoll, EPOLL_CTL_ADD, player->timer, &event);
	}
	timerfd_settime(player->timer, TFD_TIMER_ABSTIME, &times, NULL);
}

uint64_t wait_timerfd(struct player *player, uint64_t period_ns, bool epoll)
{
	uint64_t count = 1, due_ns = player->next_ns;
	struct epoll_event event;

	if (player->timer < 0)
		timer_make(player, period_ns, epoll);
	/* Who is stopped or traced meanwhile is told EINTR. */
	while (epoll && epoll_wait(player->epoll, &event, 1, -1) < 0)
		if (errno != EINTR)
			fail("cannot wait for the timer", player->task->name, errno);
	if (read(player->timer, &count, sizeof(count)) != (ssize_t)sizeof(count))
		fail("cannot read the timer", player->task->name, errno);
	player->next_ns += count * period_ns;
	return due_ns;
}

static void signals_make(struct player *player, uint64_t period_ns)
{
	struct itimerspec times = times_of(period_ns, player->next_ns);
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1 };
	sigset_t signals;
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN + 1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		fail("cannot make a timer", player->task->name, errno);
	timer_settime(timer, TIMER_ABSTIME, &times, NULL);
	player->timer = 0;
}

uint64_t wait_signal(struct player *player, uint64_t period_ns)
{
	uint64_t due_ns = player->next_ns;
	siginfo_t info = { 0 };
	sigset_t signals;

	if (player->timer < 0)
		signals_make(player, period_ns);
	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN + 1);
	while (sigwaitinfo(&signals, &info) < 0)
		if (errno != EINTR)
			fail("cannot wait for the signal", player->task->name, errno);
	player->next_ns += ((uint64_t)info.si_overrun + 1) * period_ns;
	return due_ns;
}
