//! The events of one page, all found before the first is handed out: so that none is, from where a
//! page makes no sense.

use std::ops::Range;

use crate::Page;
use crate::page::PageWalk;
use crate::stream::TimeScale;

/// Between two events of a page, where no later page says more, there is no more time than this.
const SILENCE_NS_MAX: i64 = 24 * 3600 * 1_000_000_000;
/// The fields that every record begins with.
const COMMON_BYTES: usize = 8;

/// When the events of a page can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub begin_ns: i64,
    /// [`i64::MAX`] when nobody knows.
    pub end_ns: i64,
}

impl Bounds {
    /// Of a page that begins at `begin_ns`, after one that did at `before_ns`, before one that does
    /// at `next_ns`; none when it cannot be there.
    pub fn of_page(begin_ns: i64, before_ns: i64, next_ns: Option<i64>) -> Option<Bounds> {
        let is_too_early = begin_ns < before_ns;
        // A next page before the last one is the wrong one of the two.
        let next_ns = next_ns.filter(|next_ns| *next_ns >= before_ns);
        let is_too_late = match next_ns {
            Some(next_ns) => next_ns < begin_ns,
            None => before_ns > i64::MIN && begin_ns.saturating_sub(before_ns) > SILENCE_NS_MAX,
        };
        let end_ns = next_ns.unwrap_or(i64::MAX);
        (!is_too_early && !is_too_late).then_some(Bounds { begin_ns, end_ns })
    }
}

/// Where one event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub time_ns: i64,
    begin: u32,
    end: u32,
    /// The kernel's number of its class.
    pub id: u16,
}

impl Placed {
    /// Its record in the page.
    #[inline]
    pub fn place(&self) -> Range<usize> {
        self.begin as usize..self.end as usize
    }
}

/// The events of a page.
#[derive(Debug, Default)]
pub(crate) struct WholePage {
    events: Vec<Placed>,
    /// Where the rest of the page makes no sense, and why.
    damage: Option<(usize, String)>,
    /// Where handing out goes on.
    paused: Option<usize>,
}

impl WholePage {
    pub fn clear(&mut self) {
        self.events.clear();
        self.damage = None;
        self.paused = None;
    }

    /// Reads a page up to its end, or to the first record that makes no sense: it leaves the page
    /// or the bounds, is too short, or has a number that is not known, and there are no
    /// `strangers` or it looks like no event.
    pub fn read(
        &mut self,
        page: &Page<'_>,
        (scale, bounds): (TimeScale, Bounds),
        strangers: bool,
        is_known: impl Fn(u16) -> bool,
    ) {
        self.clear();
        let (records, first) = (page.records(), page.offset_bytes());
        let mut walk = PageWalk::new(page);
        let mut latest_ns = bounds.begin_ns;
        loop {
            let begin = walk.at;
            let next = walk.next(records);
            let is_end = next.is_none();
            let place = match next {
                Some(Ok(place)) => place,
                // What stands behind the last event is no later than the page's end either.
                None => begin..begin + COMMON_BYTES,
                Some(Err(reason)) => {
                    self.damage = Some((first + begin, reason));
                    return;
                }
            };
            let id = match is_end {
                true => 0,
                false => page
                    .order()
                    .u16_at(records, place.start)
                    .unwrap_or(u16::MAX),
            };
            let time_ns = scale.ns(walk.time_ns);
            let end_ns = match bounds.end_ns {
                i64::MAX => latest_ns.saturating_add(SILENCE_NS_MAX),
                end_ns => end_ns,
            };
            let is_in_time = time_ns >= bounds.begin_ns && time_ns <= end_ns;
            let is_sound = is_in_time
                && place.len() >= COMMON_BYTES
                && (is_end
                    || is_known(id)
                    || strangers && is_like_an_event(page, &records[place.clone()], id));
            if !is_sound {
                let bytes = place.len();
                let reason = format!(
                    "a record of the page, found number {id} of {bytes} bytes at {time_ns} ns"
                );
                self.damage = Some((first + begin, reason));
                return;
            }
            if is_end {
                return;
            }
            latest_ns = time_ns;
            self.events.push(Placed {
                time_ns,
                begin: (first + place.start) as u32,
                end: (first + place.end) as u32,
                id,
            });
        }
    }

    #[inline]
    pub fn get(&self, at: usize) -> Option<Placed> {
        self.events.get(at).copied()
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn latest_ns(&self) -> Option<i64> {
        self.events.last().map(|event| event.time_ns)
    }

    /// Handing out goes on at the event `at` after something else.
    pub fn pause(&mut self, at: usize) {
        self.paused = Some(at);
    }

    pub fn resume(&mut self) -> Option<usize> {
        self.paused.take()
    }

    pub fn take_damage(&mut self) -> Option<(usize, String)> {
        self.damage.take()
    }
}

/// Whether a record of a number that no format tells of may be an event all the same: a recording
/// need not have all formats.
fn is_like_an_event(page: &Page<'_>, record: &[u8], id: u16) -> bool {
    let tid = page.order().u32_at(record, TID_AT).unwrap_or(u32::MAX);
    id > 0 && tid <= TID_MAX && record.len() <= STRANGER_BYTES_MAX
}

/// Where `common_pid` is.
const TID_AT: usize = 4;
/// No task's number is larger (`PID_MAX_LIMIT` of the kernel).
const TID_MAX: u32 = 4 << 20;
/// Few events are longer.
const STRANGER_BYTES_MAX: usize = 512;
