//! A text is written as it is: names of files need not be UTF-8.

use std::borrow::Cow;

use ctf::reader::{Step, TraceFiles};
use ctf::writer::{Dialect, TraceMeta, TraceWriter};
use event::{ClassId, Cpu, Field, FieldId, FieldType, Instant, Record, Value};
use testkit::{event_class, one_stream_class};

/// An event with one field, a text.
struct Opened(&'static [u8]);

impl Record for Opened {
    fn class(&self) -> ClassId {
        ClassId(0)
    }

    fn instant(&self) -> Option<Instant> {
        None
    }

    fn cpu(&self) -> Option<Cpu> {
        None
    }

    fn i64(&self, _: FieldId) -> i64 {
        0
    }

    fn f64(&self, _: FieldId) -> f64 {
        0.0
    }

    fn text(&self, _: FieldId) -> &[u8] {
        self.0
    }

    fn value(&self, _: FieldId) -> Value<'_> {
        Value::Text(Cow::Owned(String::from_utf8_lossy(self.0).into_owned()))
    }
}

#[test]
fn a_text_that_is_not_utf_8_comes_back_byte_for_byte() {
    let names: [&[u8]; 4] = [b"na\xff\xfem", b"plain", b"", b"\xe4rger"];
    for dialect in [Dialect::Ctf18, Dialect::Ctf2] {
        let folder = tempfile::tempdir().expect("a folder");
        let text = Field::payload("filename", FieldType::String);
        let class = event_class(0, "opened", vec![text]);
        let meta = TraceMeta {
            dialect,
            ..one_stream_class(vec![class], 0)
        };
        let mut writer = TraceWriter::create(folder.path(), &meta).expect("a trace");
        let mut stream = writer.stream(0, Cpu(0)).expect("a stream");
        for (name, at_ns) in names.into_iter().zip(1..) {
            let written = stream.record(0, Instant::from_ns(at_ns), &Opened(name));
            written.expect("an event");
        }
        stream.finish().expect("finished");
        let files = TraceFiles::open(folder.path()).expect("a trace");
        let mut reader = files.reader(&files.streams()[0]);
        for name in names {
            assert!(matches!(reader.step(), Step::Event));
            let event = reader.event().expect("an event");
            assert_eq!(event.text(FieldId(0)), name, "{dialect:?}");
        }
    }
}
