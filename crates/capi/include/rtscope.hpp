/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C++17 face of librtscope: handles that free themselves, loops over items, exceptions.
 *
 *     rtscope::trace trace = rtscope::open("trace");
 *     rtscope::field tid = trace.bind("next_tid");
 *     for (const rtscope::item &item : trace.items("$name == \"sched_switch\""))
 *         if (item.is_event())
 *             count[item.i64(tid)]++;
 *
 * What fails throws rtscope::error. The rules of rtscope.h hold; an item is the walk's present
 * place, so keep values, not items.
 */
#ifndef RTSCOPE_HPP
#define RTSCOPE_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rtscope.h"

namespace rtscope {

/* What failed; what() has all parts. */
class error : public std::runtime_error {
public:
	explicit error(rtscope_error *raw)
	    : std::runtime_error(rtscope_error_text(raw)), kind_(rtscope_error_kind(raw)),
	      found_(text(rtscope_error_found(raw))), fix_(text(rtscope_error_fix(raw)))
	{
		rtscope_error_free(raw);
	}

	/* RTSCOPE_NOT_FOUND, ... */
	int kind() const { return kind_; }
	/* Empty when there is no such part. */
	const std::string &found() const { return found_; }
	const std::string &fix() const { return fix_; }

private:
	static std::string text(const char *text) { return text ? text : ""; }

	int kind_;
	std::string found_;
	std::string fix_;
};

namespace detail {

/* Calls with a place for an error; throws when one was put there. */
template <typename Call> auto checked(Call call)
{
	rtscope_error *raw = nullptr;
	auto result = call(&raw);
	if (raw)
		throw error(raw);
	return result;
}

template <typename T, void (*Free)(T *)> struct deleter {
	void operator()(T *handle) const { Free(handle); }
};

template <typename T, void (*Free)(T *)> using handle = std::unique_ptr<T, deleter<T, Free>>;

inline std::string_view view(rtscope_bytes bytes)
{
	return {bytes.data ? bytes.data : "", bytes.size};
}

} // namespace detail

/* The part of a trace that is asked for. */
struct selection {
	std::string filter;
	std::vector<std::uint32_t> cpus;
	std::int64_t begin_ns = std::numeric_limits<std::int64_t>::min();
	std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();

	selection() = default;
	selection(std::string filter) : filter(std::move(filter)) {}
	selection(const char *filter) : filter(filter) {}

	rtscope_select raw() const
	{
		return {sizeof(rtscope_select), begin_ns,    end_ns, cpus.data(),
			cpus.size(),		filter.empty() ? nullptr : filter.c_str()};
	}
};

/* A name, bound in every class that has it. */
class field {
public:
	explicit field(rtscope_field *raw) : handle_(raw) {}
	const rtscope_field *get() const { return handle_.get(); }

private:
	detail::handle<rtscope_field, rtscope_field_free> handle_;
};

/* What a walk stands on. */
class item {
public:
	item(rtscope_walk *walk, int kind) : walk_(walk), kind_(kind) {}

	/* RTSCOPE_EVENT, RTSCOPE_LOST, RTSCOPE_DAMAGE. */
	int kind() const { return kind_; }
	bool is_event() const { return kind_ == RTSCOPE_EVENT; }

	std::int64_t time_ns() const { return rtscope_time_ns(walk_); }
	/* -1 when its stream has none. */
	int cpu() const { return rtscope_cpu(walk_); }
	std::uint32_t class_number() const { return rtscope_class(walk_); }

	bool has(const field &f) const { return rtscope_has(walk_, f.get()) != 0; }
	std::int64_t i64(const field &f) const { return rtscope_i64(walk_, f.get()); }
	std::uint64_t u64(const field &f) const { return rtscope_u64(walk_, f.get()); }
	double f64(const field &f) const { return rtscope_f64(walk_, f.get()); }
	/* Until the walk goes on. */
	std::string_view text(const field &f) const
	{
		return detail::view(rtscope_text(walk_, f.get()));
	}
	std::string json(const field &f) const
	{
		return std::string(detail::view(rtscope_json(walk_, f.get())));
	}

	std::optional<rtscope_loss> lost() const
	{
		rtscope_loss loss;
		if (kind_ != RTSCOPE_LOST || !rtscope_lost(walk_, &loss))
			return std::nullopt;
		return loss;
	}
	/* Its texts live until the next damage. */
	std::optional<rtscope_bad_bytes> damage() const
	{
		rtscope_bad_bytes damage;
		if (kind_ != RTSCOPE_DAMAGE || !rtscope_damage(walk_, &damage))
			return std::nullopt;
		return damage;
	}

private:
	rtscope_walk *walk_;
	int kind_;
};

/* Items in the order of time; begin() may be called once, or again after seek(). */
class walk {
public:
	explicit walk(rtscope_walk *raw) : handle_(raw) {}

	/* The next item; none at the end. */
	std::optional<item> next()
	{
		auto step = [&](rtscope_error **e) { return rtscope_next(handle_.get(), e); };
		int kind = detail::checked(step);
		if (kind == RTSCOPE_END)
			return std::nullopt;
		return item(handle_.get(), kind);
	}

	walk &seek(std::int64_t time_ns)
	{
		detail::checked([&](rtscope_error **e) {
			return rtscope_seek(handle_.get(), time_ns, e);
		});
		return *this;
	}

	/* What looks like a mistake in the filter. */
	std::vector<std::string> notes() const
	{
		std::vector<std::string> notes;
		while (const char *note = rtscope_note(handle_.get(), notes.size()))
			notes.emplace_back(note);
		return notes;
	}

	class iterator {
	public:
		using iterator_category = std::input_iterator_tag;
		using value_type = item;
		using difference_type = std::ptrdiff_t;
		using pointer = const item *;
		using reference = const item &;

		iterator() = default;
		explicit iterator(walk *walk) : walk_(walk), item_(walk->next()) {}

		reference operator*() const { return *item_; }
		pointer operator->() const { return &*item_; }
		iterator &operator++()
		{
			item_ = walk_->next();
			return *this;
		}
		bool operator==(const iterator &other) const
		{
			return item_.has_value() == other.item_.has_value();
		}
		bool operator!=(const iterator &other) const { return !(*this == other); }

	private:
		walk *walk_ = nullptr;
		std::optional<item> item_;
	};

	iterator begin() { return iterator(this); }
	iterator end() { return iterator(); }

private:
	detail::handle<rtscope_walk, rtscope_walk_free> handle_;
};

/* A type or a batch that releases itself. */
template <typename T> class released {
public:
	released() : raw_() {}
	released(released &&other) noexcept : raw_(other.raw_) { other.raw_.release = nullptr; }
	released &operator=(released &&other) noexcept
	{
		std::swap(raw_, other.raw_);
		return *this;
	}
	~released()
	{
		if (raw_.release)
			raw_.release(&raw_);
	}

	T *get() { return &raw_; }
	T *operator->() { return &raw_; }
	const T *operator->() const { return &raw_; }

private:
	T raw_;
};

using schema = released<ArrowSchema>;
using batch = released<ArrowArray>;
using stream = released<ArrowArrayStream>;

/* Batches of columns. */
class table {
public:
	explicit table(rtscope_table *raw) : handle_(raw) {}

	rtscope::schema schema() const
	{
		rtscope::schema out;
		detail::checked([&](rtscope_error **e) {
			return rtscope_batch_schema(handle_.get(), out.get(), e);
		});
		return out;
	}

	/* The next batch; none at the end. */
	std::optional<batch> next()
	{
		batch out;
		int more = detail::checked([&](rtscope_error **e) {
			return rtscope_batch_next(handle_.get(), out.get(), e);
		});
		if (!more)
			return std::nullopt;
		return out;
	}

	/* The rest of the batches for libraries that take a stream. */
	rtscope::stream stream()
	{
		rtscope::stream out;
		detail::checked([&](rtscope_error **e) {
			return rtscope_batch_stream(handle_.get(), out.get(), e);
		});
		return out;
	}

	std::uint64_t lost() const { return rtscope_batch_lost(handle_.get()); }
	std::uint64_t damaged() const { return rtscope_batch_damaged(handle_.get()); }

private:
	detail::handle<rtscope_table, rtscope_table_free> handle_;
};

/* An open trace. */
/* What is asked of diagnose, as after `rtscope diagnose`. */
struct question {
	/* With commas between; empty: the trace's hits, else all real-time tasks. */
	std::string tasks;
	/* Those that took longer; 0: the worst. */
	std::int64_t over_ns = 0;
	/* "block" (the end of the work) or "switch-in". */
	std::string until = "block";
	/* At most so many, the worst first; 0: all. */
	std::size_t worst = 10;
	/* Only activations that end in [begin_ns, end_ns) */
	std::int64_t begin_ns = INT64_MIN;
	std::int64_t end_ns = INT64_MAX;
};

class trace {
public:
	explicit trace(rtscope_trace *raw) : handle_(raw) {}

	/* Begin and end in nanoseconds; none when nobody says. */
	std::optional<std::pair<std::int64_t, std::int64_t>> range() const
	{
		std::int64_t begin_ns, end_ns;
		if (!rtscope_range(handle_.get(), &begin_ns, &end_ns))
			return std::nullopt;
		return std::make_pair(begin_ns, end_ns);
	}

	std::int64_t wall_ns(std::int64_t time_ns) const
	{
		return rtscope_wall_ns(handle_.get(), time_ns);
	}

	/* JSON of the schema rtscope.diagnosis, as from `rtscope diagnose --json`. */
	std::string diagnose(const question &asked = {}) const
	{
		rtscope_question raw = RTSCOPE_QUESTION_INIT;
		raw.tasks = asked.tasks.c_str();
		raw.over_ns = asked.over_ns;
		raw.until = asked.until.c_str();
		raw.worst = asked.worst;
		raw.begin_ns = asked.begin_ns;
		raw.end_ns = asked.end_ns;
		detail::handle<char, rtscope_text_free> json(
		    detail::checked([&](rtscope_error **e) {
			    return rtscope_diagnose(handle_.get(), &raw, e);
		    }));
		return json.get();
	}

	/* Empty when the trace does not say. */
	std::string_view environment(const std::string &key) const
	{
		const char *value = rtscope_environment(handle_.get(), key.c_str());
		return value ? value : "";
	}

	std::vector<std::uint32_t> cpus() const
	{
		std::vector<std::uint32_t> cpus(rtscope_cpus(handle_.get(), nullptr, 0));
		rtscope_cpus(handle_.get(), cpus.data(), cpus.size());
		return cpus;
	}

	std::uint32_t class_count() const { return rtscope_class_count(handle_.get()); }
	std::string_view class_name(std::uint32_t number) const
	{
		const char *name = rtscope_class_name(handle_.get(), number);
		return name ? name : "";
	}
	std::uint32_t field_count(std::uint32_t number) const
	{
		return rtscope_field_count(handle_.get(), number);
	}
	std::string_view field_name(std::uint32_t number, std::uint32_t field) const
	{
		const char *name = rtscope_field_name(handle_.get(), number, field);
		return name ? name : "";
	}
	int field_kind(std::uint32_t number, std::uint32_t field) const
	{
		return rtscope_field_kind(handle_.get(), number, field);
	}
	int field_scope(std::uint32_t number, std::uint32_t field) const
	{
		return rtscope_field_scope(handle_.get(), number, field);
	}

	field bind(const std::string &name) const
	{
		return field(detail::checked([&](rtscope_error **e) {
			return rtscope_bind(handle_.get(), name.c_str(), e);
		}));
	}
	field bind_at(std::uint32_t class_number, std::uint32_t field_number) const
	{
		return field(detail::checked([&](rtscope_error **e) {
			return rtscope_bind_at(handle_.get(), class_number, field_number, e);
		}));
	}

	walk items(const selection &select = {}) const
	{
		rtscope_select raw = select.raw();
		return walk(detail::checked([&](rtscope_error **e) {
			return rtscope_items(handle_.get(), &raw, e);
		}));
	}

	/* All columns that the selected events can have. */
	table batches(const selection &select = {}, std::size_t rows_max = 0) const
	{
		return batches_of(select, nullptr, 0, rows_max);
	}
	/* The named columns. */
	table batches(const selection &select, const std::vector<std::string> &columns,
		      std::size_t rows_max = 0) const
	{
		std::vector<const char *> names;
		for (const std::string &column : columns)
			names.push_back(column.c_str());
		static const char *const none = nullptr;
		return batches_of(select, names.empty() ? &none : names.data(), names.size(),
				  rows_max);
	}

private:
	table batches_of(const selection &select, const char *const *columns, std::size_t count,
			 std::size_t rows_max) const
	{
		rtscope_select raw = select.raw();
		return table(detail::checked([&](rtscope_error **e) {
			return rtscope_batches(handle_.get(), &raw, columns, count, rows_max, e);
		}));
	}

	detail::handle<rtscope_trace, rtscope_close> handle_;
};

struct open_options {
	std::int64_t clock_offset_ns = 0;
	bool intersection = false;
};

/* Opens several traces as one. */
inline trace open(const std::vector<std::string> &paths, const open_options &options = {})
{
	std::vector<const char *> raw_paths;
	for (const std::string &path : paths)
		raw_paths.push_back(path.c_str());
	rtscope_open_options raw = {sizeof(rtscope_open_options), options.clock_offset_ns,
				    options.intersection};
	return trace(detail::checked([&](rtscope_error **e) {
		return rtscope_open(raw_paths.data(), raw_paths.size(), &raw, e);
	}));
}

inline trace open(const std::string &path, const open_options &options = {})
{
	return open(std::vector<std::string>{path}, options);
}

/* Writes a trace, which appears when it is finished and is removed when it is not. */
class writer {
private:
	template <typename Call, typename... Arguments> auto run(Call call, Arguments... arguments)
	{
		return detail::checked([&](rtscope_error **e) {
			return call(handle_.get(), arguments..., e);
		});
	}

public:
	explicit writer(rtscope_writer *raw) : handle_(raw) {}

	void add_environment(const std::string &key, const std::string &value)
	{
		run(rtscope_add_environment, key.c_str(), value.c_str());
	}
	void set_wall_offset_ns(std::int64_t offset_ns)
	{
		run(rtscope_set_wall_offset_ns, offset_ns);
	}
	void set_format(const std::string &format) { run(rtscope_set_format, format.c_str()); }
	std::uint32_t add_stream(const std::string &name)
	{
		return std::uint32_t(run(rtscope_add_stream, name.c_str()));
	}
	std::uint32_t add_class(std::uint32_t stream, const std::string &name)
	{
		return std::uint32_t(run(rtscope_add_class, stream, name.c_str()));
	}
	std::uint32_t add_field(std::uint32_t class_number, const std::string &name,
				const std::string &type)
	{
		return std::uint32_t(
		    run(rtscope_add_field, class_number, name.c_str(), type.c_str()));
	}

	void set_i64(std::uint32_t class_number, std::uint32_t field, std::int64_t value)
	{
		run(rtscope_set_i64, class_number, field, value);
	}
	void set_u64(std::uint32_t class_number, std::uint32_t field, std::uint64_t value)
	{
		run(rtscope_set_u64, class_number, field, value);
	}
	void set_f64(std::uint32_t class_number, std::uint32_t field, double value)
	{
		run(rtscope_set_f64, class_number, field, value);
	}
	void set_text(std::uint32_t class_number, std::uint32_t field, std::string_view text)
	{
		run(rtscope_set_text, class_number, field, text.data(), text.size());
	}
	void set_i64s(std::uint32_t class_number, std::uint32_t field,
		      const std::vector<std::int64_t> &values)
	{
		run(rtscope_set_i64s, class_number, field, values.data(), values.size());
	}
	void set_u64s(std::uint32_t class_number, std::uint32_t field,
		      const std::vector<std::uint64_t> &values)
	{
		run(rtscope_set_u64s, class_number, field, values.data(), values.size());
	}
	void set_f64s(std::uint32_t class_number, std::uint32_t field,
		      const std::vector<double> &values)
	{
		run(rtscope_set_f64s, class_number, field, values.data(), values.size());
	}

	void write(std::uint32_t class_number, std::uint32_t cpu, std::int64_t time_ns)
	{
		run(rtscope_write, class_number, cpu, time_ns);
	}
	void discarded(std::uint32_t stream, std::uint32_t cpu, std::uint64_t total)
	{
		run(rtscope_discarded, stream, cpu, total);
	}
	void finish() { run(rtscope_finish); }

private:
	detail::handle<rtscope_writer, rtscope_writer_free> handle_;
};

inline writer create(const std::string &path)
{
	return writer(
	    detail::checked([&](rtscope_error **e) { return rtscope_create(path.c_str(), e); }));
}

} // namespace rtscope

#endif /* RTSCOPE_HPP */
