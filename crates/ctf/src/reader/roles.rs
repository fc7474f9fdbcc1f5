//! What an integer means to the decoder itself, by its name or its clock.

use event::Scope;

use super::compile::Compiler;
use super::layout::{Node, NodeKind, Role};
use super::types::{IntType, Member};

impl Compiler<'_> {
    pub(super) fn clock_role(&mut self, int: &IntType) -> Role {
        let timed = matches!(self.scope, Scope::PacketContext | Scope::EventHeader);
        let Some(name) = int.clock.as_ref().filter(|_| timed) else {
            return Role::None;
        };
        let place = self
            .declared
            .clocks
            .iter()
            .position(|clock| clock.name == *name);
        place.map_or(Role::None, |place| self.use_clock(place as u32))
    }

    fn use_clock(&mut self, clock: u32) -> Role {
        Role::Clock(*self.clock.get_or_insert(clock))
    }

    /// Roles that follow from a name: TSDL has no other way to say them. CTF 2 has one for all but
    /// the CPU. The name of a choice gives the role of a time alone.
    pub(super) fn name_role(&mut self, member: &Member, node: &mut Node, is_choice: bool) {
        let top = self.frames.len() == 1 && !is_choice;
        let only_clock = (self.declared.clocks.len() == 1).then_some(0);
        let NodeKind::Int(int) = &mut node.kind else {
            return;
        };
        let role = match (self.scope, member.shown()) {
            (Scope::PacketContext, "cpu_id") if top => Role::Cpu,
            _ if !member.escaped => return,
            (Scope::EventHeader, "id") if !is_choice => Role::EventId,
            (Scope::EventHeader, "timestamp") | (Scope::PacketContext, "timestamp_begin")
                if int.role == Role::None =>
            {
                only_clock.map_or(Role::None, |clock| self.use_clock(clock))
            }
            (Scope::PacketHeader, "magic") if top => Role::Magic,
            (Scope::PacketHeader, "stream_id") if top => Role::StreamClassId,
            (Scope::PacketHeader, "stream_instance_id") if top => Role::StreamId,
            (Scope::PacketContext, "timestamp_end") if top => Role::PacketEnd,
            (Scope::PacketContext, "content_size") if top => Role::ContentBits,
            (Scope::PacketContext, "packet_size") if top => Role::PacketBits,
            (Scope::PacketContext, "events_discarded") if top => Role::Discarded,
            (Scope::PacketContext, "packet_seq_num") if top => Role::Sequence,
            _ => return,
        };
        int.role = role;
        node.keeps |= role != Role::None;
    }
}
