//! trace.dat files made by hand: both versions, byte orders and widths, plain and compressed.
//!
//! The layouts are those of trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

use std::fs;
use std::io::Write;
use std::path::Path;

/// How the parts of a version 7 are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatPacking {
    /// Not at all.
    None,
    /// zlib.
    Zlib,
    /// zstd.
    Zstd,
}

/// One event of a synthetic file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatEvent {
    /// When it happens.
    pub time_ns: u64,
    /// The running task.
    pub tid: i32,
    /// The number and text that it carries (`sample:tick`).
    pub number: i64,
    /// See `number`.
    pub text: String,
}

/// What a synthetic file is like.
#[derive(Clone, Debug)]
pub struct SyntheticDat {
    /// 6 or 7.
    pub version: u32,
    /// Whether numbers begin with their most significant byte.
    pub big_endian: bool,
    /// Bytes of a `long` of its kernel: 4 or 8.
    pub long_bytes: u8,
    /// For version 7.
    pub packing: DatPacking,
    /// ftrace's name of the clock.
    pub clock: String,
    /// Events of each CPU, in the order of their times.
    pub cpus: Vec<Vec<DatEvent>>,
    /// Events that are missing before the second page of each CPU, when there is one.
    pub missed: Option<u32>,
    /// An instance besides the top one, with events of its own.
    pub instance: Option<(String, Vec<DatEvent>)>,
}

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;
/// The number of `sample:tick`.
const TICK: u16 = 901;
/// Pages of a chunk, as trace-cmd has them.
const CHUNK_PAGES: usize = 10;

impl Default for SyntheticDat {
    fn default() -> Self {
        SyntheticDat {
            version: 7,
            big_endian: false,
            long_bytes: 8,
            packing: DatPacking::None,
            clock: "mono".to_owned(),
            cpus: vec![events(0, 40), events(1, 30)],
            missed: None,
            instance: None,
        }
    }
}

/// So many events of a CPU, told apart by their numbers.
pub fn events(cpu: u64, count: u64) -> Vec<DatEvent> {
    let event = |at: u64| DatEvent {
        // Now and then longer than the 27 bits of a record's delta.
        time_ns: 1_000_000_000 + at * 1000 + cpu * 7 + if at > 20 { 1 << 33 } else { 0 },
        tid: 100 + cpu as i32,
        number: at as i64 * if at.is_multiple_of(2) { 1 } else { -1 },
        text: "x".repeat((at % 90) as usize),
    };
    (0..count).map(event).collect()
}

impl SyntheticDat {
    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut file = Vec::new();
        file.extend(b"\x17\x08\x44tracing");
        file.extend(format!("{}\0", self.version).bytes());
        file.extend([u8::from(self.big_endian), self.long_bytes]);
        self.u32(&mut file, PAGE_BYTES as u32);
        match self.version {
            6 => self.version_6(&mut file),
            _ => self.version_7(&mut file),
        }
        file
    }

    fn ordered(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.big_endian {
            bytes.reverse();
        }
        bytes
    }

    fn u16(&self, out: &mut Vec<u8>, value: u16) {
        out.extend(self.ordered(value.to_le_bytes().to_vec()));
    }

    fn u32(&self, out: &mut Vec<u8>, value: u32) {
        out.extend(self.ordered(value.to_le_bytes().to_vec()));
    }

    fn u64(&self, out: &mut Vec<u8>, value: u64) {
        out.extend(self.ordered(value.to_le_bytes().to_vec()));
    }

    fn long(&self, out: &mut Vec<u8>, value: u64) {
        match self.long_bytes {
            4 => self.u32(out, value as u32),
            _ => self.u64(out, value),
        }
    }

    fn header_info(&self) -> Vec<u8> {
        let long = self.long_bytes;
        let (data, room) = (8 + usize::from(long), PAGE_BYTES - 8 - usize::from(long));
        let header = format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: char data;\toffset:{data};\tsize:{room};\tsigned:1;\n"
        );
        let mut out = b"header_page\0".to_vec();
        self.u64(&mut out, header.len() as u64);
        out.extend(header.bytes());
        out.extend(b"header_event\0");
        self.u64(&mut out, 1);
        out.push(b'\n');
        out
    }

    /// `sample:tick`: a task, a long and a text of any length.
    fn format(&self) -> String {
        let long = self.long_bytes;
        let text_at = 8 + long;
        format!(
            "name: tick\nID: {TICK}\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
             \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
             \tfield:long number;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield:__data_loc char[] text;\toffset:{text_at};\tsize:4;\tsigned:0;\n\n\
             print fmt: \"%ld %s\", REC->number, __get_str(text)\n"
        )
    }

    fn formats(&self) -> Vec<u8> {
        let format = self.format();
        let mut out = Vec::new();
        self.u32(&mut out, 1);
        out.extend(b"sample\0");
        self.u32(&mut out, 1);
        self.u64(&mut out, format.len() as u64);
        out.extend(format.bytes());
        out
    }

    fn cmdlines(&self) -> Vec<u8> {
        let text = "100 first task\n101 second\n";
        let mut out = Vec::new();
        self.u64(&mut out, text.len() as u64);
        out.extend(text.bytes());
        out
    }

    /// Four bytes of size, then a text.
    fn sized(&self, text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        self.u32(&mut out, text.len() as u32);
        out.extend(text.bytes());
        out
    }

    fn record(&self, event: &DatEvent) -> Vec<u8> {
        let mut record = Vec::new();
        self.u16(&mut record, TICK);
        record.extend([1, 2]);
        self.u32(&mut record, event.tid as u32);
        self.long(&mut record, event.number as u64);
        let at = record.len() as u32 + 4;
        self.u32(&mut record, at | (event.text.len() as u32 + 1) << 16);
        record.extend(event.text.bytes());
        record.push(0);
        record.resize(record.len().next_multiple_of(4), 0);
        record
    }

    /// A word of five bits of kind and 27 bits of time.
    fn head(&self, out: &mut Vec<u8>, kind: u32, delta: u32) {
        let word = match self.big_endian {
            true => kind << 27 | delta,
            false => kind | delta << 5,
        };
        self.u32(out, word);
    }

    /// Writes the same events as a directory of raw pages.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write_directory(&self, dir: &Path) -> std::io::Result<()> {
        let event = dir.join("events/sample/tick");
        fs::create_dir_all(&event)?;
        fs::write(event.join("format"), self.format())?;
        for (cpu, events) in self.cpus.iter().enumerate() {
            let cpu = dir.join(format!("per_cpu/cpu{cpu}"));
            fs::create_dir_all(&cpu)?;
            fs::write(cpu.join("trace_pipe_raw"), self.pages(events))?;
        }
        Ok(())
    }

    /// The pages of one CPU.
    pub fn pages(&self, events: &[DatEvent]) -> Vec<u8> {
        let data_at = 8 + usize::from(self.long_bytes);
        let mut pages = Vec::new();
        let (mut records, mut begin_ns, mut last_ns) = (Vec::new(), 0, 0);
        for event in events {
            let record = self.record(event);
            if data_at + records.len() + record.len() + 16 > PAGE_BYTES - 8 {
                self.page(&mut pages, begin_ns, &records);
                records.clear();
            }
            if records.is_empty() {
                begin_ns = event.time_ns;
                last_ns = event.time_ns;
            }
            let delta = event.time_ns - last_ns;
            last_ns = event.time_ns;
            let low = delta & ((1 << 27) - 1);
            if delta != low {
                self.head(&mut records, 30, low as u32);
                self.u32(&mut records, (delta >> 27) as u32);
            }
            let low = if delta == low { low as u32 } else { 0 };
            match record.len() {
                words if words <= 28 * 4 => self.head(&mut records, words as u32 / 4, low),
                bytes => {
                    self.head(&mut records, 0, low);
                    self.u32(&mut records, bytes as u32 + 4);
                }
            }
            records.extend(record);
        }
        if !records.is_empty() {
            self.page(&mut pages, begin_ns, &records);
        }
        pages
    }

    fn page(&self, pages: &mut Vec<u8>, time_ns: u64, records: &[u8]) {
        let begin = pages.len();
        let missed = self.missed.filter(|_| begin == PAGE_BYTES);
        let flags = missed.map_or(0, |_| 3 << 30);
        self.u64(pages, time_ns);
        self.long(pages, records.len() as u64 | flags);
        pages.extend(records);
        if let Some(missed) = missed {
            self.long(pages, u64::from(missed));
        }
        pages.resize(begin + PAGE_BYTES, 0);
    }

    fn version_6(&self, file: &mut Vec<u8>) {
        file.extend(self.header_info());
        self.u32(file, 0);
        file.extend(self.formats());
        file.extend(self.sized("ffff0000 T function\n"));
        file.extend(self.sized("0xff20 : \"text\"\n"));
        file.extend(self.cmdlines());
        self.u32(file, self.cpus.len() as u32);
        file.extend(b"options  \0");
        let uname = b"Linux host 6.1 x86_64\0";
        self.u16(file, 5);
        self.u32(file, uname.len() as u32);
        file.extend(uname);
        self.u16(file, 4);
        self.u32(file, 0);
        let instance_at = self.instance.as_ref().map(|(name, _)| {
            self.u16(file, 3);
            self.u32(file, 8 + name.len() as u32 + 1);
            let at = file.len();
            self.u64(file, 0);
            file.extend(format!("{name}\0").bytes());
            at
        });
        self.u16(file, 0);
        file.extend(b"flyrecord\0");
        let clock = format!("local [{}]", self.clock);
        let table_at = file.len();
        file.resize(table_at + 16 * self.cpus.len(), 0);
        self.u64(file, clock.len() as u64);
        file.extend(clock.bytes());
        self.cpu_data(file, table_at, &self.cpus);
        if let (Some(at), Some((_, events))) = (instance_at, &self.instance) {
            let mut word = Vec::new();
            self.u64(&mut word, file.len() as u64);
            file[at..at + 8].copy_from_slice(&word);
            file.extend(b"flyrecord\0");
            let table_at = file.len();
            file.resize(table_at + 16 * self.cpus.len(), 0);
            let mut cpus = vec![Vec::new(); self.cpus.len()];
            cpus[0].clone_from(events);
            self.cpu_data(file, table_at, &cpus);
        }
    }

    /// Appends the pages of each CPU and fills the table that says where they are.
    fn cpu_data(&self, file: &mut Vec<u8>, table_at: usize, cpus: &[Vec<DatEvent>]) {
        for (cpu, events) in cpus.iter().enumerate() {
            file.resize(file.len().next_multiple_of(PAGE_BYTES), 0);
            let pages = self.pages(events);
            let mut line = Vec::new();
            self.u64(&mut line, file.len() as u64);
            self.u64(&mut line, pages.len() as u64);
            file[table_at + 16 * cpu..][..16].copy_from_slice(&line);
            file.extend(pages);
        }
    }

    fn packed(&self, bytes: &[u8]) -> Vec<u8> {
        match self.packing {
            DatPacking::None => bytes.to_vec(),
            DatPacking::Zlib => {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).expect("memory takes all");
                encoder.finish().expect("memory takes all")
            }
            DatPacking::Zstd => zstd::bulk::compress(bytes, 1).expect("memory takes all"),
        }
    }

    /// Appends a section and returns where it begins.
    fn section(&self, file: &mut Vec<u8>, id: u16, bytes: &[u8]) -> u64 {
        let at = file.len() as u64;
        let is_packed = self.packing != DatPacking::None && !bytes.is_empty();
        self.u16(file, id);
        self.u16(file, u16::from(is_packed));
        self.u32(file, 0);
        if is_packed {
            let packed = self.packed(bytes);
            self.u64(file, packed.len() as u64 + 8);
            self.u32(file, packed.len() as u32);
            self.u32(file, bytes.len() as u32);
            file.extend(packed);
        } else {
            self.u64(file, bytes.len() as u64);
            file.extend(bytes);
        }
        at
    }

    fn version_7(&self, file: &mut Vec<u8>) {
        let packing = match self.packing {
            DatPacking::None => "none",
            DatPacking::Zlib => "zlib",
            DatPacking::Zstd => "zstd",
        };
        file.extend(format!("{packing}\01.0\0").bytes());
        let options_at = file.len();
        self.u64(file, 0);
        let mut ftrace_events = Vec::new();
        self.u32(&mut ftrace_events, 0);
        let tables = [
            (16, self.header_info()),
            (17, ftrace_events),
            (18, self.formats()),
            (19, self.sized("ffff0000 T function\n")),
            (20, self.sized("0xff20 : \"text\"\n")),
            (21, self.cmdlines()),
        ];
        let mut options = Vec::new();
        for (id, bytes) in tables {
            let at = self.section(file, id, &bytes);
            self.u16(&mut options, id);
            self.u32(&mut options, 8);
            self.u64(&mut options, at);
        }
        let uname = b"Linux host 6.1 x86_64\0";
        self.u16(&mut options, 5);
        self.u32(&mut options, uname.len() as u32);
        options.extend(uname);
        self.buffer(file, &mut options, "", &self.cpus);
        if let Some((name, events)) = &self.instance {
            self.buffer(file, &mut options, name, std::slice::from_ref(events));
        }
        self.u16(&mut options, 0);
        self.u32(&mut options, 8);
        self.u64(&mut options, 0);
        let at = self.section(file, 0, &options);
        let mut word = Vec::new();
        self.u64(&mut word, at);
        file[options_at..options_at + 8].copy_from_slice(&word);
    }

    /// Appends a buffer's pages, and the option that says where they are.
    fn buffer(
        &self,
        file: &mut Vec<u8>,
        options: &mut Vec<u8>,
        name: &str,
        cpus: &[Vec<DatEvent>],
    ) {
        let is_packed = self.packing != DatPacking::None;
        let at = file.len() as u64;
        self.u16(file, 3);
        self.u16(file, u16::from(is_packed));
        self.u32(file, 0);
        self.u64(file, 0);
        let mut option = Vec::new();
        self.u64(&mut option, at);
        option.extend(format!("{name}\0{}\0", self.clock).bytes());
        self.u32(&mut option, PAGE_BYTES as u32);
        self.u32(&mut option, cpus.len() as u32);
        for (cpu, events) in cpus.iter().enumerate() {
            let pages = self.pages(events);
            let mut data = pages;
            if is_packed && !data.is_empty() {
                let chunks: Vec<&[u8]> = data.chunks(CHUNK_PAGES * PAGE_BYTES).collect();
                let mut packed = Vec::new();
                self.u32(&mut packed, chunks.len() as u32);
                for chunk in chunks {
                    let bytes = self.packed(chunk);
                    self.u32(&mut packed, bytes.len() as u32);
                    self.u32(&mut packed, chunk.len() as u32);
                    packed.extend(bytes);
                }
                data = packed;
            }
            file.resize(file.len().next_multiple_of(PAGE_BYTES), 0);
            self.u32(&mut option, cpu as u32);
            self.u64(&mut option, file.len() as u64);
            self.u64(&mut option, data.len() as u64);
            file.extend(data);
        }
        self.u16(options, 3);
        self.u32(options, option.len() as u32);
        options.extend(option);
    }
}
