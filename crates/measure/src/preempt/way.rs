//! What every way for a message can do.

use event::Tid;

/// Where a receiver is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) process: Tid,
    pub(super) tid: Tid,
}

/// One way. Failing calls are not told: the message is missed, and that is seen.
pub(super) trait Channel: Send + Sync {
    /// Says who receives.
    fn aim(&self, _receiver: Address) {}
    /// Sends one message.
    fn send(&self);
    /// Waits for the next message.
    fn receive(&self);
}
