// SPDX-License-Identifier: MIT OR Apache-2.0
// Who made a task late in a trace: why_late TRACE [TASK]; prints rtscope's JSON.
#include <iostream>

#include <rtscope.hpp>

int main(int argc, char **argv)
try {
	rtscope::question question;
	if (argc > 2)
		question.tasks = argv[2];
	std::cout << rtscope::open(argc > 1 ? argv[1] : "trace").diagnose(question) << '\n';
	return 0;
} catch (const rtscope::error &error) {
	std::cerr << error.what() << '\n';
	return 1;
}
