//! Interrupt and softirq handlers, CPU by CPU.

use trace::EventView;

use super::{Change, Kernel, Sink};
use crate::bind::Handler;

/// Vectors above are no softirqs: the kernel has ten.
const VECTORS_MAX: usize = 64;

/// The softirqs of one CPU, by their vector.
#[derive(Debug, Default)]
pub(super) struct Softirqs(Vec<Softirq>);

/// A softirq is a level: raised again before its handler begins, it is raised once.
#[derive(Clone, Copy, Debug, Default)]
struct Softirq {
    /// Raised, and not handled yet.
    raised_ns: Option<i64>,
    /// The handler that runs: when it was raised, when it began.
    running: Option<(Option<i64>, i64)>,
}

impl Softirqs {
    fn vector(&mut self, vec: i64) -> Option<&mut Softirq> {
        let place = usize::try_from(vec).ok().filter(|vec| *vec < VECTORS_MAX)?;
        if self.0.len() <= place {
            self.0.resize(place + 1, Softirq::default());
        }
        Some(&mut self.0[place])
    }
}

impl Kernel {
    pub(super) fn interrupt<S: Sink>(
        &mut self,
        event: &EventView<'_>,
        cpu: u32,
        handler: Handler,
        sink: &mut S,
    ) {
        let Some(handler) = handler.of(event) else {
            return;
        };
        if self.ends_unseen(cpu, handler) {
            self.unseen_handler(cpu, sink);
        }
        let now_ns = self.now_ns;
        let Some(state) = self.cpu(cpu) else { return };
        state
            .handlers
            .event(handler, number(event, handler), now_ns);
        match handler {
            Handler::IrqEntry { irq, name } => {
                let irq = event.i64(irq);
                state.irq = Some((irq, now_ns));
                let name = name.map_or(&b""[..], |name| event.text(name));
                self.irq_names
                    .entry(irq)
                    .or_insert_with(|| event::plain_text(name));
                sink.change(self, &Change::IrqEntry { irq, name });
            }
            Handler::IrqExit { irq } => {
                let irq = event.i64(irq);
                let Some((_, begin_ns)) = state.irq.take().filter(|(open, _)| *open == irq) else {
                    return;
                };
                sink.change(self, &Change::IrqExit { cpu, irq, begin_ns });
            }
            Handler::SoftirqRaise { vec, .. } => {
                if let Some(softirq) = state.softirqs.vector(event.i64(vec)) {
                    softirq.raised_ns.get_or_insert(now_ns);
                }
            }
            Handler::SoftirqEntry { vec } => {
                if let Some(softirq) = state.softirqs.vector(event.i64(vec)) {
                    softirq.running = Some((softirq.raised_ns.take(), now_ns));
                }
            }
            Handler::SoftirqExit { vec } => {
                let vec = event.i64(vec);
                let softirq = state.softirqs.vector(vec);
                let Some((raised_ns, begin_ns)) =
                    softirq.and_then(|softirq| softirq.running.take())
                else {
                    return;
                };
                let change = Change::SoftirqExit {
                    cpu,
                    vec,
                    raised_ns,
                    begin_ns,
                };
                sink.change(self, &change);
            }
            _ => {}
        }
    }

    /// Whether a handler ends that was not seen to begin.
    fn ends_unseen(&self, cpu: u32, handler: Handler) -> bool {
        let Some(state) = self.cpus.get(cpu as usize) else {
            return false;
        };
        match handler {
            Handler::IrqExit { .. } => state.irq.is_none(),
            Handler::SoftirqExit { .. } | Handler::VectorExit(_) => state.handlers.what().is_none(),
            _ => false,
        }
    }
}

/// The number of the interrupt or the softirq that an event is about.
fn number(event: &EventView<'_>, handler: Handler) -> i64 {
    match handler {
        Handler::IrqEntry { irq, .. } | Handler::IrqExit { irq } => event.i64(irq),
        Handler::SoftirqRaise { vec, .. }
        | Handler::SoftirqEntry { vec }
        | Handler::SoftirqExit { vec } => event.i64(vec),
        _ => 0,
    }
}
