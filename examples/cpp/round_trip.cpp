// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes a trace, then shows every field of every event of it.
// usage: round_trip NEW-DIRECTORY [ctf1|ctf2]

#include <cstdio>
#include <string>

#include <rtscope.hpp>

static void write(const std::string &path, const std::string &format)
{
	rtscope::writer writer = rtscope::create(path);
	writer.set_format(format);
	std::uint32_t stream = writer.add_stream("app");
	std::uint32_t step = writer.add_class(stream, "app:step");
	std::uint32_t level = writer.add_field(step, "level", "u8{LOW=0..9,HIGH=10..19}");
	std::uint32_t load = writer.add_field(step, "load", "f64");
	std::uint32_t text = writer.add_field(step, "text", "string");
	std::uint32_t deltas = writer.add_field(step, "deltas", "i16[]");
	for (int n = 0; n < 3; n++) {
		writer.set_u64(step, level, 6 * n);
		writer.set_f64(step, load, n / 4.0);
		writer.set_text(step, text, std::string(n, '*'));
		writer.set_i64s(step, deltas, {-n, n});
		writer.write(step, 0, 1000 * n);
	}
	writer.discarded(stream, 0, 5);
	writer.finish();
}

static void show(const rtscope::trace &trace, const rtscope::item &item)
{
	std::uint32_t number = item.class_number();
	std::printf("%lld %s\n ", (long long)item.time_ns(), trace.class_name(number).data());
	for (std::uint32_t place = 0; place < trace.field_count(number); place++) {
		if (trace.field_scope(number, place) != RTSCOPE_PAYLOAD)
			continue;
		rtscope::field field = trace.bind_at(number, place);
		std::printf(" %s=%s", trace.field_name(number, place).data(),
			    item.json(field).c_str());
	}
	std::printf("\n");
}

int main(int argc, char **argv)
try {
	if (argc != 2 && argc != 3) {
		std::fprintf(stderr, "usage: %s NEW-DIRECTORY [ctf1|ctf2]\n", argv[0]);
		return 1;
	}
	write(argv[1], argc == 3 ? argv[2] : "ctf1");
	rtscope::trace trace = rtscope::open(argv[1]);
	for (const rtscope::item &item : trace.items()) {
		if (auto loss = item.lost())
			std::printf("lost %llu\n", (unsigned long long)loss->count);
		if (item.is_event())
			show(trace, item);
	}
	try {
		trace.bind("delta");
	} catch (const rtscope::error &error) {
		std::printf("%s\n", error.what());
	}
	return 0;
} catch (const rtscope::error &error) {
	std::fprintf(stderr, "%s\n", error.what());
	return 1;
}
