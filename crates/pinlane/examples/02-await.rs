//! Await transfers. Any runtime will do; this one is a dozen lines.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use pinlane::{Device, Result};

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or("sim:h200".into());
    let device = Device::named(&name)?;
    println!("{}", device.info().name);
    block_on(async {
        let stream = device.stream()?;
        let mut on_device = device.alloc::<u32>(1000)?;
        let numbers: Vec<u32> = (0..1000).collect();
        let buffer = stream
            .upload(device.pinned_from(&numbers)?, &mut on_device)?
            .await?;
        let buffer = stream.download(&on_device, buffer)?.await?;
        println!("element 999 came back as {}", buffer[999]);
        Ok(())
    })
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
