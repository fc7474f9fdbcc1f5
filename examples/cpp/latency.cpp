// SPDX-License-Identifier: MIT OR Apache-2.0
// The time between two events that share a number: count, least, middle and greatest.
// usage: latency TRACE BEGIN-EVENT END-EVENT FIELD

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <rtscope.hpp>

static void show(const std::vector<std::int64_t> &sorted, std::uint64_t lost)
{
	if (sorted.empty()) {
		std::printf("no pair\n");
		return;
	}
	std::printf("pairs %zu, least %lld ns, middle %lld ns, greatest %lld ns, %llu events lost\n",
		    sorted.size(), (long long)sorted.front(),
		    (long long)sorted[sorted.size() / 2], (long long)sorted.back(),
		    (unsigned long long)lost);
}

int main(int argc, char **argv)
try {
	if (argc != 5) {
		std::fprintf(stderr, "usage: %s TRACE BEGIN-EVENT END-EVENT FIELD\n", argv[0]);
		return 1;
	}
	rtscope::trace trace = rtscope::open(argv[1]);
	rtscope::field key = trace.bind(argv[4]);
	std::string filter = "$name == \"" + std::string(argv[2]) + "\" || $name == \"" +
			     std::string(argv[3]) + "\"";

	std::map<std::int64_t, std::int64_t> begins;
	std::vector<std::int64_t> durations_ns;
	std::uint64_t lost = 0;
	for (const rtscope::item &item : trace.items(filter)) {
		if (auto loss = item.lost()) {
			// A pair across a hole is no pair.
			begins.clear();
			lost += loss->count;
		}
		if (!item.is_event())
			continue;
		if (trace.class_name(item.class_number()) == argv[2]) {
			begins[item.i64(key)] = item.time_ns();
		} else if (auto begin = begins.find(item.i64(key)); begin != begins.end()) {
			durations_ns.push_back(item.time_ns() - begin->second);
			begins.erase(begin);
		}
	}
	std::sort(durations_ns.begin(), durations_ns.end());
	show(durations_ns, lost);
	return 0;
} catch (const rtscope::error &error) {
	std::fprintf(stderr, "%s\n", error.what());
	return 1;
}
