//! Functions of the driver API that are exported but not supported.

use crate::error::NOT_SUPPORTED;
use crate::exports::always;
use crate::report;

/// Exports a function for each name. It takes no arguments: in C's calling convention, a callee may
/// ignore those that the caller passes.
macro_rules! unsupported {
    ($($name:ident)*) => { $(
        #[allow(non_snake_case)] // the driver's own name
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> u32 {
            always(|| {
                report::note_unsupported(stringify!($name));
                Err(NOT_SUPPORTED)
            })
        }
    )* };
}

unsupported! {
    cuArray3DCreate cuArray3DCreate_v2 cuArray3DGetDescriptor cuArray3DGetDescriptor_v2
    cuArrayCreate cuArrayCreate_v2 cuArrayDestroy cuArrayGetDescriptor cuArrayGetDescriptor_v2
    cuArrayGetMemoryRequirements cuArrayGetPlane cuArrayGetSparseProperties
    cuCheckpointProcessCheckpoint cuCheckpointProcessGetRestoreThreadId cuCheckpointProcessGetState
    cuCheckpointProcessLock cuCheckpointProcessRestore cuCheckpointProcessUnlock
    cuCoredumpGetAttribute cuCoredumpGetAttributeGlobal cuCoredumpSetAttribute
    cuCoredumpSetAttributeGlobal cuCtxAttach cuCtxCreate cuCtxDestroy cuCtxDetach
    cuCtxDisablePeerAccess cuCtxEnablePeerAccess cuCtxFromGreenCtx cuCtxGetDevResource
    cuCtxGetExecAffinity cuCtxGetSharedMemConfig cuCtxPopCurrent cuCtxPushCurrent cuCtxRecordEvent
    cuCtxResetPersistingL2Cache cuCtxSetSharedMemConfig cuCtxWaitEvent cuDestroyExternalMemory
    cuDestroyExternalSemaphore cuDeviceGetDevResource cuDeviceGetExecAffinitySupport
    cuDeviceGetGraphMemAttribute cuDeviceGetHostAtomicCapabilities cuDeviceGetLuid
    cuDeviceGetNvSciSyncAttributes cuDeviceGetP2PAtomicCapabilities cuDeviceGetP2PAttribute
    cuDeviceGetProperties cuDeviceGetTexture1DLinearMaxWidth cuDeviceGraphMemTrim
    cuDeviceRegisterAsyncNotification cuDeviceSetGraphMemAttribute cuDeviceTotalMem
    cuDeviceUnregisterAsyncNotification cuDevResourceGenerateDesc cuDevSmResourceSplitByCount
    cuEGLApiInit cuEGLStreamConsumerAcquireFrame cuEGLStreamConsumerConnect
    cuEGLStreamConsumerConnectWithFlags cuEGLStreamConsumerDisconnect
    cuEGLStreamConsumerReleaseFrame cuEGLStreamProducerConnect cuEGLStreamProducerDisconnect
    cuEGLStreamProducerPresentFrame cuEGLStreamProducerReturnFrame cuExternalMemoryGetMappedBuffer
    cuExternalMemoryGetMappedMipmappedArray cuFlushGPUDirectRDMAWrites cuFuncGetName
    cuFuncGetParamInfo cuFuncIsLoaded cuFuncLoad cuFuncSetAttribute cuFuncSetBlockShape
    cuFuncSetCacheConfig cuFuncSetSharedMemConfig cuFuncSetSharedSize cuGLCtxCreate cuGLCtxCreate_v2
    cuGLGetDevices cuGLGetDevices_v2 cuGLInit cuGLMapBufferObject cuGLMapBufferObject_v2
    cuGLMapBufferObject_v2_ptds cuGLMapBufferObjectAsync cuGLMapBufferObjectAsync_v2
    cuGLMapBufferObjectAsync_v2_ptsz cuGLRegisterBufferObject cuGLSetBufferObjectMapFlags
    cuGLUnmapBufferObject cuGLUnmapBufferObjectAsync cuGLUnregisterBufferObject
    cuGraphAddBatchMemOpNode cuGraphAddChildGraphNode cuGraphAddDependencies
    cuGraphAddDependencies_v2 cuGraphAddEmptyNode cuGraphAddEventRecordNode cuGraphAddEventWaitNode
    cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode cuGraphAddHostNode
    cuGraphAddKernelNode cuGraphAddKernelNode_v2 cuGraphAddMemAllocNode cuGraphAddMemcpyNode
    cuGraphAddMemFreeNode cuGraphAddMemsetNode cuGraphAddNode cuGraphAddNode_v2
    cuGraphBatchMemOpNodeGetParams cuGraphBatchMemOpNodeSetParams cuGraphChildGraphNodeGetGraph
    cuGraphClone cuGraphConditionalHandleCreate cuGraphCreate cuGraphDebugDotPrint cuGraphDestroy
    cuGraphDestroyNode cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent
    cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent cuGraphExecBatchMemOpNodeSetParams
    cuGraphExecChildGraphNodeSetParams cuGraphExecDestroy cuGraphExecEventRecordNodeSetEvent
    cuGraphExecEventWaitNodeSetEvent cuGraphExecExternalSemaphoresSignalNodeSetParams
    cuGraphExecExternalSemaphoresWaitNodeSetParams cuGraphExecGetFlags cuGraphExecHostNodeSetParams
    cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2 cuGraphExecMemcpyNodeSetParams
    cuGraphExecMemsetNodeSetParams cuGraphExecNodeSetParams cuGraphExecUpdate cuGraphExecUpdate_v2
    cuGraphExternalSemaphoresSignalNodeGetParams cuGraphExternalSemaphoresSignalNodeSetParams
    cuGraphExternalSemaphoresWaitNodeGetParams cuGraphExternalSemaphoresWaitNodeSetParams
    cuGraphGetEdges cuGraphGetEdges_v2 cuGraphGetNodes cuGraphGetRootNodes cuGraphHostNodeGetParams
    cuGraphHostNodeSetParams cuGraphicsEGLRegisterImage cuGraphicsGLRegisterBuffer
    cuGraphicsGLRegisterImage cuGraphicsMapResources cuGraphicsMapResources_ptsz
    cuGraphicsResourceGetMappedEglFrame cuGraphicsResourceGetMappedMipmappedArray
    cuGraphicsResourceGetMappedPointer cuGraphicsResourceGetMappedPointer_v2
    cuGraphicsResourceSetMapFlags cuGraphicsResourceSetMapFlags_v2
    cuGraphicsSubResourceGetMappedArray cuGraphicsUnmapResources cuGraphicsUnmapResources_ptsz
    cuGraphicsUnregisterResource cuGraphicsVDPAURegisterOutputSurface
    cuGraphicsVDPAURegisterVideoSurface cuGraphInstantiate cuGraphInstantiate_v2
    cuGraphInstantiateWithFlags cuGraphInstantiateWithParams cuGraphInstantiateWithParams_ptsz
    cuGraphKernelNodeCopyAttributes cuGraphKernelNodeGetAttribute cuGraphKernelNodeGetParams
    cuGraphKernelNodeGetParams_v2 cuGraphKernelNodeSetAttribute cuGraphKernelNodeSetParams
    cuGraphKernelNodeSetParams_v2 cuGraphLaunch cuGraphLaunch_ptsz cuGraphMemAllocNodeGetParams
    cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams cuGraphMemFreeNodeGetParams
    cuGraphMemsetNodeGetParams cuGraphMemsetNodeSetParams cuGraphNodeFindInClone
    cuGraphNodeGetDependencies cuGraphNodeGetDependencies_v2 cuGraphNodeGetDependentNodes
    cuGraphNodeGetDependentNodes_v2 cuGraphNodeGetEnabled cuGraphNodeGetType cuGraphNodeSetEnabled
    cuGraphNodeSetParams cuGraphReleaseUserObject cuGraphRemoveDependencies
    cuGraphRemoveDependencies_v2 cuGraphRetainUserObject cuGraphUpload cuGraphUpload_ptsz
    cuGreenCtxCreate cuGreenCtxDestroy cuGreenCtxGetDevResource cuGreenCtxGetId
    cuGreenCtxRecordEvent cuGreenCtxStreamCreate cuGreenCtxWaitEvent cuImportExternalMemory
    cuImportExternalSemaphore cuIpcCloseMemHandle cuIpcGetEventHandle cuIpcGetMemHandle
    cuIpcOpenEventHandle cuIpcOpenMemHandle cuIpcOpenMemHandle_v2 cuKernelGetAttribute
    cuKernelGetFunction cuKernelGetLibrary cuKernelGetName cuKernelGetParamInfo cuKernelSetAttribute
    cuKernelSetCacheConfig cuLaunch cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz
    cuLaunchCooperativeKernelMultiDevice cuLaunchGrid cuLaunchGridAsync cuLibraryEnumerateKernels
    cuLibraryGetGlobal cuLibraryGetKernel cuLibraryGetKernelCount cuLibraryGetManaged
    cuLibraryGetModule cuLibraryGetUnifiedFunction cuLibraryLoadData cuLibraryLoadFromFile
    cuLibraryUnload cuLinkAddData cuLinkAddData_v2 cuLinkAddFile cuLinkAddFile_v2 cuLinkComplete
    cuLinkCreate cuLinkCreate_v2 cuLinkDestroy cuLogsCurrent cuLogsDumpToFile cuLogsDumpToMemory
    cuLogsRegisterCallback cuLogsUnregisterCallback cuMemAddressFree cuMemAddressReserve cuMemAdvise
    cuMemAdvise_v2 cuMemAlloc cuMemAllocHost cuMemAllocManaged cuMemAllocPitch
    cuMemBatchDecompressAsync cuMemBatchDecompressAsync_ptsz cuMemcpy2D cuMemcpy2DAsync
    cuMemcpy2DUnaligned cuMemcpy3D cuMemcpy3D_v2 cuMemcpy3D_v2_ptds cuMemcpy3DAsync
    cuMemcpy3DAsync_v2 cuMemcpy3DAsync_v2_ptsz cuMemcpy3DBatchAsync cuMemcpy3DBatchAsync_ptsz
    cuMemcpy3DBatchAsync_v2 cuMemcpy3DBatchAsync_v2_ptsz cuMemcpy3DPeer cuMemcpy3DPeer_ptds
    cuMemcpy3DPeerAsync cuMemcpy3DPeerAsync_ptsz cuMemcpyAtoA cuMemcpyAtoA_v2 cuMemcpyAtoA_v2_ptds
    cuMemcpyAtoD cuMemcpyAtoD_v2 cuMemcpyAtoD_v2_ptds cuMemcpyAtoH cuMemcpyAtoH_v2
    cuMemcpyAtoH_v2_ptds cuMemcpyAtoHAsync cuMemcpyAtoHAsync_v2 cuMemcpyAtoHAsync_v2_ptsz
    cuMemcpyDtoA cuMemcpyDtoA_v2 cuMemcpyDtoA_v2_ptds cuMemcpyDtoD cuMemcpyDtoDAsync cuMemcpyDtoH
    cuMemcpyDtoHAsync cuMemcpyHtoA cuMemcpyHtoA_v2 cuMemcpyHtoA_v2_ptds cuMemcpyHtoAAsync
    cuMemcpyHtoAAsync_v2 cuMemcpyHtoAAsync_v2_ptsz cuMemcpyHtoD cuMemcpyHtoDAsync cuMemcpyPeer
    cuMemcpyPeer_ptds cuMemcpyPeerAsync cuMemcpyPeerAsync_ptsz cuMemCreate
    cuMemDiscardAndPrefetchBatchAsync cuMemDiscardAndPrefetchBatchAsync_ptsz cuMemDiscardBatchAsync
    cuMemDiscardBatchAsync_ptsz cuMemExportToShareableHandle cuMemFree cuMemGetAccess
    cuMemGetAddressRange cuMemGetAllocationGranularity cuMemGetAllocationPropertiesFromHandle
    cuMemGetAttribute cuMemGetAttribute_v2 cuMemGetDefaultMemPool cuMemGetHandleForAddressRange
    cuMemGetInfo cuMemGetMemPool cuMemHostGetDevicePointer cuMemHostRegister
    cuMemImportFromShareableHandle cuMemMap cuMemMapArrayAsync cuMemMapArrayAsync_ptsz
    cuMemPoolCreate cuMemPoolDestroy cuMemPoolExportPointer cuMemPoolExportToShareableHandle
    cuMemPoolGetAccess cuMemPoolImportFromShareableHandle cuMemPoolImportPointer cuMemPoolSetAccess
    cuMemPrefetchAsync cuMemPrefetchAsync_ptsz cuMemPrefetchAsync_v2 cuMemPrefetchAsync_v2_ptsz
    cuMemPrefetchBatchAsync cuMemPrefetchBatchAsync_ptsz cuMemRangeGetAttribute
    cuMemRangeGetAttributes cuMemRelease cuMemRetainAllocationHandle cuMemSetAccess cuMemsetD16
    cuMemsetD2D16 cuMemsetD2D32 cuMemsetD2D8 cuMemsetD32 cuMemsetD8 cuMemSetMemPool cuMemUnmap
    cuMipmappedArrayCreate cuMipmappedArrayDestroy cuMipmappedArrayGetLevel
    cuMipmappedArrayGetMemoryRequirements cuMipmappedArrayGetSparseProperties
    cuModuleEnumerateFunctions cuModuleGetFunctionCount cuModuleGetGlobal cuModuleGetGlobal_v2
    cuModuleGetSurfRef cuModuleGetTexRef cuModuleLoadFatBinary cuMulticastAddDevice
    cuMulticastBindAddr cuMulticastBindMem cuMulticastCreate cuMulticastGetGranularity
    cuMulticastUnbind cuOccupancyAvailableDynamicSMemPerBlock
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    cuOccupancyMaxActiveClusters cuOccupancyMaxPotentialBlockSize
    cuOccupancyMaxPotentialBlockSizeWithFlags cuOccupancyMaxPotentialClusterSize cuParamSetf
    cuParamSeti cuParamSetSize cuParamSetTexRef cuParamSetv cuProfilerInitialize
    cuSignalExternalSemaphoresAsync cuSignalExternalSemaphoresAsync_ptsz cuStreamAttachMemAsync
    cuStreamAttachMemAsync_ptsz cuStreamBatchMemOp cuStreamBatchMemOp_ptsz cuStreamBatchMemOp_v2
    cuStreamBatchMemOp_v2_ptsz cuStreamBeginCapture cuStreamBeginCapture_ptsz
    cuStreamBeginCapture_v2 cuStreamBeginCapture_v2_ptsz cuStreamBeginCaptureToGraph
    cuStreamBeginCaptureToGraph_ptsz cuStreamCopyAttributes cuStreamCopyAttributes_ptsz
    cuStreamEndCapture cuStreamEndCapture_ptsz cuStreamGetAttribute cuStreamGetAttribute_ptsz
    cuStreamGetGreenCtx cuStreamSetAttribute cuStreamSetAttribute_ptsz
    cuStreamUpdateCaptureDependencies cuStreamUpdateCaptureDependencies_ptsz
    cuStreamUpdateCaptureDependencies_v2 cuStreamUpdateCaptureDependencies_v2_ptsz
    cuStreamWaitValue32 cuStreamWaitValue32_ptsz cuStreamWaitValue32_v2 cuStreamWaitValue32_v2_ptsz
    cuStreamWaitValue64 cuStreamWaitValue64_ptsz cuStreamWaitValue64_v2 cuStreamWaitValue64_v2_ptsz
    cuStreamWriteValue32 cuStreamWriteValue32_ptsz cuStreamWriteValue32_v2
    cuStreamWriteValue32_v2_ptsz cuStreamWriteValue64 cuStreamWriteValue64_ptsz
    cuStreamWriteValue64_v2 cuStreamWriteValue64_v2_ptsz cuSurfObjectCreate cuSurfObjectDestroy
    cuSurfObjectGetResourceDesc cuSurfRefGetArray cuSurfRefSetArray cuTensorMapEncodeIm2col
    cuTensorMapEncodeIm2colWide cuTensorMapEncodeTiled cuTensorMapReplaceAddress cuTexObjectCreate
    cuTexObjectDestroy cuTexObjectGetResourceDesc cuTexObjectGetResourceViewDesc
    cuTexObjectGetTextureDesc cuTexRefCreate cuTexRefDestroy cuTexRefGetAddress
    cuTexRefGetAddress_v2 cuTexRefGetAddressMode cuTexRefGetArray cuTexRefGetBorderColor
    cuTexRefGetFilterMode cuTexRefGetFlags cuTexRefGetFormat cuTexRefGetMaxAnisotropy
    cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias cuTexRefGetMipmapLevelClamp
    cuTexRefGetMipmappedArray cuTexRefSetAddress cuTexRefSetAddress2D cuTexRefSetAddress2D_v2
    cuTexRefSetAddress2D_v3 cuTexRefSetAddress_v2 cuTexRefSetAddressMode cuTexRefSetArray
    cuTexRefSetBorderColor cuTexRefSetFilterMode cuTexRefSetFlags cuTexRefSetFormat
    cuTexRefSetMaxAnisotropy cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias
    cuTexRefSetMipmapLevelClamp cuTexRefSetMipmappedArray cuUserObjectCreate cuUserObjectRelease
    cuUserObjectRetain cuVDPAUCtxCreate cuVDPAUCtxCreate_v2 cuVDPAUGetDevice
    cuWaitExternalSemaphoresAsync cuWaitExternalSemaphoresAsync_ptsz
}
