//! What lengths and selectors refer to: an earlier integer, in the structures around or in a scope
//! before.

use event::{Integer, IntegerMapping, Result, Scope};

use crate::reader::absolute;

use super::Dialect;
use super::refusal::refuse;
use super::wire::{Int, Kind, Link, Member, Node, Shows};

/// A structure that is being built.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub members: Vec<Member>,
}

/// Where references are looked up.
pub(super) struct Lookup {
    dialect: Dialect,
    pub scope: Scope,
    /// The structures around, outermost first.
    pub frames: Vec<Frame>,
    /// Scopes that are built, in the order of their bytes.
    pub done: Vec<(Scope, Vec<Member>)>,
    pub slots: u16,
}

/// What is known of the integer that a reference means.
pub(super) struct Target {
    pub integer: Integer,
    shows: Shows,
}

impl Target {
    /// Its labels, when it is an enumeration.
    pub fn labels(&self) -> Option<&[IntegerMapping]> {
        match &self.shows {
            Shows::Label(labels) => Some(labels),
            _ => None,
        }
    }
}

/// The frame or the scope that a reference leads into.
#[derive(Clone, Copy)]
enum Home {
    Frame(usize),
    Done(usize),
}

impl Lookup {
    pub fn new(dialect: Dialect) -> Self {
        Lookup {
            dialect,
            scope: Scope::PacketContext,
            frames: Vec::new(),
            done: Vec::new(),
            slots: 0,
        }
    }

    /// What a reference means.
    pub fn target(&mut self, reference: &str) -> Result<Target> {
        let (home, path) = self.home(reference)?;
        let mut found = None;
        each(self.members(home), &path, &mut Vec::new(), &mut |int, _| {
            found.get_or_insert_with(|| Target {
                integer: int.integer,
                shows: int.shows.clone(),
            });
        });
        found.ok_or_else(|| missing(reference))
    }

    /// Whether a reference means an integer of another scope.
    pub fn is_elsewhere(&mut self, reference: &str) -> bool {
        matches!(self.home(reference), Ok((Home::Done(_), _)))
    }

    /// The link to it; its value is kept from now on. `labels` are given to the integer where CTF
    /// 1.8 needs them to choose.
    pub fn link(&mut self, reference: &str, labels: Option<&[IntegerMapping]>) -> Result<Link> {
        let (home, path) = self.home(reference)?;
        let is_foreign = matches!(home, Home::Done(_));
        let scope = match home {
            Home::Frame(_) => self.scope,
            Home::Done(place) => self.done[place].0,
        };
        let next = self.slots;
        // Only the event's own body is encoded with slots.
        let has_slot = scope != Scope::PacketContext;
        let (mut slot, mut names, mut changed) = (None, None, false);
        let mut is_signed = false;
        each(
            self.members(home),
            &path,
            &mut Vec::new(),
            &mut |int, way| {
                if has_slot {
                    slot = Some(*int.slot.get_or_insert(slot.unwrap_or(next)));
                }
                names.get_or_insert_with(|| way.to_vec());
                is_signed = int.integer.signed;
                changed |= labels.is_some_and(|labels| relabel(int, labels));
            },
        );
        let names = names.ok_or_else(|| missing(reference))?;
        if slot == Some(next) {
            self.slots = next
                .checked_add(1)
                .ok_or_else(|| refuse("too many references"))?;
        }
        if changed && is_foreign {
            let what = "a selector in another scope must be an enumeration of the choices";
            return Err(refuse(what).found(format!("'{reference}'")));
        }
        let ups = match home {
            Home::Frame(place) if place > 0 => Some(self.frames.len() - 1 - place),
            _ => None,
        };
        Ok(Link {
            scope,
            ups,
            names,
            slot,
            is_signed,
            is_here: !is_foreign,
        })
    }

    fn members(&mut self, home: Home) -> &mut [Member] {
        match home {
            Home::Frame(place) => &mut self.frames[place].members,
            Home::Done(place) => &mut self.done[place].1,
        }
    }

    /// Where a reference leads: in the structures around, innermost first, else in the scopes
    /// before, nearest first.
    fn home(&mut self, reference: &str) -> Result<(Home, Vec<String>)> {
        let words: Vec<String> = reference.split('.').map(str::to_owned).collect();
        let (scope, path) = absolute(&words);
        let path = path.to_vec();
        let is_here = scope.is_none_or(|scope| scope == self.scope);
        let frames = match scope {
            _ if !is_here => 0,
            Some(_) => self.frames.len().min(1),
            None => self.frames.len(),
        };
        let homes = (0..frames).rev().map(Home::Frame);
        let before = (0..self.done.len()).rev();
        let before = before.filter(|place| scope.is_none_or(|s| s == self.done[*place].0));
        let homes: Vec<Home> = homes.chain(before.map(Home::Done)).collect();
        let holds = |home: &Home| {
            let mut count = 0;
            each(self.members(*home), &path, &mut Vec::new(), &mut |_, _| {
                count += 1
            });
            count > 0
        };
        let found = homes.into_iter().find(holds);
        found
            .map(|home| (home, path))
            .ok_or_else(|| missing(reference))
    }
}

impl std::fmt::Debug for Lookup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lookup in {:?} for {:?}", self.scope, self.dialect)
    }
}

fn missing(reference: &str) -> event::Error {
    refuse("a length or selector needs an integer before it").found(format!("'{reference}'"))
}

/// Shows each integer at `path`, with the names on the way: several where a variant lies between.
fn each(
    members: &mut [Member],
    path: &[String],
    way: &mut Vec<String>,
    see: &mut impl FnMut(&mut Int, &[String]),
) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let named = |member: &&mut Member| {
        *first == member.name || first.strip_prefix('_') == Some(&member.name)
    };
    if let Some(member) = members.iter_mut().rev().find(named) {
        way.push(member.name.clone());
        each_below(&mut member.node, rest, way, see);
        way.pop();
    }
}

fn each_below(
    node: &mut Node,
    path: &[String],
    way: &mut Vec<String>,
    see: &mut impl FnMut(&mut Int, &[String]),
) {
    match &mut node.kind {
        Kind::Int(int) if path.is_empty() => see(int, way),
        Kind::Struct(members) => each(members, path, way, see),
        Kind::Optional { content, .. } => each_below(content, path, way, see),
        Kind::Variant { choices, .. } => {
            for choice in choices {
                each_below(&mut choice.node, path, way, see);
            }
        }
        _ => {}
    }
}

/// Gives an integer labels; whether it had to change. Its other labels stay.
fn relabel(int: &mut Int, labels: &[IntegerMapping]) -> bool {
    let old = match &int.shows {
        Shows::Label(old) => old.as_slice(),
        _ => &[],
    };
    if !old.is_empty() && labels.iter().all(|label| old.contains(label)) {
        return false;
    }
    let stays = |mapping: &&IntegerMapping| labels.iter().all(|l| l.label != mapping.label);
    let others = old.iter().filter(stays).cloned();
    int.shows = Shows::Label(labels.iter().cloned().chain(others).collect());
    true
}
