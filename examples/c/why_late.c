// SPDX-License-Identifier: MIT OR Apache-2.0
/* Who made a task late in a trace: why_late TRACE [TASK]; prints rtscope's JSON. */
#include <stdio.h>

#include <rtscope.h>

int main(int argc, char **argv)
{
	struct rtscope_error *error = NULL;
	struct rtscope_question question = RTSCOPE_QUESTION_INIT;
	const char *path = argc > 1 ? argv[1] : "trace";
	struct rtscope_trace *trace = rtscope_open(&path, 1, NULL, &error);
	char *json = NULL;

	question.tasks = argc > 2 ? argv[2] : NULL;
	if (trace)
		json = rtscope_diagnose(trace, &question, &error);
	if (json)
		puts(json);
	else
		fprintf(stderr, "%s\n", rtscope_error_text(error));
	rtscope_text_free(json);
	rtscope_error_free(error);
	rtscope_close(trace);
	return json ? 0 : 1;
}
