//! Where scenarios are played: how long a fault must be there to be more than noise.

/// A place.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// `host`, or the profile of a guest.
    pub name: &'static str,
    /// CPUs that tasks may be told to use.
    pub cpus: u64,
    /// What the watch calls late.
    pub over_us: u64,
    /// The victim's periods are this and twice this.
    pub period_ms: u64,
    /// A fault is so many times as long as what is late, at least and at most.
    pub times: (u64, u64),
    /// Faults of the kernel, clocks that are set and CPUs that go away: in guests alone.
    pub is_guest: bool,
    /// A term may differ from the truth by so many microseconds, or a tenth.
    pub error_us: u64,
}

/// This machine, in KVM or not.
pub const HOST: Place = Place {
    name: "host",
    cpus: 2,
    over_us: 3_000,
    period_ms: 10,
    times: (3, 8),
    is_guest: false,
    error_us: 1_500,
};

/// One CPU in virtual time.
pub const EXACT: Place = Place {
    name: "exact",
    cpus: 1,
    over_us: 1_500,
    period_ms: 10,
    times: (3, 8),
    is_guest: true,
    error_us: 300,
};

/// Two CPUs by the clock of an emulator's host: who woke whom is true, lengths are not.
pub const CAUSAL: Place = Place {
    name: "causal",
    cpus: 2,
    over_us: 20_000,
    period_ms: 25,
    times: (2, 4),
    is_guest: true,
    error_us: 15_000,
};

/// The place called `name`.
pub fn by_name(name: &str) -> Option<Place> {
    [HOST, EXACT, CAUSAL]
        .into_iter()
        .find(|place| place.name == name)
}
