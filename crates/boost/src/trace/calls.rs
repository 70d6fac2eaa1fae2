//! What the arguments of each traced call mean.

/// A [`RecordedCall`](crate::trace::RecordedCall) for a wrapped call, by its name; `None` for calls that are not traced.
macro_rules! described {
    (cuMemcpyHtoD_v2($d:ident, $h:ident, $n:ident)) => {
        Some(RecordedCall::upload($d, $h, $n))
    };
    (cuMemcpyHtoD_v2_ptds($d:ident, $h:ident, $n:ident)) => {
        Some(RecordedCall::upload($d, $h, $n).blocking_on(PER_THREAD))
    };
    (cuMemcpyHtoDAsync_v2($d:ident, $h:ident, $n:ident, $s:ident)) => {
        Some(RecordedCall::upload($d, $h, $n).on(stream_of($s, false)))
    };
    (cuMemcpyHtoDAsync_v2_ptsz($d:ident, $h:ident, $n:ident, $s:ident)) => {
        Some(RecordedCall::upload($d, $h, $n).on(stream_of($s, true)))
    };
    (cuMemcpyDtoH_v2($h:ident, $d:ident, $n:ident)) => {
        Some(RecordedCall::download($h, $d, $n))
    };
    (cuMemcpyDtoH_v2_ptds($h:ident, $d:ident, $n:ident)) => {
        Some(RecordedCall::download($h, $d, $n).blocking_on(PER_THREAD))
    };
    (cuMemcpyDtoHAsync_v2($h:ident, $d:ident, $n:ident, $s:ident)) => {
        Some(RecordedCall::download($h, $d, $n).on(stream_of($s, false)))
    };
    (cuMemcpyDtoHAsync_v2_ptsz($h:ident, $d:ident, $n:ident, $s:ident)) => {
        Some(RecordedCall::download($h, $d, $n).on(stream_of($s, true)))
    };
    (cuMemcpyDtoD_v2($t:ident, $f:ident, $n:ident)) => {
        Some(RecordedCall::on_device($t, $n))
    };
    (cuMemcpyDtoD_v2_ptds($t:ident, $f:ident, $n:ident)) => {
        Some(RecordedCall::on_device($t, $n).blocking_on(PER_THREAD))
    };
    (cuMemcpyDtoDAsync_v2($t:ident, $f:ident, $n:ident, $s:ident)) => {
        Some(RecordedCall::on_device($t, $n).on(stream_of($s, false)))
    };
    (cuMemcpyDtoDAsync_v2_ptsz($t:ident, $f:ident, $n:ident, $s:ident)) => {
        Some(RecordedCall::on_device($t, $n).on(stream_of($s, true)))
    };
    (cuMemcpy($t:ident, $f:ident, $n:ident)) => {
        Some(RecordedCall::any($t, $f, $n))
    };
    (cuMemcpy_ptds($t:ident, $f:ident, $n:ident)) => {
        Some(RecordedCall::any($t, $f, $n).blocking_on(PER_THREAD))
    };
    (cuMemcpyAsync($t:ident, $f:ident, $n:ident, $s:ident)) => {
        Some(RecordedCall::any($t, $f, $n).on(stream_of($s, false)))
    };
    (cuMemcpyAsync_ptsz($t:ident, $f:ident, $n:ident, $s:ident)) => {
        Some(RecordedCall::any($t, $f, $n).on(stream_of($s, true)))
    };

    (cuMemcpy2D_v2($r:ident)) => {
        RecordedCall::rows($r)
    };
    (cuMemcpy2D_v2_ptds($r:ident)) => {
        RecordedCall::rows($r).map(|it| it.blocking_on(PER_THREAD))
    };
    (cuMemcpy2DUnaligned_v2($r:ident)) => {
        RecordedCall::rows($r)
    };
    (cuMemcpy2DUnaligned_v2_ptds($r:ident)) => {
        RecordedCall::rows($r).map(|it| it.blocking_on(PER_THREAD))
    };
    (cuMemcpy2DAsync_v2($r:ident, $s:ident)) => {
        RecordedCall::rows($r).map(|it| it.on(stream_of($s, false)))
    };
    (cuMemcpy2DAsync_v2_ptsz($r:ident, $s:ident)) => {
        RecordedCall::rows($r).map(|it| it.on(stream_of($s, true)))
    };
    (cuMemcpy3D_v2($b:ident)) => {
        RecordedCall::block($b)
    };
    (cuMemcpy3D_v2_ptds($b:ident)) => {
        RecordedCall::block($b).map(|it| it.blocking_on(PER_THREAD))
    };
    (cuMemcpy3DAsync_v2($b:ident, $s:ident)) => {
        RecordedCall::block($b).map(|it| it.on(stream_of($s, false)))
    };
    (cuMemcpy3DAsync_v2_ptsz($b:ident, $s:ident)) => {
        RecordedCall::block($b).map(|it| it.on(stream_of($s, true)))
    };
    (cuMemcpyBatchAsync($t:ident, $f:ident, $z:ident, $n:ident, $a:ident, $i:ident, $c:ident, $x:ident, $s:ident)) => {
        RecordedCall::batch($t, $f, $z, $n).map(|it| it.on(stream_of($s, false)))
    };
    (cuMemcpyBatchAsync_ptsz($t:ident, $f:ident, $z:ident, $n:ident, $a:ident, $i:ident, $c:ident, $x:ident, $s:ident)) => {
        RecordedCall::batch($t, $f, $z, $n).map(|it| it.on(stream_of($s, true)))
    };
    (cuMemcpyBatchAsync_v2($t:ident, $f:ident, $z:ident, $n:ident, $a:ident, $i:ident, $c:ident, $s:ident)) => {
        RecordedCall::batch($t, $f, $z, $n).map(|it| it.on(stream_of($s, false)))
    };
    (cuMemcpyBatchAsync_v2_ptsz($t:ident, $f:ident, $z:ident, $n:ident, $a:ident, $i:ident, $c:ident, $s:ident)) => {
        RecordedCall::batch($t, $f, $z, $n).map(|it| it.on(stream_of($s, true)))
    };

    (cuMemHostAlloc($h:ident, $n:ident, $f:ident)) => {
        Some(RecordedCall::allocate($h, $n, $f))
    };
    (cuMemAllocHost_v2($h:ident, $n:ident)) => {
        Some(RecordedCall::allocate($h, $n, 0))
    };
    (cuMemFreeHost($h:ident)) => {
        Some(RecordedCall::host(Operation::Free, $h, 0))
    };
    (cuMemHostRegister_v2($h:ident, $n:ident, $f:ident)) => {
        Some(RecordedCall::host(Operation::Register, $h, $n))
    };
    (cuMemHostUnregister($h:ident)) => {
        Some(RecordedCall::host(Operation::Unregister, $h, 0))
    };

    (cuStreamSynchronize($s:ident)) => {
        Some(RecordedCall::new(Operation::WaitForStream).blocking_on(stream_of($s, false)))
    };
    (cuStreamSynchronize_ptsz($s:ident)) => {
        Some(RecordedCall::new(Operation::WaitForStream).blocking_on(stream_of($s, true)))
    };
    (cuEventSynchronize($e:ident)) => {
        Some(RecordedCall::event(Operation::WaitForEvent, $e))
    };
    (cuCtxSynchronize()) => {
        Some(RecordedCall::new(Operation::WaitForContext))
    };
    (cuCtxSynchronize_v2($c:ident)) => {
        Some(RecordedCall::new(Operation::WaitForContext))
    };
    (cuEventRecord($e:ident, $s:ident)) => {
        Some(RecordedCall::event(Operation::RecordEvent, $e).on(stream_of($s, false)))
    };
    (cuEventRecord_ptsz($e:ident, $s:ident)) => {
        Some(RecordedCall::event(Operation::RecordEvent, $e).on(stream_of($s, true)))
    };
    (cuEventRecordWithFlags($e:ident, $s:ident, $f:ident)) => {
        Some(RecordedCall::event(Operation::RecordEvent, $e).on(stream_of($s, false)))
    };
    (cuEventRecordWithFlags_ptsz($e:ident, $s:ident, $f:ident)) => {
        Some(RecordedCall::event(Operation::RecordEvent, $e).on(stream_of($s, true)))
    };
    (cuStreamWaitEvent($s:ident, $e:ident, $f:ident)) => {
        Some(RecordedCall::event(Operation::StreamWaitsForEvent, $e).on(stream_of($s, false)))
    };
    (cuStreamWaitEvent_ptsz($s:ident, $e:ident, $f:ident)) => {
        Some(RecordedCall::event(Operation::StreamWaitsForEvent, $e).on(stream_of($s, true)))
    };
    (cuEventQuery($e:ident)) => {
        Some(RecordedCall::event(Operation::QueryEvent, $e))
    };
    (cuStreamQuery($s:ident)) => {
        Some(RecordedCall::new(Operation::QueryStream).blocking_on(stream_of($s, false)))
    };
    (cuStreamQuery_ptsz($s:ident)) => {
        Some(RecordedCall::new(Operation::QueryStream).blocking_on(stream_of($s, true)))
    };
    (cuStreamCreate($s:ident, $f:ident)) => {
        Some(RecordedCall::create_stream($f))
    };
    (cuStreamCreateWithPriority($s:ident, $f:ident, $p:ident)) => {
        Some(RecordedCall::create_stream($f))
    };

    ($name:ident($($argument:ident),*)) => {
        None::<RecordedCall>
    };
}
pub(crate) use described;
