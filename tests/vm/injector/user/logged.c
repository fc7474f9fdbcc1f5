/* Starts a program whose messages go to a device, each on it before the program goes on. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lab.h"

void run_logged(const char *kind, const struct options *options)
{
	int file = open(options->file, O_WRONLY | O_DSYNC | O_CLOEXEC);

	(void)kind;
	if (file < 0 || dup2(file, STDERR_FILENO) < 0)
		fail("cannot open the log", errno);
	execvp(options->command[0], options->command);
	fail("cannot start the program", errno);
}
