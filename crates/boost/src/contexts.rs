//! A pinlane `Device` for each context that the program copies in.

use std::ffi::{CString, c_int, c_void};
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use pinlane_core::{Device, Stream};
use pinlane_cuda::Cuda;

use crate::calls::SUCCESS;
use crate::interpose::lookup;
use crate::{pinned, process};

/// A context of the program.
pub(crate) struct Context {
    /// The driver's handle.
    handle: u64,
    ordinal: u32,
    pub(crate) device: Device,
    /// Streams of ours for copies of programs with a default stream for each thread.
    idle_streams: Mutex<Vec<Stream>>,
}

static CONTEXTS: RwLock<Vec<Arc<Context>>> = RwLock::new(Vec::new());

/// libcuda's functions that are called here and in [`copies`](crate::copies). They initialise nothing: a program that
/// has not called `cuInit` gets its error.
pub(crate) struct Functions {
    current: GetCurrent,
    device: GetDevice,
    pub(crate) attributes: GetAttributes,
}

type GetCurrent = unsafe extern "C" fn(*mut *mut c_void) -> u32;
type GetDevice = unsafe extern "C" fn(*mut c_int) -> u32;
type GetAttributes = unsafe extern "C" fn(u32, *mut u32, *mut *mut c_void, u64) -> u32;
type Address = NonNull<c_void>;

/// The functions; `None` if the driver lacks one.
pub(crate) fn functions() -> Option<&'static Functions> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    // SAFETY: addresses of libcuda's functions, which have these types; libcuda is never unloaded.
    let find = || unsafe {
        Some(Functions {
            current: mem::transmute::<Address, GetCurrent>(lookup(c"cuCtxGetCurrent")?),
            device: mem::transmute::<Address, GetDevice>(lookup(c"cuCtxGetDevice")?),
            attributes: mem::transmute::<Address, GetAttributes>(lookup(
                c"cuPointerGetAttributes",
            )?),
        })
    };
    FUNCTIONS.get_or_init(find).as_ref()
}

/// The driver of a program that has initialised it; `None` if it is not one that the library knows.
fn cuda() -> Option<&'static Cuda> {
    static CUDA: OnceLock<Option<Cuda>> = OnceLock::new();
    let open = || {
        let by_name = |name: &str| lookup(&CString::new(name).ok()?);
        // SAFETY: libcuda's functions by their names; it is never unloaded.
        unsafe { Cuda::from_loaded(&by_name) }.ok()
    };
    CUDA.get_or_init(open).as_ref()
}

impl Context {
    /// The context of the calling thread; `None` if there is none, or it cannot be used.
    pub(crate) fn current() -> Option<Arc<Self>> {
        let functions = functions()?;
        let mut current = ptr::null_mut();
        // SAFETY: `current` outlives the call.
        let code = unsafe { (functions.current)(&mut current) };
        if code != SUCCESS || current.is_null() {
            return None;
        }
        let handle = current.expose_provenance() as u64;
        let known = CONTEXTS.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = known.iter().find(|context| context.handle == handle) {
            return Some(Arc::clone(context));
        }
        drop(known);
        Self::open(functions, handle)
    }

    /// Opens a device in the calling thread's context.
    fn open(functions: &Functions, handle: u64) -> Option<Arc<Self>> {
        let mut known = CONTEXTS.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = known.iter().find(|context| context.handle == handle) {
            return Some(Arc::clone(context));
        }
        let mut ordinal = 0;
        // SAFETY: `ordinal` outlives the call.
        if unsafe { (functions.device)(&mut ordinal) } != SUCCESS {
            return None;
        }
        let ordinal = u32::try_from(ordinal).ok()?;
        // SAFETY: the current context, of this device. It is forgotten before the program destroys it.
        let driver = unsafe { cuda()?.open_in_context(ordinal, handle) }.ok()?;
        let context = Arc::new(Self {
            handle,
            ordinal,
            device: Device::from_driver(driver),
            idle_streams: Mutex::default(),
        });
        known.push(Arc::clone(&context));
        Some(context)
    }

    /// The driver's handle.
    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }

    /// Runs `copy` on a stream of ours.
    pub(crate) fn on_own_stream<R>(
        &self,
        copy: impl FnOnce(&Stream) -> R,
    ) -> pinlane_core::Result<R> {
        let lock = || {
            self.idle_streams
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let idle = lock().pop();
        let stream = match idle {
            Some(stream) => stream,
            None => self.device.stream()?,
        };
        let result = copy(&stream);
        lock().push(stream);
        Ok(result)
    }
}

/// What destroys contexts.
pub(crate) enum Gone {
    /// The program destroys this context.
    Destroyed(u64),
    /// The program resets the primary context of this device.
    Reset(c_int),
    /// One user of the primary context of this device is done with it, which may be the last one. Others may go on, and
    /// use what they have allocated.
    Released(c_int),
}

/// Frees what the library holds in contexts that are about to be destroyed.
pub(crate) fn forget(gone: &Gone) {
    let is_gone = |context: &Context| match gone {
        Gone::Destroyed(handle) => context.handle == *handle,
        Gone::Reset(device) | Gone::Released(device) => {
            i64::from(context.ordinal) == i64::from(*device)
        }
    };
    let mut known = CONTEXTS.write().unwrap_or_else(PoisonError::into_inner);
    let contexts: Vec<_> = known.extract_if(.., |context| is_gone(context)).collect();
    drop(known); // what follows calls the driver
    if !process::is_on() {
        // Off, or a forked child, which has none of this.
        mem::forget(contexts);
        return;
    }
    for context in contexts {
        // What waits for other libraries' work keeps the device open.
        let _ = context.device.synchronize();
        if !matches!(gone, Gone::Released(_)) {
            pinned::forget(context.handle);
        }
    }
}
