//! What lengths and selectors refer to: an earlier integer, near or in an earlier scope.

use std::sync::Arc;

use event::{Result, Scope};

use super::compile::{Compiler, refuse};
use super::layout::{IntNode, MemberNode, Node, NodeKind};
use super::types::Mapping;

/// An integer that a length or selector refers to.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub slot: Option<u16>,
    pub signed: bool,
    pub mappings: Option<Arc<[Mapping]>>,
}

impl Compiler<'_> {
    /// Notes each integer of a finished scope, for references from later ones.
    pub(super) fn remember(&mut self, scope: Scope, node: &mut Node, path: &mut String) {
        match &mut node.kind {
            NodeKind::Int(int) => {
                let target = Target {
                    slot: int.slot,
                    signed: int.load.signed,
                    mappings: int.mappings.clone(),
                };
                self.shared.insert((scope, path.clone()), target);
            }
            NodeKind::Struct(members) => {
                let length = path.len();
                for member in members {
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(&member.name);
                    self.remember(scope, &mut member.node, path);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }

    pub(super) fn new_slot(&mut self) -> Result<u16> {
        let slot = self.slots;
        self.slots = slot
            .checked_add(1)
            .ok_or_else(|| refuse("too many references".to_owned()))?;
        Ok(slot)
    }

    /// The integer that `path` names: in the structures around, innermost first; by an absolute
    /// path; in an earlier scope.
    pub(super) fn target(&mut self, path: &[String]) -> Result<Target> {
        let (scope, rest) = absolute(path);
        let unknown = || refuse(format!("'{}' refers to nothing before it", path.join(".")));
        if scope.is_none_or(|scope| scope == self.scope) {
            let frames = match scope {
                None => self.frames.as_mut_slice(),
                Some(_) => self.frames.get_mut(..1).unwrap_or_default(),
            };
            let found = frames.iter_mut().rev().find_map(|frame| find(frame, rest));
            if let Some(int) = found {
                if int.slot.is_none() {
                    int.slot = Some(self.slots);
                    self.slots = self.slots.checked_add(1).ok_or_else(unknown)?;
                }
                let mappings = int.mappings.clone();
                return Ok(Target {
                    slot: int.slot,
                    signed: int.load.signed,
                    mappings,
                });
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
        let found = scopes
            .into_iter()
            .find_map(|scope| self.shared.get(&(scope, name.clone())));
        let target = found.cloned().ok_or_else(unknown)?;
        self.missed_shared |= target.slot.is_none();
        Ok(target)
    }
}

/// The integer at `path` below these members; everything on the way is marked as keeping a value.
fn find<'m>(members: &'m mut [MemberNode], path: &[String]) -> Option<&'m mut IntNode> {
    let (first, rest) = path.split_first()?;
    let member = members.iter_mut().rfind(|member| member.name == *first)?;
    let node = &mut member.node;
    match &mut node.kind {
        NodeKind::Int(int) if rest.is_empty() => {
            node.keeps = true;
            Some(int)
        }
        NodeKind::Struct(members) => {
            let found = find(members, rest)?;
            node.keeps = true;
            Some(found)
        }
        _ => None,
    }
}

/// `stream.event.header.id` → its scope and the path inside.
fn absolute(path: &[String]) -> (Option<Scope>, &[String]) {
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
