//! How operations come to engines and give them back. The rules are those of
//! [`pinlane_model::engine`]; a seeded run has no engines.

use pinlane_model::engine::Token;

use crate::slab::Id;
use crate::state::State;
use crate::stream::Role;

impl State {
    /// The first operation of a stream has nothing left to wait for but engines: from when on.
    pub(crate) fn get_ready(&mut self, id: Id, at_ns: u64) -> u64 {
        let stream = self.streams.get(id).expect("an active stream");
        let device = &self.devices[stream.device];
        let in_turn_behind = match stream.role {
            Role::NonBlocking => None,
            Role::Blocking => self.streams.get(device.default_stream).map(|it| it.behind),
            Role::Default => Some(device.blocking_work),
        };
        let plain = self.adversary.is_none();
        let stream = self.streams.get_mut(id).expect("an active stream");
        if let Some(behind) = in_turn_behind {
            stream.behind.after(&behind);
        }
        let need = stream.queue.front().and_then(|op| op.work.need());
        let ready_ns = match need {
            Some(need) if plain => {
                let earliest_ns = stream.behind.ns(device.engines.serving(need));
                earliest_ns.max(at_ns)
            }
            _ => at_ns,
        };
        stream.ready_ns = Some(ready_ns);
        if ready_ns > at_ns {
            self.alarms.push((ready_ns, id));
        }
        ready_ns
    }

    /// What runs on a device ends when its engines say so.
    pub(crate) fn retime(&mut self, device: usize) {
        let engines = &self.devices[device].engines;
        for running in &mut self.running {
            if let Some(token) = running.token
                && running.device == device
            {
                running.end_ns = engines.end_ns(token);
            }
        }
    }

    /// Gives an engine back; what comes next in the stream comes behind that.
    pub(crate) fn release_engine(&mut self, stream: Id, device: usize, token: Token, end_ns: u64) {
        let handover_ns = self.config.profile.device.handover_ns;
        let device_state = &mut self.devices[device];
        let kind = device_state.engines.kind_of(token);
        device_state.engines.finish(token, end_ns);
        let stream = self.streams.get_mut(stream).expect("an active stream");
        stream.behind.after_operation(kind, end_ns, handover_ns);
        if stream.role == Role::Blocking {
            device_state.blocking_work.after(&stream.behind);
        }
        self.retime(device);
    }
}
