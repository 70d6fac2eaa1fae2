//! The built-in kernels, safe to launch.

use crate::kernel::{In, Out};
use crate::transfer::same_len;
use crate::{Device, DeviceSlice, DeviceSliceMut, Kernel, LaunchShape, Result, Stream};

/// Small kernels that come with Pinlane, for a GPU as PTX and for the simulator as Rust.
///
/// ```
/// # fn main() -> pinlane::Result<()> {
/// # let sim = pinlane_sim::Sim::new(pinlane_model::Profile::builtin("pcie3-x16").unwrap());
/// # let device = pinlane::Device::open(&sim, 0)?;
/// # let stream = device.stream()?;
/// let kernels = pinlane::Builtin::load(&device)?;
/// let mut counters = stream.alloc::<u32>(100)?;
/// stream.fill_bytes(&mut counters, 0)?;
/// kernels.add(&stream, 5, &mut counters)?;
/// # let mut back = [0; 100];
/// # stream.copy_to_host(&counters, &mut back)?;
/// # assert_eq!(back, [5; 100]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Builtin {
    add_u32: Kernel<(u64, u32, Out<u32>)>,
    saxpy_f32: Kernel<(u64, f32, In<f32>, Out<f32>)>,
    churn_u32: Kernel<(u64, u32, Out<u32>)>,
    spin: Kernel<(u64,)>,
}

impl Builtin {
    /// Load them onto a device.
    pub fn load(device: &Device) -> Result<Self> {
        let module = device.load_ptx(pinlane_kernels::PTX)?;
        Ok(Self {
            add_u32: module.kernel("pinlane_add_u32")?,
            saxpy_f32: module.kernel("pinlane_saxpy_f32")?,
            churn_u32: module.kernel("pinlane_churn_u32")?,
            spin: module.kernel("pinlane_spin")?,
        })
    }

    /// `data[i] += value`, wrapping.
    pub fn add<'a>(
        &self,
        stream: &Stream,
        value: u32,
        data: impl Into<DeviceSliceMut<'a, u32>>,
    ) -> Result<()> {
        let data = data.into();
        let items = data.len();
        let values = (items as u64, value, data);
        // SAFETY: these are its parameters, and it touches the first `items` elements only.
        unsafe { stream.launch(&self.add_u32, LaunchShape::for_items(items), values) }
    }

    /// `data[i] = data[i] * 1664525 + 1013904223`, `rounds` times, wrapping: as much work as is
    /// wanted for the arithmetic units of the whole device.
    pub fn churn<'a>(
        &self,
        stream: &Stream,
        rounds: u32,
        data: impl Into<DeviceSliceMut<'a, u32>>,
    ) -> Result<()> {
        let data = data.into();
        let items = data.len();
        let values = (items as u64, rounds, data);
        // SAFETY: these are its parameters, and it touches the first `items` elements only.
        unsafe { stream.launch(&self.churn_u32, LaunchShape::for_items(items), values) }
    }

    /// `y[i] = a * x[i] + y[i]`, rounded once.
    pub fn saxpy<'a, 'b>(
        &self,
        stream: &Stream,
        a: f32,
        x: impl Into<DeviceSlice<'a, f32>>,
        y: impl Into<DeviceSliceMut<'b, f32>>,
    ) -> Result<()> {
        let (x, y) = (x.into(), y.into());
        same_len(x.len(), y.len())?;
        let items = x.len();
        // SAFETY: these are its parameters, and it touches the first `items` elements only.
        unsafe {
            let values = (items as u64, a, x, y);
            stream.launch(&self.saxpy_f32, LaunchShape::for_items(items), values)
        }
    }

    /// Keep the stream busy for about this long.
    pub fn spin(&self, stream: &Stream, nanoseconds: u64) -> Result<()> {
        let shape = LaunchShape {
            grid: [1, 1, 1],
            block: [1, 1, 1],
            shared_bytes: 0,
        };
        // SAFETY: its only parameter; it touches no memory.
        unsafe { stream.launch(&self.spin, shape, (nanoseconds,)) }
    }
}
