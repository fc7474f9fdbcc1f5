//! Ways for a message.

/// A way for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// A futex: semaphores, condition variables and mutexes rest on it.
    Futex,
    /// A pipe.
    Pipe,
    /// An eventfd, as a semaphore.
    Eventfd,
    /// A pair of datagram sockets of the Unix domain.
    Socketpair,
    /// A POSIX message queue.
    MessageQueue,
    /// A real-time signal to one thread.
    Signal,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Mechanism; 6] = [
        Mechanism::Futex,
        Mechanism::Pipe,
        Mechanism::Eventfd,
        Mechanism::Socketpair,
        Mechanism::MessageQueue,
        Mechanism::Signal,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Futex => "futex",
            Mechanism::Pipe => "pipe",
            Mechanism::Eventfd => "eventfd",
            Mechanism::Socketpair => "socketpair",
            Mechanism::MessageQueue => "message queue",
            Mechanism::Signal => "signal",
        }
    }
}
