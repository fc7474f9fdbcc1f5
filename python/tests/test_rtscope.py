# SPDX-License-Identifier: MIT OR Apache-2.0
"""Claims about the Python package. Wants the sample trace's path in RTSCOPE_SAMPLE."""

import collections.abc
import os
import pathlib
import tempfile
import threading
import unittest
import warnings

import rtscope

try:
    import pyarrow
except ImportError:
    pyarrow = None

SAMPLE = os.environ["RTSCOPE_SAMPLE"]


def quiet(events):
    """All events, without the warning of the sample's loss."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rtscope.LossWarning)
        return list(events)


class Reading(unittest.TestCase):
    def setUp(self):
        self.trace = rtscope.open(pathlib.Path(SAMPLE))

    def test_a_trace_says_what_it_holds(self):
        names = ["app:request_begin", "app:request_end", "app:sizes"]
        self.assertEqual([c.name for c in self.trace.classes], names)
        self.assertEqual(self.trace.environment["hostname"], "sample")
        self.assertEqual(self.trace.cpus, [0, 1])
        self.assertEqual(self.trace.begin_ns, 1_000_000_000)
        self.assertEqual(self.trace.wall_ns(5), 1_700_000_000_000_000_005)
        level = self.trace.classes[2].fields[0]
        self.assertEqual((level.name, level.kind, level.scope), ("level", "unsigned", "payload"))
        self.assertEqual(level.labels, [("LOW", 0, 9), ("HIGH", 10, 19)])

    def test_an_event_is_a_mapping_that_stays_what_it_was(self):
        events = quiet(self.trace)
        self.assertEqual(len(events), 300)
        begin, sizes, end = events[9:12]
        self.assertIsInstance(begin, collections.abc.Mapping)
        self.assertEqual(dict(begin), {"id": 3, "user": "ann"})
        self.assertEqual((begin.name, begin.cpu, begin.time_ns), ("app:request_begin", 1, 1_003_000_000))
        self.assertEqual(begin.wall_ns, 1_700_000_001_003_000_000)
        expect = {"level": 3, "key": 2**64 - 4, "sizes_length": 3, "sizes": [30, 31, 32]}
        self.assertEqual(dict(sizes.items()), expect)
        self.assertEqual(sizes.label("level"), "LOW")
        self.assertEqual((end["status"], end["load"]), (0, 0.03))
        self.assertEqual(events[2]["status"], -1)
        self.assertEqual((list(begin), len(begin), "id" in begin), (["id", "user"], 2, True))
        self.assertIsNone(begin.get("load"))
        self.assertEqual(begin.get("load", 7), 7)
        with self.assertRaises(KeyError):
            begin["load"]
        with self.assertRaises(TypeError):
            begin[0]

    def test_a_bound_field_is_that_of_each_event(self):
        field = self.trace.bind("id")
        found = {event.name for event in quiet(self.trace) if event.get(field) == 3}
        self.assertEqual(found, {"app:request_begin", "app:request_end"})
        with self.assertRaises(rtscope.Error) as raised:
            self.trace.bind("statsu")
        self.assertEqual(raised.exception.kind, "not_found")
        self.assertEqual(raised.exception.fix, "did you mean 'status'?")

    def test_a_selection_is_what_matches(self):
        def check(events, expect):
            self.assertEqual(len(quiet(events)), expect)

        check(self.trace.filter('user == "ann"'), 34)
        check(self.trace.filter('user == "ann"').filter("$cpu == 0"), 17)
        check(self.trace.filter('user == "ann" || user == "eve"').filter("id < 3"), 2)
        check(self.trace.events("status < 0"), 10)
        check(self.trace.events(cpu=1), 150)
        check(self.trace.events(cpu=[0, 1]), 300)
        check(self.trace.events(begin_ns=1_040_000_000, end_ns=1_060_000_000), 60)
        check(self.trace.filter("status < 0").events(cpu=0, begin_ns=1_050_000_000), 5)

    def test_what_cannot_be_selected_is_refused(self):
        def check(call, kind):
            with self.assertRaises(rtscope.Error) as raised:
                call()
            self.assertEqual(raised.exception.kind, kind)

        check(lambda: self.trace.filter("user =="), "invalid_input")
        check(lambda: self.trace.filter("id < 3").filter(")("), "invalid_input")
        check(lambda: self.trace.events(cpu=9), "not_found")
        check(lambda: self.trace.events(begin_ns=2, end_ns=1), "invalid_input")
        check(lambda: rtscope.open("/nowhere"), "not_found")
        check(lambda: self.trace.batches(["usr"]), "not_found")
        with self.assertWarns(rtscope.FilterWarning):
            self.trace.events('usr == "ann"')

    def test_losses_are_items_in_their_place_and_never_silent(self):
        items = list(self.trace.items("status < 0"))
        kinds = [type(item).__name__ for item in items]
        self.assertEqual(kinds, ["Event"] * 5 + ["Lost"] + ["Event"] * 5)
        lost = items[5]
        self.assertEqual((lost.count, lost.cpu, lost.cause), (7, 1, "discarded"))
        self.assertTrue(lost.begin_ns < lost.end_ns <= 1_051_000_000)
        events = self.trace.events()
        with self.assertWarns(rtscope.LossWarning):
            list(events)
        self.assertEqual((events.lost_events, events.lost_count, len(events.losses)), (7, 1, 1))

    def test_a_diagnosis_is_that_of_the_verb(self):
        switch = (
            "  x-1 [001] d..2. {}: sched_switch: prev_comm={} prev_pid={} prev_prio={} "
            "prev_state={} ==> next_comm={} next_pid={} next_prio={}\n"
        )
        text = (
            switch.format("10.011010", "swapper/1", 0, 120, "R", "hog", 700, 19)
            + "  hog-700 [001] d.h3. 10.020000: sched_waking: comm=ctrl pid=600 prio=49 target_cpu=001\n"
            + switch.format("10.021000", "hog", 700, 19, "S", "ctrl", 600, 49)
            + switch.format("10.021100", "ctrl", 600, 49, "S", "swapper/1", 0, 120)
        )
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "late.txt")
            path.write_text(text)
            answer = rtscope.open(path).diagnose(["ctrl"], over_ns=500_000)
        self.assertEqual(answer["schema"], "rtscope.diagnosis")
        self.assertIn("hog (tid 700, rt 80) ran ahead of it for 1.000 ms", answer["verdict"]["sentence"])
        self.assertEqual(answer["activations"][0]["latency_ns"], 1_100_000)
        with self.assertRaises(rtscope.Error):
            self.trace.diagnose(until="lunch")

    def test_seeking_goes_forward_and_back(self):
        events = self.trace.events("user present")
        self.assertEqual(next(events.seek(1_070_000_000))["id"], 70)
        self.assertEqual(next(events.seek(1_020_000_001))["id"], 21)
        self.assertEqual(next(events)["id"], 22)

    def test_several_threads_read_one_trace(self):
        counts = []

        def count():
            counts.append(len(quiet(self.trace.events("status present"))))

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(counts, [100] * 4)

    def test_events_outlive_the_trace(self):
        events = self.trace.events()
        first = next(events)
        del self.trace
        second = next(events)
        del events
        self.assertEqual((first["id"], second["sizes"]), (0, []))


@unittest.skipIf(pyarrow is None, "pyarrow is not installed")
class Tables(unittest.TestCase):
    def setUp(self):
        self.trace = rtscope.open(SAMPLE)

    def test_a_table_is_valid_and_has_the_values_of_the_events(self):
        table = pyarrow.table(self.trace.batches(rows=77))
        table.validate(full=True)
        self.assertEqual(table.num_rows, 300)
        rows = table.to_pylist()
        for row, event in zip(rows, quiet(self.trace)):
            self.assertEqual((row.pop("time_ns"), row.pop("cpu")), (event.time_ns, event.cpu))
            self.assertEqual(row.pop("event"), event.name)
            self.assertEqual(row, {name: event.get(name) for name in row})

    def test_columns_have_the_types_of_their_fields(self):
        table = pyarrow.table(self.trace.batches(["wall_time", "event", "key", "status", "sizes"]))
        types = [str(field.type) for field in table.schema]
        expect = [
            "timestamp[ns, tz=UTC]",
            "dictionary<values=string, indices=int32, ordered=0>",
            "uint64",
            "int16",
            "list<item: uint32>",
        ]
        self.assertEqual(types, expect)

    def test_an_empty_table_has_its_columns(self):
        table = pyarrow.table(self.trace.batches(filter="status > 5"))
        self.assertEqual((table.num_rows, table.column_names[3:]), (0, ["id", "status", "load"]))

    def test_a_table_counts_what_is_missing(self):
        batches = self.trace.batches(["cpu"])
        with self.assertWarns(rtscope.LossWarning):
            table = batches.to_arrow()
        self.assertEqual((table.num_rows, batches.rows, batches.lost_events), (300, 300, 7))

    def test_a_table_may_be_left_unread(self):
        batches = self.trace.batches(rows=10)
        batches.__arrow_c_schema__()
        batches.__arrow_c_stream__()
        reader = pyarrow.RecordBatchReader.from_stream(self.trace.batches(rows=10))
        self.assertEqual(reader.read_next_batch().num_rows, 10)

    def test_types_that_meet_in_one_column_keep_their_values(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace")
            types = ["u8", "i64", "u64", "f64", "string", "u32[]"]
            with rtscope.create(path) as writer:
                stream = writer.add_stream("s")
                events = [
                    writer.add_class(stream, f"of_{type.strip('[]')}", {"v": type, "cpu": "u8"})
                    for type in types
                ]
                values = [200, 200, 200, 200, "x", [1, 2]]
                for number, (event, value) in enumerate(zip(events, values)):
                    writer.write(event, number, {"v": value, "cpu": number})

            def check(filter, type, values):
                table = pyarrow.table(rtscope.open(path).batches(["v", "cpu_"], filter=filter))
                table.validate(full=True)
                self.assertEqual(str(table.schema.field("v").type), type)
                self.assertEqual(table.column("v").to_pylist(), values)

            check('$name == "of_u8" || $name == "of_i64"', "int64", [200, 200])
            check('$name == "of_u8" || $name == "of_f64"', "double", [200.0, 200.0])
            check('$name == "of_u64" || $name == "of_i64"', "string", ["200", "200"])
            check("$time >= 0", "string", ["200", "200", "200", "200.0", "x", "[1,2]"])
            table = pyarrow.table(rtscope.open(path).batches())
            self.assertEqual(table.column("cpu_").to_pylist(), [0, 1, 2, 3, 4, 5])


class Writing(unittest.TestCase):
    def test_a_written_trace_reads_back(self):
        values = {
            "a": 255,
            "b": -(2**63),
            "c": 2**64 - 1,
            "d": 0.5,
            "e": "tëxt",
            "f": [-1, 2],
            "g": [2**64 - 1],
            "h": [0.5, 1.5],
            "i": 7,
        }
        types = ["u8", "i64", "x64", "f32", "string", "i16[]", "u64[]", "f64[]", "u8{LOW=0..9}"]
        for form, version in [("ctf1", b"/* CTF 1.8"), ("ctf2", b"\x1e")]:
            with self.subTest(form), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "trace")
                options = {"environment": {"a": 1}, "wall_offset_ns": 5, "format": form}
                with rtscope.create(path, **options) as writer:
                    stream = writer.add_stream("app")
                    event = writer.add_class(stream, "app:all", dict(zip(values, types)))
                    writer.write(event, 10, values)
                    writer.discarded(stream, 3)
                    writer.write(event, 20)
                with open(os.path.join(path, "metadata"), "rb") as metadata:
                    self.assertTrue(metadata.read().startswith(version))
                trace = rtscope.open(path)
                first, lost, second = trace.items()
                self.assertEqual({name: first[name] for name in values}, values)
                self.assertEqual((first.label("i"), lost.count), ("LOW", 3))
                self.assertEqual([second[name] for name in "aefi"], [0, "", [], 0])
                self.assertEqual((trace.environment["a"], trace.wall_ns(10)), ("1", 15))

    def test_a_trace_that_fails_does_not_appear(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace")
            with self.assertRaises(ZeroDivisionError):
                with rtscope.create(path) as writer:
                    writer.add_stream("app")
                    1 / 0
            self.assertEqual(os.listdir(folder), [])
            with rtscope.create(path) as writer:
                event = writer.add_class(writer.add_stream("app"), "x", {"i": "u8"})
                for fields in [{"i": 256}, {"i": "1"}, {"j": 1}, {"i": [1]}]:
                    with self.assertRaises(rtscope.Error):
                        writer.write(event, 1, fields)
                with self.assertRaises(TypeError):
                    writer.write(event, 1, {"i": object()})
                writer.finish()
                with self.assertRaises(rtscope.Error):
                    writer.finish()
            with self.assertRaises(rtscope.Error) as raised:
                rtscope.create(path)
            self.assertEqual(raised.exception.kind, "already_exists")


if __name__ == "__main__":
    unittest.main()
