//! The time of events that could not be read.

use super::{BadBytes, BadEvent, Step, Stop, StreamReader};

/// The time of events that could not be read.
///
/// No sum guards the bytes of a packet. So a packet in which something makes no sense is doubted
/// from its begin on, though events of it were handed out before. A file that merely ends too early
/// was right up to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// After this time; [`i64::MIN`] when it is the stream's begin.
    pub begin_ns: i64,
    /// Up to this time; [`i64::MAX`] when it is the stream's end.
    pub end_ns: i64,
    /// Whether the file ends too early, and everything before its end was understood.
    pub is_cut: bool,
}

impl StreamReader<'_> {
    /// Hands out what waits.
    #[cold]
    pub(super) fn next_waiting(&mut self) -> Step {
        self.ahead.set_current(None);
        self.waiting.pop_front().unwrap_or(Step::End)
    }

    /// The rest of a packet cannot be read, because one event in it could not.
    #[cold]
    pub(super) fn give_up_packet(&mut self, bad: &BadEvent) -> Step {
        let offset_bytes = self.base + self.position / 8;
        let latest_ns = self.time_ns.max(self.packet_begin_ns);
        self.position = self.content_end;
        self.ahead.set_current(None);
        let packet = self.packet.as_ref();
        let size_bytes = packet.map_or(0, |packet| packet.size_bytes);
        let end = packet.and_then(|packet| packet.facts.end);
        let mut hole = Hole {
            begin_ns: self.packet_begin_ns,
            end_ns: end.map_or(i64::MAX, |end| self.scale.ns(end)),
            is_cut: false,
        };
        // Asked anew: the file may have been cut while it was read.
        if self.rest_bytes(self.packet_offset, u64::MAX) < size_bytes {
            self.done = true;
            self.packet = None;
            hole.end_ns = i64::MAX;
            if matches!(bad, BadEvent::Stop(Stop::Truncated)) {
                (hole.begin_ns, hole.is_cut) = (latest_ns, true);
            }
        } else if hole.end_ns < hole.begin_ns {
            hole.end_ns = i64::MAX;
        }
        self.state.clock = self.state.clock.min(self.packet_end_ticks);
        self.unread(hole);
        Step::Damage(BadBytes {
            offset_bytes,
            reason: bad.to_string(),
        })
    }

    /// Notes what could not be read; it is handed out as soon as its end is known.
    pub(super) fn unread(&mut self, hole: Hole) {
        let open = match self.hole.take() {
            Some(open) => Hole {
                begin_ns: open.begin_ns.min(hole.begin_ns),
                end_ns: hole.end_ns,
                is_cut: open.is_cut && hole.is_cut,
            },
            None => hole,
        };
        match open.end_ns {
            i64::MAX => self.hole = Some(open),
            _ => self.waiting.push_back(Step::Unread(open)),
        }
    }

    /// What could not be read and ends here.
    pub(super) fn close_hole(&mut self, end_ns: i64) -> Option<Step> {
        let hole = self.hole.take()?;
        Some(Step::Unread(Hole {
            end_ns: end_ns.max(hole.begin_ns),
            ..hole
        }))
    }

    /// What could not be read up to the end of the stream, then the end.
    pub(super) fn end(&mut self) -> Step {
        self.ahead.set_current(None);
        self.done = true;
        self.close_hole(i64::MAX).unwrap_or(Step::End)
    }
}
