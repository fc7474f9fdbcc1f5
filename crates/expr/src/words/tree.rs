//! Comparisons of the kernel's filter, joined.

use std::fmt;

/// What is asked, in the kernel's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Words {
    Always,
    Never,
    /// A comparison, or that it does not hold.
    Single {
        text: String,
        holds: bool,
    },
    All(Vec<Words>),
    Any(Vec<Words>),
}

impl Words {
    /// A comparison.
    pub fn single(text: String) -> Words {
        Words::Single { text, holds: true }
    }

    pub fn all(parts: impl IntoIterator<Item = Words>) -> Words {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Words::Never => return Words::Never,
                Words::Always => {}
                Words::All(parts) => kept.extend(parts),
                part => kept.push(part),
            }
        }
        match kept.len() {
            0 => Words::Always,
            1 => kept.remove(0),
            _ => Words::All(kept),
        }
    }

    pub fn any(parts: impl IntoIterator<Item = Words>) -> Words {
        let negated = parts.into_iter().map(Words::not);
        Words::all(negated).not()
    }

    /// Itself, or that it does not hold.
    pub fn when(self, wanted: bool) -> Words {
        if wanted { self } else { self.not() }
    }

    pub fn not(self) -> Words {
        let each = |parts: Vec<Words>| parts.into_iter().map(Words::not).collect();
        match self {
            Words::Always => Words::Never,
            Words::Never => Words::Always,
            Words::Single { text, holds } => Words::Single {
                text,
                holds: !holds,
            },
            Words::All(parts) => Words::Any(each(parts)),
            Words::Any(parts) => Words::All(each(parts)),
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |parts: &[Words], between: &str| {
            for (place, part) in parts.iter().enumerate() {
                if place > 0 {
                    write!(f, " {between} ")?;
                }
                match part {
                    Words::All(_) | Words::Any(_) => write!(f, "({part})")?,
                    part => write!(f, "{part}")?,
                }
            }
            Ok(())
        };
        match self {
            // The caller asks nothing of the kernel then.
            Words::Always | Words::Never => Ok(()),
            Words::Single { text, holds: true } => f.write_str(text),
            Words::Single { text, holds: false } => write!(f, "!({text})"),
            Words::All(parts) => row(parts, "&&"),
            Words::Any(parts) => row(parts, "||"),
        }
    }
}
