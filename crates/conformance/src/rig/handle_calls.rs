//! Calls that take handles, under the trait's names. The rig knows what is live.

use std::time::Duration;

use pinlane_driver::{
    DevicePtr, Driver, EventHandle, FunctionHandle, ModuleHandle, Result, StreamHandle,
};

use super::{Resource, Rig};

impl Rig {
    fn has(&self, resource: &Resource) -> bool {
        self.list().contains(resource)
    }

    pub(super) fn assert_stream(&self, stream: StreamHandle) {
        let live = stream == self.default_stream() || self.has(&Resource::Stream(stream));
        assert!(live, "the case uses a stream that it does not have");
    }

    fn assert_event(&self, event: EventHandle) {
        let live = self.has(&Resource::Event(event));
        assert!(live, "the case uses an event that it does not have");
    }

    fn assert_module(&self, module: ModuleHandle) {
        let live = self.has(&Resource::Module(module));
        assert!(live, "the case uses a module that it does not have");
    }
}

/// Calls of the trait whose handles are first checked to be live.
macro_rules! checked {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $value:ty { $($assert:ident($handle:ident)),* })*) => {
        impl Rig {$(
            pub(crate) fn $name(&self, $($arg: $type),*) -> Result<$value> {
                $(self.$assert($handle);)*
                // SAFETY: every handle is in the list, so it is this driver's and was not destroyed.
                unsafe { Driver::$name(&**self, $($arg),*) }
            }
        )*}
    };
}

checked! {
    fn stream_query(stream: StreamHandle) -> bool { assert_stream(stream) }
    fn stream_is_capturing(stream: StreamHandle) -> bool { assert_stream(stream) }
    fn stream_synchronize(stream: StreamHandle) -> () { assert_stream(stream) }
    fn stream_wait_event(stream: StreamHandle, event: EventHandle) -> () {
        assert_stream(stream), assert_event(event)
    }
    fn event_record(event: EventHandle, stream: StreamHandle) -> () {
        assert_event(event), assert_stream(stream)
    }
    fn event_query(event: EventHandle) -> bool { assert_event(event) }
    fn event_synchronize(event: EventHandle) -> () { assert_event(event) }
    fn event_wait_timeout(event: EventHandle, timeout: Duration) -> bool { assert_event(event) }
    fn event_elapsed_ns(start: EventHandle, end: EventHandle) -> i64 {
        assert_event(start), assert_event(end)
    }
    fn module_function(module: ModuleHandle, name: &str) -> FunctionHandle { assert_module(module) }
    fn device_alloc_async(bytes: usize, stream: StreamHandle) -> DevicePtr { assert_stream(stream) }
}
