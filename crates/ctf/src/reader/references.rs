//! What lengths and selectors refer to: an earlier integer, near or in an earlier scope.

use std::sync::Arc;

use event::{Name, Result, Scope};

use super::compile::{Compiler, refuse};
use super::layout::{IntNode, MemberNode, Node, NodeKind};
use super::types::{Mapping, Reference};

/// An integer that a length or selector refers to.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub slot: Option<u16>,
    pub signed: bool,
    pub mappings: Option<Arc<[Mapping]>>,
}

/// A structure that is being built.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// The members that are built.
    pub members: Vec<MemberNode>,
    /// The name of the one that is being built.
    pub open: Option<Name>,
}

impl Frame {
    /// Whether the member `name` is being built.
    fn is_in(&self, name: &str) -> bool {
        self.open.as_ref().is_some_and(|open| *open == *name)
    }
}

impl Compiler<'_> {
    /// Notes each integer of a finished scope, for references from later ones; whether any has a
    /// value to be kept for them.
    pub(super) fn remember(
        &mut self,
        scope: Scope,
        node: &mut Node,
        path: &mut String,
    ) -> Result<bool> {
        let mut keeps = false;
        match &mut node.kind {
            NodeKind::Int(int) => {
                int.later_slot = self.note(scope, int, path)?;
                keeps = int.later_slot.is_some();
            }
            NodeKind::Struct(members) => {
                for member in members {
                    keeps |= self.remember_below(scope, member, path)?;
                }
            }
            NodeKind::Optional { content, .. } => keeps = self.remember(scope, content, path)?,
            NodeKind::Variant { choices, .. } => {
                for choice in choices {
                    keeps |= match self.names_choices {
                        true => self.remember_below(scope, choice, path)?,
                        false => self.remember(scope, &mut choice.node, path)?,
                    };
                }
            }
            _ => {}
        }
        node.keeps |= keeps;
        Ok(keeps)
    }

    fn remember_below(
        &mut self,
        scope: Scope,
        member: &mut MemberNode,
        path: &mut String,
    ) -> Result<bool> {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(&member.name);
        let keeps = self.remember(scope, &mut member.node, path);
        path.truncate(length);
        keeps
    }

    /// Notes an integer; where its value is kept for later scopes. Choices of a variant that have
    /// the same name share one place.
    fn note(&mut self, scope: Scope, int: &IntNode, path: &str) -> Result<Option<u16>> {
        let key = (scope, path.to_owned());
        if !self.names_choices
            && let Some(known) = self.shared.get(&key)
        {
            return Ok(known.slot);
        }
        let of_packet = matches!(scope, Scope::PacketHeader | Scope::PacketContext);
        let is_kept = of_packet || self.keep_shared;
        let slot = is_kept.then(|| self.new_slot()).transpose()?;
        let target = Target {
            slot,
            signed: int.load.signed,
            mappings: int.mappings.clone(),
        };
        self.shared.insert(key, target);
        Ok(slot)
    }

    pub(super) fn new_slot(&mut self) -> Result<u16> {
        let slot = self.slots;
        self.slots = slot
            .checked_add(1)
            .ok_or_else(|| refuse("too many references".to_owned()))?;
        Ok(slot)
    }

    /// The integer that a length or selector refers to.
    pub(super) fn target(&mut self, reference: &Reference) -> Result<Target> {
        let found = match reference {
            Reference::Words(words) => self.words_target(words),
            Reference::Location { origin, path, .. } => self.location_target(*origin, path),
        };
        let target = found.ok_or_else(|| {
            refuse(format!(
                "'{}' refers to nothing before it",
                reference.text()
            ))
        })?;
        self.missed_shared |= target.slot.is_none();
        Ok(target)
    }

    /// In the structures around, innermost first; by an absolute path; in an earlier scope.
    fn words_target(&mut self, path: &[String]) -> Option<Target> {
        let (scope, rest) = absolute(path);
        if scope.is_none_or(|scope| scope == self.scope) {
            let way = Way {
                new_slot: self.slots,
                names_choices: true,
            };
            let frames = match scope {
                None => self.frames.as_mut_slice(),
                Some(_) => self.frames.get_mut(..1).unwrap_or_default(),
            };
            let in_frame = |frame: &mut Frame| bind(&mut frame.members, rest, way);
            if let Some(target) = frames.iter_mut().rev().find_map(in_frame) {
                return self.bound(target);
            }
        }
        let scopes = match scope {
            Some(scope) => vec![scope],
            None => vec![
                Scope::EventContext,
                Scope::StreamContext,
                Scope::EventHeader,
                Scope::PacketContext,
                Scope::PacketHeader,
            ],
        };
        let name = rest.join(".");
        let found = |scope| self.shared.get(&(scope, name.clone()));
        scopes.into_iter().find_map(found).cloned()
    }

    /// From the start of a scope, or from the structure around.
    fn location_target(
        &mut self,
        origin: Option<Scope>,
        path: &[Option<String>],
    ) -> Option<Target> {
        let mut depth = match origin {
            None => self.frames.len().checked_sub(1)?,
            Some(scope) if scope == self.scope => 0,
            Some(scope) => {
                let names: Option<Vec<&str>> = path.iter().map(Option::as_deref).collect();
                return self.shared.get(&(scope, names?.join("."))).cloned();
            }
        };
        let mut names = Vec::with_capacity(path.len());
        for step in path {
            match step {
                Some(name) => names.push(name.clone()),
                None => depth = depth.checked_sub(1).filter(|_| names.is_empty())?,
            }
        }
        // A structure that is still open is entered by its name.
        let mut rest = &names[..];
        while let [first, more @ ..] = rest
            && !more.is_empty()
            && self.frames.get(depth)?.is_in(first)
            && depth + 1 < self.frames.len()
        {
            depth += 1;
            rest = more;
        }
        let way = Way {
            new_slot: self.slots,
            names_choices: false,
        };
        let target = bind(&mut self.frames.get_mut(depth)?.members, rest, way)?;
        self.bound(target)
    }

    /// Counts the slot when it is a new one.
    fn bound(&mut self, target: Target) -> Option<Target> {
        if target.slot == Some(self.slots) {
            self.slots = self.slots.checked_add(1)?;
        }
        Some(target)
    }
}

/// How a reference leads to its integer.
#[derive(Clone, Copy)]
struct Way {
    /// Where its value is kept, if nowhere yet.
    new_slot: u16,
    /// Whether it names the choices of the variants on its way, as TSDL does.
    names_choices: bool,
}

/// The integer at `path` below these members, with a slot to keep its value; everything on the way
/// is marked as keeping one. In a variant each choice that has such a member is bound.
fn bind(members: &mut [MemberNode], path: &[String], way: Way) -> Option<Target> {
    let (first, rest) = path.split_first()?;
    let member = members.iter_mut().rfind(|member| member.name == *first)?;
    bind_node(&mut member.node, rest, way)
}

fn bind_node(node: &mut Node, path: &[String], way: Way) -> Option<Target> {
    let target = match &mut node.kind {
        NodeKind::Int(int) if path.is_empty() => Some(bind_int(int, way.new_slot)),
        NodeKind::Struct(members) => bind(members, path, way),
        NodeKind::Optional { content, .. } => bind_node(content, path, way),
        NodeKind::Variant { choices, .. } => match way.names_choices && names_one(choices, path) {
            true => bind(choices, path, way),
            false => bind_choices(choices, path, way),
        },
        _ => None,
    }?;
    node.keeps = true;
    Some(target)
}

/// Whether the path begins with the name of a choice.
fn names_one(choices: &[MemberNode], path: &[String]) -> bool {
    let first = path.first();
    first.is_some_and(|first| choices.iter().any(|choice| choice.name == *first))
}

fn bind_choices(choices: &mut [MemberNode], path: &[String], way: Way) -> Option<Target> {
    let mut found: Option<Target> = None;
    for choice in choices {
        let Some(target) = bind_node(&mut choice.node, path, way) else {
            continue;
        };
        // Choices that were bound apart before cannot share one slot.
        if found.as_ref().is_some_and(|f| f.slot != target.slot) {
            return None;
        }
        found = Some(target);
    }
    found
}

fn bind_int(int: &mut IntNode, new_slot: u16) -> Target {
    Target {
        slot: Some(*int.slot.get_or_insert(new_slot)),
        signed: int.load.signed,
        mappings: int.mappings.clone(),
    }
}

/// `stream.event.header.id` → its scope and the path inside.
pub(crate) fn absolute(path: &[String]) -> (Option<Scope>, &[String]) {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match words[..] {
        ["trace", "packet", "header", _, ..] => (Some(Scope::PacketHeader), &path[3..]),
        ["stream", "packet", "context", _, ..] => (Some(Scope::PacketContext), &path[3..]),
        ["stream", "event", "header", _, ..] => (Some(Scope::EventHeader), &path[3..]),
        ["stream", "event", "context", _, ..] => (Some(Scope::StreamContext), &path[3..]),
        ["event", "context", _, ..] => (Some(Scope::EventContext), &path[2..]),
        ["event", "fields", _, ..] => (Some(Scope::Payload), &path[2..]),
        _ => (None, path),
    }
}
