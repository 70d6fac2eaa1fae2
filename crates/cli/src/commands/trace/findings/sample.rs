//! Recordings for tests.

use std::ops::{Deref, DerefMut};

use pinlane_boost_files::trace::{
    Event, Frame, HostMemory, Operation, PythonLines, Recording, Route, Site, Totals,
};
use pinlane_model::Profile;

use super::findings;
use crate::commands::trace::costs::Costs;

/// A recording under construction. Calls that do the same are of one site.
#[derive(Default)]
pub(super) struct Sample {
    calls: Vec<SampleCall>,
    now_ns: u64,
    pub(super) was_killed: bool,
}

/// A call that can be changed until the recording is made.
#[derive(Clone, Copy)]
pub(super) struct SampleCall(Event);

impl Deref for SampleCall {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.0
    }
}

impl DerefMut for SampleCall {
    fn deref_mut(&mut self) -> &mut Event {
        &mut self.0
    }
}

impl SampleCall {
    /// Makes it asynchronous, on this stream.
    pub(super) fn on(&mut self, stream: u64) {
        (self.0.stream, self.0.is_async) = (stream, true);
    }
}

impl Sample {
    pub(super) fn call(&mut self, operation: Operation) -> &mut SampleCall {
        self.now_ns += 10_000;
        self.calls.push(SampleCall(Event {
            start_ns: self.now_ns,
            ns: 5_000,
            bytes: 0,
            stream: 0,
            host: 0,
            other: 0,
            site: 0,
            thread: 1,
            operation,
            route: Route::Unknown,
            memory: HostMemory::Unknown,
            is_async: false,
            result: 0,
            launches: 0,
        }));
        self.calls.last_mut().expect("just added")
    }

    pub(super) fn copy(&mut self, route: Route, memory: HostMemory, bytes: u64) -> &mut SampleCall {
        let call = self.call(Operation::Copy);
        (call.route, call.memory, call.bytes) = (route, memory, bytes);
        call
    }

    /// A call about host memory.
    pub(super) fn host(&mut self, operation: Operation, host: u64, bytes: u64) -> &mut SampleCall {
        let call = self.call(operation);
        (call.host, call.bytes) = (host, bytes);
        call
    }

    /// Work of the program itself.
    pub(super) fn pause(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    fn recording(&self) -> Recording {
        let mut sites: Vec<Site> = Vec::new();
        let mut events = Vec::new();
        for SampleCall(call) in &self.calls {
            let same = |site: &Site| {
                let kinds = (site.operation, site.route, site.memory, site.is_async);
                kinds == (call.operation, call.route, call.memory, call.is_async)
            };
            let index = sites.iter().position(same).unwrap_or_else(|| {
                sites.push(Site {
                    frames: vec![Frame::named(format!("program!f{}", sites.len()))],
                    operation: call.operation,
                    route: call.route,
                    memory: call.memory,
                    is_async: call.is_async,
                    totals: Totals::default(),
                });
                sites.len() - 1
            });
            let totals = &mut sites[index].totals;
            totals.calls += 1;
            totals.bytes += call.bytes;
            totals.ns += call.ns;
            totals.failures += u64::from(call.result != 0);
            if call.result != 0 {
                totals.failure_code = call.result.into();
            }
            events.push(Event {
                site: index as u32,
                ..*call
            });
        }
        Recording {
            process: 1,
            command: "program".into(),
            start_ns: 1,
            end_ns: (!self.was_killed).then_some(self.now_ns + 10_000),
            python: PythonLines::NoPython,
            calls: events.len() as u64,
            sites,
            events,
        }
    }
}

/// Names of what is found in a recording. Every finding names a place.
pub(super) fn ids(sample: &Sample) -> Vec<&'static str> {
    let profile = Profile::builtin("h200").expect("a built-in profile");
    let names = [true, false].map(|is_measured| {
        let costs = Costs {
            profile: Some(&profile),
            is_measured,
        };
        let found = findings(&[sample.recording()], &costs);
        assert!(found.iter().all(|finding| !finding.places.is_empty()));
        found.iter().map(|finding| finding.id).collect::<Vec<_>>()
    });
    assert_eq!(
        names[0], names[1],
        "the same whether times are measured or computed"
    );
    names[0].clone()
}
