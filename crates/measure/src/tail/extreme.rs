//! The generalised extreme-value distribution, fitted by L-moments (Hosking, Wallis and Wood 1985):
//! they bear few numbers and single large ones better than likelihood does.

/// `location + scale / k × (1 − (−ln share)^k)` is the value that a share does not exceed; for
/// k = 0 it is Gumbel's. The usual shape is −k.
#[derive(Clone, Copy, Debug)]
pub(super) struct Distribution {
    location: f64,
    scale: f64,
    k: f64,
}

/// Nearer to zero than this, k makes no difference and divides badly.
const K_MIN: f64 = 1e-6;
const EULER: f64 = 0.577_215_664_901_532_9;

impl Distribution {
    /// None where the values hardly differ.
    pub(super) fn fit(values: &[f64]) -> Option<Distribution> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let (mut b0, mut b1, mut b2) = (0.0, 0.0, 0.0);
        for (at, value) in sorted.iter().enumerate() {
            let at = at as f64;
            b0 += value / count;
            b1 += value * at / (count - 1.0) / count;
            b2 += value * at * (at - 1.0) / ((count - 1.0) * (count - 2.0)) / count;
        }
        let (l1, l2, l3) = (b0, 2.0 * b1 - b0, 6.0 * b2 - 6.0 * b1 + b0);
        if l2 < 1.0 {
            return None;
        }
        let c = 2.0 / (3.0 + l3 / l2) - 2f64.ln() / 3f64.ln();
        let k = 7.8590 * c + 2.9554 * c * c;
        if k <= -1.0 {
            return None;
        }
        if k.abs() < K_MIN {
            let scale = l2 / 2f64.ln();
            return Some(Distribution {
                location: l1 - EULER * scale,
                scale,
                k: 0.0,
            });
        }
        let gamma = gamma(1.0 + k);
        let scale = l2 * k / ((1.0 - 2f64.powf(-k)) * gamma);
        Some(Distribution {
            location: l1 - scale * (1.0 - gamma) / k,
            scale,
            k,
        })
    }

    /// Above zero: a heavy tail.
    pub(super) fn shape(&self) -> f64 {
        -self.k
    }

    /// The value that a share does not exceed.
    pub(super) fn level(&self, share: f64) -> f64 {
        let reduced = -share.ln();
        if self.k == 0.0 {
            return self.location - self.scale * reduced.ln();
        }
        self.location + self.scale / self.k * (1.0 - reduced.powf(self.k))
    }

    /// The share that does not exceed a value.
    fn share(&self, value: f64) -> f64 {
        let steps = (value - self.location) / self.scale;
        if self.k == 0.0 {
            return (-(-steps).exp()).exp();
        }
        let inside = 1.0 - self.k * steps;
        if inside <= 0.0 {
            // Beyond its end, on the side that it has one.
            return if self.k > 0.0 { 1.0 } else { 0.0 };
        }
        (-inside.powf(1.0 / self.k)).exp()
    }

    /// How far the values lie from it at most, in shares (Kolmogorov and Smirnov).
    pub(super) fn distance(&self, values: &[f64]) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let off = |(at, value): (usize, &f64)| {
            let share = self.share(*value);
            let (before, after) = (at as f64 / count, (at + 1) as f64 / count);
            (share - before).abs().max((after - share).abs())
        };
        sorted.iter().enumerate().map(off).fold(0.0, f64::max)
    }
}

/// Lanczos' approximation with seven terms, good to 1e-10 for the arguments from 0 on that a fit
/// has.
fn gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return std::f64::consts::PI / ((std::f64::consts::PI * x).sin() * gamma(1.0 - x));
    }
    let x = x - 1.0;
    let sum = (1..9).fold(TERMS[0], |sum, term| sum + TERMS[term] / (x + term as f64));
    let t = x + 7.5;
    (2.0 * std::f64::consts::PI).sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_is_the_factorial() {
        for (x, expect) in [(1.0, 1.0), (5.0, 24.0), (0.5, std::f64::consts::PI.sqrt())] {
            assert!((gamma(x) - expect).abs() < 1e-9, "{x}: {}", gamma(x));
        }
    }

    #[test]
    fn a_share_and_its_level_are_each_others_inverse() {
        for k in [-0.3, 0.0, 0.2] {
            let one = Distribution {
                location: 100.0,
                scale: 10.0,
                k,
            };
            for share in [0.01, 0.5, 0.99, 0.9999] {
                let back = one.share(one.level(share));
                assert!((back - share).abs() < 1e-9, "{k} {share} {back}");
            }
        }
    }
}
