//! What a page draws of tracks in a range, as bytes. `docs/format/view.md` is the law.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::activation::{self, Activation, Family};
use crate::build::joined;
use crate::index::{Index, TrackId};
use crate::latency::{self, LatencyGrid};
use crate::look::Look;
use crate::series::{Numbers, Series};
use crate::state::{Kind, State};
use crate::track::{Edge, Track, between};

/// The version of the bytes.
pub const TILE_VERSION: u16 = 1;
const MAGIC: &[u8; 4] = b"RTVT";
/// Columns of a tile, at most: a page of 4K has 3840.
pub const COLUMNS_MAX: u32 = 8192;
/// Of a tile of more tracks times columns than this, every processor makes a part.
const ALONE_MAX: usize = 2048;
/// Threads that make a tile, at most.
const THREADS_MAX: usize = 4;
/// Stretches come as they are where no more than this many touch a column on average.
const SEGMENTS_PER_COLUMN: usize = 1;
const STRETCHES: u8 = 0;
const COLUMNS: u8 = 1;
const NUMBERS: u8 = 2;
const COLUMNS_OF_NUMBERS: u8 = 3;

impl Index {
    /// A tile of tracks; what the trace has no track of comes as one that knows nothing.
    pub fn tile(&self, tracks: &[TrackId], range_ns: (i64, i64), columns: u32) -> Vec<u8> {
        self.tile_with(tracks, &[], range_ns, columns)
    }

    /// The same, with `counters` of who asks.
    pub fn tile_with(
        &self,
        tracks: &[TrackId],
        counters: &[Option<&Series>],
        range_ns: (i64, i64),
        columns: u32,
    ) -> Vec<u8> {
        let columns = columns.clamp(1, COLUMNS_MAX);
        let begin_ns = range_ns.0;
        let end_ns = range_ns.1.max(begin_ns.saturating_add(1));
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&TILE_VERSION.to_le_bytes());
        out.extend_from_slice(&(tracks.len() as u16).to_le_bytes());
        out.extend_from_slice(&columns.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        self.put_time(&mut out, begin_ns);
        self.put_time(&mut out, end_ns);
        let put = |id: &TrackId| self.put(*id, counters, (begin_ns, end_ns), columns);
        match tracks.len() * columns as usize > ALONE_MAX {
            true => shared_out(tracks, put)
                .into_iter()
                .for_each(|part| out.extend(part)),
            false => tracks.iter().for_each(|id| out.extend(put(id))),
        }
        out
    }

    /// What a tile has of one track.
    fn put(
        &self,
        id: TrackId,
        counters: &[Option<&Series>],
        range_ns: (i64, i64),
        columns: u32,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let series = match id {
            TrackId::Counter(place) => counters.get(place as usize).copied().flatten(),
            id => self.series(id),
        };
        if let Some(series) = series {
            self.put_series(&mut out, id, series, range_ns, columns);
            return out;
        }
        let nothing = Track::default();
        let track = self.track(id).unwrap_or(&nothing);
        match track.count(range_ns.0, range_ns.1) <= columns as usize * SEGMENTS_PER_COLUMN {
            true => self.put_stretches(&mut out, id, track, range_ns),
            false => put_columns(&mut out, id, track, range_ns, columns),
        }
        out
    }

    /// Those of a family in a range; without `wanted` all of them, which costs as much whatever the
    /// range.
    pub fn latencies(
        &self,
        family: Family,
        range_ns: (i64, i64),
        columns: usize,
        worst: usize,
        wanted: Option<impl Fn(&Activation) -> bool>,
    ) -> LatencyGrid {
        let all = self.timed(family);
        match wanted {
            Some(wanted) => latency::grid(all, range_ns, columns, worst, wanted),
            None => latency::grid_of_all(all, range_ns, columns, worst),
        }
    }

    /// The longest latency of a row of [`LatencyGrid::counts`], and how many rows there are.
    pub fn latency_rows() -> Vec<i64> {
        (0..activation::ROWS).map(activation::row_end_ns).collect()
    }

    /// An instant after the first event, as the floating point number that pages reckon with.
    fn put_time(&self, out: &mut Vec<u8>, at_ns: i64) {
        let after = i128::from(at_ns) - i128::from(self.begin_ns);
        out.extend_from_slice(&(after as f64).to_le_bytes());
    }

    fn put_series(
        &self,
        out: &mut Vec<u8>,
        id: TrackId,
        series: &Series,
        (begin_ns, end_ns): (i64, i64),
        columns: u32,
    ) {
        if series.count((begin_ns, end_ns)) > columns as usize {
            let edge = |column| edge(begin_ns, end_ns, columns, column);
            let edges: Vec<i64> = (0..=columns).map(edge).collect();
            put_columns_of_numbers(out, id, series.columns(&edges));
            return;
        }
        let place = put_head(out, id, NUMBERS);
        let mut count = 0u32;
        for (at_ns, value) in series.numbers((begin_ns, end_ns)) {
            self.put_time(out, at_ns);
            put_number(out, value);
            count += 1;
        }
        put_count(out, place, count);
    }

    fn put_stretches(
        &self,
        out: &mut Vec<u8>,
        id: TrackId,
        track: &Track,
        (begin_ns, end_ns): (i64, i64),
    ) {
        let place = put_head(out, id, STRETCHES);
        let mut count = 0u32;
        for segment in track.segments(begin_ns, end_ns) {
            self.put_time(out, segment.begin_ns);
            self.put_time(out, segment.end_ns);
            out.extend_from_slice(&segment.state.0.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
            count += 1;
        }
        put_count(out, place, count);
    }
}

/// What `put` makes of each track, in their order: by as many threads as there are processors, each
/// of which takes the next track when it has made one.
fn shared_out(tracks: &[TrackId], put: impl Fn(&TrackId) -> Vec<u8> + Sync) -> Vec<Vec<u8>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(id) = tracks.get(place) else { break };
            made.push((place, put(id)));
        }
        made
    };
    let mut all = std::thread::scope(|scope| {
        // Without another thread this one makes all of it.
        let others = (1..threads.min(THREADS_MAX))
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok());
        let others: Vec<_> = others.collect();
        let mut all = work();
        all.extend(others.into_iter().flat_map(|other| joined(other.join())));
        all
    });
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, part)| part).collect()
}

/// Which track and how it comes; gives where its count belongs.
fn put_head(out: &mut Vec<u8>, id: TrackId, mode: u8) -> usize {
    let (kind, number) = match id {
        TrackId::Cpu(cpu) => (0u8, cpu),
        TrackId::Thread(task) => (1, task),
        TrackId::Frequency(cpu) => (2, cpu),
        TrackId::IdleState(cpu) => (3, cpu),
        TrackId::User(place) => (4, place),
        TrackId::Counter(place) => (5, place),
    };
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&[kind, mode, 0, 0]);
    out.extend_from_slice(&[0; 8]);
    out.len() - 8
}

fn put_count(out: &mut [u8], place: usize, count: u32) {
    if let Some(bytes) = out.get_mut(place..place + 4) {
        bytes.copy_from_slice(&count.to_le_bytes());
    }
}

/// Where a column begins.
fn edge(begin_ns: i64, end_ns: i64, columns: u32, column: u32) -> i64 {
    let (columns, column) = (u64::from(columns), u64::from(column));
    let width = end_ns.abs_diff(begin_ns);
    let after = width / columns * column + width % columns * column / columns;
    begin_ns.saturating_add_unsigned(after)
}

/// A number as the floating point number that pages reckon with; none for what nobody knows.
fn put_number(out: &mut Vec<u8>, value: Option<i64>) {
    let value = value.map_or(f64::NAN, |value| value as f64);
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_columns_of_numbers(out: &mut Vec<u8>, id: TrackId, columns: impl Iterator<Item = Numbers>) {
    let place = put_head(out, id, COLUMNS_OF_NUMBERS);
    let mut count = 0u32;
    for numbers in columns {
        put_number(out, numbers.extent.map(|(least, _)| least));
        put_number(out, numbers.extent.map(|(_, most)| most));
        put_number(out, numbers.last);
        let came = u32::try_from(numbers.count).unwrap_or(u32::MAX);
        out.extend_from_slice(&came.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        count += 1;
    }
    put_count(out, place, count);
}

fn put_columns(
    out: &mut Vec<u8>,
    id: TrackId,
    track: &Track,
    (begin_ns, end_ns): (i64, i64),
    columns: u32,
) {
    let place = put_head(out, id, COLUMNS);
    let edge = |column| edge(begin_ns, end_ns, columns, column);
    // A column begins where the one before it ends: each edge is looked for once, near the last.
    let mut look = Look::new(track);
    let mut from = look.edge(edge(0), Edge::FIRST);
    let mut before = look.before_edge(from);
    for column in 0..columns {
        let until = look.edge(edge(column + 1), from);
        let after = look.before_edge_behind((from, &before), until);
        let whole = until.at_ns.abs_diff(from.at_ns);
        let sums = between(&before, &after, whole);
        let whole = whole.max(1);
        let shares = sums.map(|ns| share(ns, whole));
        out.extend_from_slice(&shares);
        out.push(0);
        let busiest = busiest(&sums);
        let leader = match busiest {
            Kind::Unknown | Kind::Irq | Kind::Softirq => State::new(busiest, None),
            kind => look.leader_between(from, until, kind),
        };
        out.extend_from_slice(&leader.0.to_le_bytes());
        (from, before) = (until, after);
    }
    put_count(out, place, columns);
}

/// A share as one of 255 parts; what is there at all is at least one.
fn share(ns: u64, whole: u64) -> u8 {
    if ns == 0 {
        return 0;
    }
    let parts = match ns.checked_mul(255) {
        Some(all) => all / whole,
        None => (u128::from(ns) * 255 / u128::from(whole)) as u64,
    };
    parts.clamp(1, 255) as u8
}

/// The kind of most time but idleness, where there is any: what a reader looks for.
fn busiest(sums: &[u64; Kind::COUNT]) -> Kind {
    let work = [Kind::Run, Kind::Call, Kind::Runnable];
    let most = work.into_iter().max_by_key(|kind| sums[*kind as usize]);
    let others = [Kind::Irq, Kind::Softirq, Kind::Idle];
    let other = others.into_iter().max_by_key(|kind| sums[*kind as usize]);
    let has = |kind: &Kind| sums[*kind as usize] > 0;
    most.filter(has).or(other.filter(has)).unwrap_or_default()
}
