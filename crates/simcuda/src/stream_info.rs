//! What a stream is, and whether it is being captured.

use crate::ffi::Out;
use crate::shim::exports_by_default_stream;
use crate::stream::Lane;

/// The stream is not being captured.
const CAPTURE_NONE: u32 = 0;

exports_by_default_stream! {
    /// The flags that it was created with.
    fn cuStreamGetFlags, cuStreamGetFlags_ptsz(stream: usize, flags: Out<u32>) |mode| {
        let lane = Lane::find(stream, mode)?;
        flags.required()?.put(lane.flags);
        Ok(())
    }

    /// Its priority.
    fn cuStreamGetPriority, cuStreamGetPriority_ptsz(stream: usize, priority: Out<i32>) |mode| {
        let lane = Lane::find(stream, mode)?;
        priority.required()?.put(lane.priority);
        Ok(())
    }

    /// A number that no other stream has.
    fn cuStreamGetId, cuStreamGetId_ptsz(stream: usize, id: Out<u64>) |mode| {
        let lane = Lane::find(stream, mode)?;
        id.required()?.put(lane.id);
        Ok(())
    }

    /// Its context.
    fn cuStreamGetCtx, cuStreamGetCtx_ptsz(stream: usize, context: Out<usize>) |mode| {
        let lane = Lane::find(stream, mode)?;
        context.required()?.put(lane.context.handle);
        Ok(())
    }

    /// Its context, and its green context, of which there are none.
    fn cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz(
        stream: usize, context: Out<usize>, green: Out<usize>,
    ) |mode| {
        let lane = Lane::find(stream, mode)?;
        context.required()?.put(lane.context.handle);
        green.required()?.put(0);
        Ok(())
    }

    /// Its device.
    fn cuStreamGetDevice, cuStreamGetDevice_ptsz(stream: usize, device: Out<i32>) |mode| {
        let lane = Lane::find(stream, mode)?;
        device.required()?.put(lane.context.ordinal);
        Ok(())
    }

    /// Whether it is being captured: never.
    fn cuStreamIsCapturing, cuStreamIsCapturing_ptsz(stream: usize, status: Out<u32>) |mode| {
        Lane::find(stream, mode)?;
        status.required()?.put(CAPTURE_NONE);
        Ok(())
    }

    /// About its capture: there is none.
    fn cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz(
        stream: usize, status: Out<u32>, _id: Out<u64>,
    ) |mode| {
        Lane::find(stream, mode)?;
        status.required()?.put(CAPTURE_NONE);
        Ok(())
    }

    /// About its capture, with what it depends on: there is none.
    fn cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz(
        stream: usize, status: Out<u32>, _id: Out<u64>, _graph: Out<usize>,
        _dependencies: Out<usize>, _count: Out<usize>,
    ) |mode| {
        Lane::find(stream, mode)?;
        status.required()?.put(CAPTURE_NONE);
        Ok(())
    }

    /// About its capture, with edges: there is none.
    fn cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz(
        stream: usize, status: Out<u32>, _id: Out<u64>, _graph: Out<usize>,
        _dependencies: Out<usize>, _edges: Out<usize>, _count: Out<usize>,
    ) |mode| {
        Lane::find(stream, mode)?;
        status.required()?.put(CAPTURE_NONE);
        Ok(())
    }
}
