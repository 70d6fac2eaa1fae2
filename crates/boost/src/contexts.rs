//! A pinlane `Device` for each context that the program copies in.

use std::collections::BTreeMap;
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
    /// Whether it is the primary context of its device.
    is_primary: bool,
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
    primary_state: GetPrimaryState,
    retain_primary: RetainPrimary,
    release_primary: ReleasePrimary,
    pub(crate) attributes: GetAttributes,
}

type GetCurrent = unsafe extern "C" fn(*mut *mut c_void) -> u32;
type GetDevice = unsafe extern "C" fn(*mut c_int) -> u32;
type GetAttributes = unsafe extern "C" fn(u32, *mut u32, *mut *mut c_void, u64) -> u32;
type GetPrimaryState = unsafe extern "C" fn(c_int, *mut u32, *mut c_int) -> u32;
type RetainPrimary = unsafe extern "C" fn(*mut *mut c_void, c_int) -> u32;
type ReleasePrimary = unsafe extern "C" fn(c_int) -> u32;
type Address = NonNull<c_void>;

impl Functions {
    /// The primary context of a device, if it is in use.
    fn primary(&self, device: c_int) -> Option<u64> {
        let (mut flags, mut is_active, mut context) = (0, 0, ptr::null_mut());
        // SAFETY: all places outlive the calls. A context in use is retained once more for a moment; none is created.
        unsafe {
            let known = (self.primary_state)(device, &mut flags, &mut is_active) == SUCCESS;
            if !known || is_active == 0 || (self.retain_primary)(&mut context, device) != SUCCESS {
                return None;
            }
            (self.release_primary)(device);
        }
        Some(context.expose_provenance() as u64)
    }
}

/// The functions; `None` if the driver lacks one.
pub(crate) fn functions() -> Option<&'static Functions> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    // SAFETY: addresses of libcuda's functions, which have these types; libcuda is never unloaded.
    let find = || unsafe {
        Some(Functions {
            current: mem::transmute::<Address, GetCurrent>(lookup(c"cuCtxGetCurrent")?),
            device: mem::transmute::<Address, GetDevice>(lookup(c"cuCtxGetDevice")?),
            primary_state: mem::transmute::<Address, GetPrimaryState>(lookup(
                c"cuDevicePrimaryCtxGetState",
            )?),
            retain_primary: mem::transmute::<Address, RetainPrimary>(lookup(
                c"cuDevicePrimaryCtxRetain",
            )?),
            release_primary: mem::transmute::<Address, ReleasePrimary>(lookup(
                c"cuDevicePrimaryCtxRelease_v2",
            )?),
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
        let mut device = 0;
        // SAFETY: `device` outlives the call.
        if unsafe { (functions.device)(&mut device) } != SUCCESS {
            return None;
        }
        let ordinal = u32::try_from(device).ok()?;
        // SAFETY: the current context, of this device. It is forgotten before the program destroys it.
        let driver = unsafe { cuda()?.open_in_context(ordinal, handle) }.ok()?;
        let opened = Arc::new(Self {
            handle,
            ordinal,
            is_primary: functions.primary(device) == Some(handle),
            device: Device::from_driver(driver),
            idle_streams: Mutex::default(),
        });
        // Not held while the driver is called.
        let mut known = CONTEXTS.write().unwrap_or_else(PoisonError::into_inner);
        let other = known.iter().find(|context| context.handle == handle);
        if let Some(context) = other {
            return Some(Arc::clone(context));
        }
        known.push(Arc::clone(&opened));
        Some(opened)
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
    /// One user of the primary context of this device is done with it. The last one destroys it.
    Released(c_int),
}

/// How often the program has retained the primary context of each device.
static RETAINED: Mutex<BTreeMap<c_int, u64>> = Mutex::new(BTreeMap::new());

/// `cuDevicePrimaryCtxRetain`.
pub(crate) fn retain(device: c_int, plain: impl FnOnce() -> u32) -> u32 {
    let code = plain();
    if code == SUCCESS && !process::is_forked() {
        let mut retained = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
        *retained.entry(device).or_default() += 1;
    }
    code
}

/// Counts a release down, and returns whether it is the last one.
fn is_last_release(device: c_int) -> bool {
    let mut retained = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
    let count = retained.entry(device).or_default();
    *count = count.saturating_sub(1);
    *count == 0
}

/// Frees what the library holds in contexts that are about to be destroyed.
pub(crate) fn forget(gone: &Gone) {
    // A forked child has none of this.
    if process::is_forked() {
        return;
    }
    let of = |context: &Context, device: c_int| {
        context.is_primary && i64::from(context.ordinal) == i64::from(device)
    };
    let is_gone = |context: &Context| match gone {
        // The driver refuses to destroy a primary context.
        Gone::Destroyed(handle) => context.handle == *handle && !context.is_primary,
        Gone::Reset(device) | Gone::Released(device) => of(context, *device),
    };
    if let Gone::Released(device) = gone
        && !is_last_release(*device)
    {
        return;
    }
    let mut known = CONTEXTS.write().unwrap_or_else(PoisonError::into_inner);
    let contexts: Vec<_> = known.extract_if(.., |context| is_gone(context)).collect();
    drop(known); // what follows calls the driver
    for context in contexts {
        pinned::forget(context.handle);
    }
}
