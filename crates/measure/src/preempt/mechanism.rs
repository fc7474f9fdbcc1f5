//! Ways for a message, and between whom it goes.

/// A way for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// A futex: semaphores, condition variables and mutexes rest on it.
    Futex,
    /// A POSIX semaphore (ptsematest's kin).
    PosixSemaphore,
    /// A System V semaphore (svsematest).
    SystemVSemaphore,
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
    pub const ALL: [Mechanism; 8] = [
        Mechanism::Futex,
        Mechanism::PosixSemaphore,
        Mechanism::SystemVSemaphore,
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
            Mechanism::PosixSemaphore => "POSIX semaphore",
            Mechanism::SystemVSemaphore => "System V semaphore",
            Mechanism::Pipe => "pipe",
            Mechanism::Eventfd => "eventfd",
            Mechanism::Socketpair => "socketpair",
            Mechanism::MessageQueue => "message queue",
            Mechanism::Signal => "signal",
        }
    }
}

/// Between whom messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Two threads of this process.
    Threads,
    /// A thread of this process and a process of its own.
    Processes,
}

impl Between {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Between::Threads => "threads",
            Between::Processes => "processes",
        }
    }
}
