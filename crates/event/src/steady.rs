//! Whether a timer releases a task steadily: what a recording and a watch call its cycles rests on
//! that.

/// Fewer times between two releases tell nothing.
const GAPS_MIN: usize = 4;
/// How far one may lie from a multiple of the usual one, as a part of that.
const GAP_PART: i64 = 8;

/// Whether three quarters of these times between two releases, in whatever unit, are multiples of
/// the usual one, nearly.
pub fn are_steady(gaps: &[i64]) -> bool {
    if gaps.len() < GAPS_MIN {
        return false;
    }
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable();
    let usual = sorted[sorted.len() / 2].max(1);
    let is_near = |gap: &&i64| {
        let turns = (**gap + usual / 2) / usual;
        turns > 0 && (**gap - turns * usual).abs() <= usual / GAP_PART
    };
    gaps.iter().filter(is_near).count() * 4 >= gaps.len() * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_are_multiples_of_the_usual_one() {
        let check = |gaps: &[i64], expect: bool| assert_eq!(are_steady(gaps), expect, "{gaps:?}");
        check(&[10_000, 10_001, 9_999, 10_000], true);
        // Now and then a release is missed.
        check(&[10_000, 10_000, 30_010, 10_000, 19_900], true);
        check(&[10_000, 3_000, 31_000, 700, 17_000], false);
        check(&[10_000; 3], false);
        check(&[0; 8], false);
        check(&[], false);
    }
}
