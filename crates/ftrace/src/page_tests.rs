//! Pages made by hand, and pages that were bent until they broke.

use proptest::prelude::*;

use super::*;

/// Builds a page with records, as the kernel lays it out.
struct Build(Vec<u8>);

impl Build {
    fn header(kind: u32, delta: u32) -> [u8; 4] {
        (kind | delta << 5).to_le_bytes()
    }

    fn event(mut self, delta: u32, data: &[u8]) -> Self {
        let words = data.len().div_ceil(4);
        if words <= 28 && words > 0 {
            self.0.extend(Self::header(words as u32, delta));
        } else {
            self.0.extend(Self::header(0, delta));
            self.0.extend((data.len() as u32 + 4).to_le_bytes());
        }
        self.0.extend(data);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn two_words(mut self, kind: u32, delta: u32, second: u32) -> Self {
        self.0.extend(Self::header(kind, delta));
        self.0.extend(second.to_le_bytes());
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn page(self, time_ns: u64, flags: u64, tail: &[u8]) -> Vec<u8> {
        let mut page = time_ns.to_le_bytes().to_vec();
        page.extend((self.0.len() as u64 | flags).to_le_bytes());
        page.extend(&self.0);
        page.extend(tail);
        page.resize(page.len().max(4096), 0);
        page
    }
}

fn walk(page: &[u8]) -> (Vec<(u64, Vec<u8>)>, Option<PageDamage>) {
    let page = match Page::parse(&PageLayout::LP64, page) {
        Ok(page) => page,
        Err(damage) => return (Vec::new(), Some(damage)),
    };
    let mut events = Vec::new();
    for event in page.events() {
        match event {
            Ok(event) => events.push((event.time_ns, event.record.to_vec())),
            Err(damage) => return (events, Some(damage)),
        }
    }
    (events, None)
}

#[test]
fn each_record_type_moves_time_as_the_kernel_means_it() {
    let check = |build: Build, expect: &[(u64, &[u8])]| {
        let (events, damage) = walk(&build.page(1000, 0, &[]));
        let expect: Vec<_> = expect
            .iter()
            .map(|(time, data)| (*time, data.to_vec()))
            .collect();
        assert_eq!((events, damage), (expect, None));
    };
    let new = || Build(Vec::new());
    check(new(), &[]);
    check(
        new().event(5, b"abcd").event(2, b"efghijkl"),
        &[(1005, b"abcd"), (1007, b"efghijkl")],
    );
    // The long form of a length.
    check(new().event(5, &[7; 200]), &[(1005, &[7; 200])]);
    // A delta of more than 27 bits.
    check(
        new().two_words(30, 3, 2).event(0, b"abcd"),
        &[(1003 + (2 << 27), b"abcd")],
    );
    // An absolute time.
    check(
        new().two_words(31, 9, 1).event(4, b"abcd"),
        &[((1 << 27) + 13, b"abcd")],
    );
    // A discarded record: nothing to see, but time went on.
    check(
        new().two_words(29, 6, 8).raw(&[0; 4]).event(1, b"abcd"),
        &[(1007, b"abcd")],
    );
    // Padding to the end.
    check(
        new()
            .event(1, b"abcd")
            .raw(&Build::header(29, 0))
            .raw(&[0; 8]),
        &[(1001, b"abcd")],
    );
}

#[test]
fn an_absolute_time_keeps_the_high_bits_of_the_time_before_it() {
    assert_eq!(absolute(5, 9), 9);
    assert_eq!(absolute((1 << 59) + 5, 9), (1 << 59) + 9);
    assert_eq!(
        absolute((1 << 59) + 9, 5),
        (1 << 60) + 5,
        "the 59 bits went over"
    );
}

#[test]
fn missed_events_are_told_with_their_number_when_it_is_there() {
    let check = |flags: u64, tail: &[u8], expect: Option<Option<u64>>| {
        let page = Build(Vec::new()).event(1, b"abcd").page(0, flags, tail);
        let page = Page::parse(&PageLayout::LP64, &page).expect("a sound page");
        assert_eq!(page.missed, expect);
    };
    check(0, &[], None);
    check(MISSED_EVENTS, &[], Some(None));
    check(
        MISSED_EVENTS | MISSED_STORED,
        &77u64.to_le_bytes(),
        Some(Some(77)),
    );
}

#[test]
fn a_broken_record_ends_the_page_and_names_its_place() {
    let check = |build: Build, offset_bytes: usize| {
        let (events, damage) = walk(&build.event(1, b"never").page(0, 0, &[]));
        assert_eq!(events.len(), 1);
        assert_eq!(damage.map(|damage| damage.offset_bytes), Some(offset_bytes));
    };
    let new = || Build(Vec::new()).event(1, b"good");
    check(new().two_words(0, 1, 3), 24);
    check(new().two_words(0, 1, u32::MAX), 24);
    check(new().two_words(29, 1, u32::MAX), 24);
    assert!(walk(&[0; 15]).1.is_some());
    let mut lying = Build(Vec::new()).page(0, 4081, &[]);
    assert!(walk(&lying).1.is_some());
    lying.truncate(16);
    assert!(walk(&lying).1.is_some());
}

proptest! {
    /// Any bytes at all: no panic, no endless walk, every record inside the page.
    #[test]
    fn hostile_bytes_never_break_the_walk(
        mut page in prop::collection::vec(any::<u8>(), 0..600),
        size in 0u64..600,
    ) {
        if page.len() >= 16 {
            page[8..16].copy_from_slice(&size.to_le_bytes());
        }
        let (events, _) = walk(&page);
        prop_assert!(events.len() <= page.len() / 4);
    }

    /// One flipped byte in a sound page breaks at most what follows it.
    #[test]
    fn what_stands_before_a_flipped_byte_stays_readable(
        lengths in prop::collection::vec(1usize..150, 1..20),
        at in 0usize..2000,
        flip in 1u8..,
    ) {
        let add = |build: Build, length: &usize| build.event(1, &vec![1; *length]);
        let build = lengths.iter().fold(Build(Vec::new()), add);
        let mut page = build.page(50, 0, &[]);
        let sound = walk(&page).0;
        let at = 16 + at % (page.len() - 16);
        page[at] ^= flip;
        let bent = walk(&page).0;
        let mut end = 16;
        for (place, (time, record)) in sound.iter().enumerate() {
            end += record.len().next_multiple_of(4) + if record.len() > 112 { 8 } else { 4 };
            if end > at {
                break;
            }
            prop_assert_eq!(bent.get(place), Some(&(*time, record.clone())));
        }
    }
}
