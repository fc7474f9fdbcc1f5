//! Types of answers that say of themselves what TypeScript calls them.

use std::collections::BTreeMap;

/// What stands in an answer.
pub(crate) trait Shape {
    /// What TypeScript calls it.
    fn name() -> String;
}

macro_rules! plain {
    ($text:literal: $($type:ty),+) => {
        $(impl Shape for $type {
            fn name() -> String {
                $text.to_owned()
            }
        })+
    };
}
plain!("boolean": bool);
plain!("number": i32, i64, u16, u32, u64, usize, f64);
plain!("string": String);

impl<T: Shape> Shape for Option<T> {
    fn name() -> String {
        format!("{} | null", T::name())
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn name() -> String {
        let name = T::name();
        match name.contains('|') {
            true => format!("({name})[]"),
            false => format!("{name}[]"),
        }
    }
}

impl<T: Shape, const N: usize> Shape for [T; N] {
    fn name() -> String {
        Vec::<T>::name()
    }
}

impl<T: Shape> Shape for BTreeMap<String, T> {
    fn name() -> String {
        format!("Record<string, {}>", T::name())
    }
}

/// A key of an answer.
pub(crate) struct Key {
    pub name: &'static str,
    pub shape: String,
    pub about: &'static str,
}

/// A type of answers.
pub(crate) struct Declared {
    pub name: &'static str,
    pub about: &'static str,
    /// Others may stand beside these keys, and those that may be null may be left out.
    pub is_open: bool,
    pub keys: Vec<Key>,
}

/// Types of answers, each with what it is and its keys with what they mean. Of `open` ones an
/// answer has more keys than these.
macro_rules! answers {
    ($list:ident, open: $open:literal; $(
        #[doc = $about:literal]
        $name:ident { $(#[doc = $what:literal] $key:ident: $type:ty,)+ }
    )+) => {
        $(
            #[doc = $about]
            #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
            pub struct $name {
                $(#[doc = $what] pub $key: $type,)+
            }

            impl Shape for $name {
                fn name() -> String {
                    stringify!($name).to_owned()
                }
            }
        )+

        /// The types above.
        pub(crate) fn $list() -> Vec<Declared> {
            vec![$(Declared {
                name: stringify!($name),
                about: $about,
                is_open: $open,
                keys: vec![$(Key {
                    name: stringify!($key),
                    shape: <$type>::name(),
                    about: $what,
                }),+],
            }),+]
        }
    };
}
pub(crate) use answers;
