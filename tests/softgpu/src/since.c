/* Since which driver version an exported name exists. Names that are not listed exist since 2.0;
 * a name ending in _v2 that is not listed, since 3.2. */
#include "since.h"

#include <stdlib.h>
#include <string.h>

struct since {
    unsigned version;
    const char *names; /* separated by blanks; a trailing * stands for any rest */
};

/* The first line that fits decides. */
static const struct since table[] = {
    {13010, "cuMemcpyWithAttributesAsync cuMemcpy3DWithAttributesAsync cuLogicalEndpoint* "
            "cuLaunchHostFunc_v2 cuGraphAddNode_v3 cuStreamBeginRecaptureToGraph* "
            "cuGraphNodeGetParams cuGraphNodeSetParams_v2 cuGraphNodeGetContainingGraph "
            "cuGraphNodeGetLocalId cuGraphNodeGetToolsId cuGraphGetId cuGraphExecGetId "
            "cuMulticastBindAddr_v2 cuMulticastBindMem_v2 cuStreamGetDevResource "
            "cuDevSmResourceSplit cuCoredumpRegister* cuCoredumpDeregister* "
            "cuDeviceGetFabricClusterUuid cuDeviceGetCliqueCount cuDeviceGetCliqueInfo "
            "cuStreamBeginCaptureToCig cuStreamEndCaptureToCig "
            "cuMemGetLocationInfo cuKernelGetParamCount cuFuncGetParamCount"},
    {13000, "cuCtxGetDevice_v2 cuCtxSynchronize_v2 cuMemcpyBatchAsync_v2* "
            "cuMemcpy3DBatchAsync_v2* cuMemPrefetchBatchAsync* cuMemDiscard* "
            "cuMemGetDefaultMemPool cuMemGetMemPool cuMemSetMemPool "
            "cuDeviceGetHostAtomicCapabilities cuDeviceGetP2PAtomicCapabilities cuGreenCtxGetId"},
    {12090, "cuLogs*"},
    {12080, "cuEventElapsedTime_v2 cuStreamGetDevice* cuMemcpyBatchAsync* cuMemcpy3DBatchAsync* "
            "cuCheckpoint* cuTensorMapEncodeIm2colWide"},
    {12060, "cuMemBatchDecompressAsync*"},
    {12050, "cuCtxCreate_v4 cuStreamGetCtx_v2* cuGreenCtxStreamCreate cuKernelGetLibrary "
            "cuCtxRecordEvent cuCtxWaitEvent"},
    {12040, "cuGreenCtx* cuCtxFromGreenCtx cuDevResource* cuDevSmResource* cuDeviceGetDevResource "
            "cuCtxGetDevResource cuStreamGetGreenCtx cuKernelGetParamInfo cuFuncGetParamInfo "
            "cuModuleGetFunctionCount cuModuleEnumerateFunctions cuFuncIsLoaded cuFuncLoad "
            "cuLibraryGetKernelCount cuLibraryEnumerateKernels "
            "cuDeviceRegisterAsyncNotification cuDeviceUnregisterAsyncNotification"},
    {12030, "cuStreamBeginCaptureToGraph* cuGraphAddDependencies_v2 cuGraphRemoveDependencies_v2 "
            "cuGraphGetEdges_v2 cuGraphNodeGetDependencies_v2 cuGraphNodeGetDependentNodes_v2 "
            "cuGraphAddNode_v2 cuStreamGetCaptureInfo_v3* cuStreamUpdateCaptureDependencies_v2* "
            "cuKernelGetName cuFuncGetName cuGraphConditionalHandleCreate"},
    {12020, "cuMemAdvise_v2 cuMemPrefetchAsync_v2* cuGraphAddNode cuGraphNodeSetParams "
            "cuGraphExecNodeSetParams"},
    {12010, "cuCtxSetFlags cuMulticast* cuCoredump*"},
    {12000, "cuGetProcAddress_v2 cuLibrary* cuKernel* cuTensorMap* cuStreamGetId* cuCtxGetId "
            "cuGraphInstantiateWithParams* cuGraphExecGetFlags cuGraphExecUpdate_v2 "
            "cuGraphAddKernelNode_v2 cuGraphKernelNodeGetParams_v2 cuGraphKernelNodeSetParams_v2 "
            "cuGraphExecKernelNodeSetParams_v2"},
    {11070, "cuStreamWaitValue32_v2* cuStreamWaitValue64_v2* cuStreamWriteValue32_v2* "
            "cuStreamWriteValue64_v2* cuStreamBatchMemOp_v2* cuModuleGetLoadingMode "
            "cuMemGetHandleForAddressRange cuGraphAddBatchMemOpNode cuGraphBatchMemOpNode* "
            "cuGraphExecBatchMemOpNodeSetParams cuOccupancyMaxActiveClusters "
            "cuOccupancyMaxPotentialClusterSize"},
    {11060,
     "cuLaunchKernelEx* cuGraphNodeGetEnabled cuGraphNodeSetEnabled cuArrayGetMemoryRequirements "
     "cuMipmappedArrayGetMemoryRequirements"},
    {11040, "cuDeviceGetUuid_v2 cuCtxCreate_v3 cuCtxGetExecAffinity "
            "cuDeviceGetExecAffinitySupport cuDeviceGetGraphMemAttribute "
            "cuDeviceSetGraphMemAttribute cuDeviceGraphMemTrim cuGraphAddMemAllocNode "
            "cuGraphAddMemFreeNode "
            "cuGraphMemAllocNodeGetParams cuGraphMemFreeNodeGetParams "
            "cuGraphInstantiateWithFlags"},
    {11030, "cuGetProcAddress cuStreamGetCaptureInfo_v2* cuStreamUpdateCaptureDependencies* "
            "cuUserObject* cuGraphRetainUserObject cuGraphReleaseUserObject "
            "cuGraphDebugDotPrint cuFlushGPUDirectRDMAWrites"},
    {11020, "cuMemAllocAsync* cuMemAllocFromPoolAsync* cuMemFreeAsync* cuMemPool* "
            "cuDeviceGetDefaultMemPool cuDeviceGetMemPool cuDeviceSetMemPool "
            "cuGraphAddExternalSemaphores* "
            "cuGraphExternalSemaphores* cuGraphExecExternalSemaphores* cuArrayGetPlane"},
    {11010, "cuGraphUpload* cuGraphAddEvent* cuGraphEvent* cuGraphExecEvent* "
            "cuGraphExecChildGraphNodeSetParams cuEventRecordWithFlags* "
            "cuArrayGetSparseProperties cuMipmappedArrayGetSparseProperties cuMemMapArrayAsync* "
            "cuDeviceGetTexture1DLinearMaxWidth"},
    {11000, "cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxReset_v2 "
            "cuDevicePrimaryCtxSetFlags_v2 cuIpcOpenMemHandle_v2 cuGraphInstantiate_v2 "
            "cuFuncGetModule cuCtxResetPersistingL2Cache cuStreamCopyAttributes* "
            "cuStreamGetAttribute* cuStreamSetAttribute* cuGraphKernelNodeCopyAttributes "
            "cuGraphKernelNodeCopyAttributes cuGraphKernelNodeGetAttribute "
            "cuGraphKernelNodeSetAttribute cuMemRetainAllocationHandle"},
    {10020, "cuMemAddress* cuMemCreate cuMemExportToShareableHandle cuMemGetAccess "
            "cuMemGetAllocation* cuMemImportFromShareableHandle cuMemMap cuMemRelease "
            "cuMemSetAccess cuMemUnmap cuGraphExecUpdate cuGraphExecMem* "
            "cuGraphExecHostNodeSetParams cuDeviceGetNvSciSyncAttributes "
            "cuOccupancyAvailableDynamicSMemPerBlock"},
    {10010, "cuStreamBeginCapture_v2* cuThreadExchangeStreamCaptureMode cuStreamGetCaptureInfo* "
            "cuGraphExecKernelNodeSetParams"},
    {10000, "cuStreamBeginCapture* cuStreamEndCapture* cuStreamIsCapturing* "
            "cuGraphAdd* cuGraphCreate cuGraphClone cuGraphDestroy* cuGraphGet* cuGraphHost* "
            "cuGraphInstantiate cuGraphKernel* cuGraphLaunch* cuGraphMem* cuGraphNode* "
            "cuGraphRemove* cuGraphExec* cuGraphChild* cuLaunchHostFunc* cuImportExternal* "
            "cuExternalMemory* cuDestroyExternal* cuSignalExternal* cuWaitExternal* "
            "cuDeviceGetLuid"},
    {9020, "cuDeviceGetUuid cuStreamGetCtx*"},
    {9000, "cuFuncSetAttribute cuLaunchCooperativeKernel* cuStreamWaitValue64* "
           "cuStreamWriteValue64*"},
    {8000, "cuMemAdvise cuMemPrefetchAsync* cuMemRangeGetAttribute* cuDeviceGetP2PAttribute "
           "cuStreamWaitValue32* cuStreamWriteValue32* cuStreamBatchMemOp*"},
    {7000, "*_ptsz *_ptds cuDevicePrimaryCtx* cuPointerGetAttributes cuCtxGetFlags"},
    {6050, "cuMemHostRegister_v2 cuLinkCreate_v2 cuLinkAddData_v2 cuLinkAddFile_v2 "
           "cuOccupancy*"},
    {6000, "cuMemAllocManaged cuStreamAttachMemAsync cuPointerSetAttribute cuGetErrorName "
           "cuGetErrorString"},
    {5050, "cuLink* cuStreamCreateWithPriority cuStreamGetPriority cuStreamGetFlags "
           "cuCtxGetStreamPriorityRange"},
    {5000, "cuTexObject* cuSurfObject* cuMipmappedArray* cuTexRefGetMip* cuTexRefSetMip* "
           "cuStreamAddCallback"},
    {4010, "cuIpc* cuTexRefSetAddress2D_v3 cuDeviceGetByPCIBusId cuDeviceGetPCIBusId"},
    {4000, "cuCtxDestroy_v2 cuCtxPopCurrent_v2 cuCtxPushCurrent_v2 cuStreamDestroy_v2 "
           "cuEventDestroy_v2 cuLaunchKernel cuCtxGetCurrent cuCtxSetCurrent cuMemcpy "
           "cuMemcpyAsync cuMemcpyPeer* cuMemcpy3DPeer* cuCtxEnablePeerAccess "
           "cuCtxDisablePeerAccess cuDeviceCanAccessPeer cuMemHostRegister cuMemHostUnregister "
           "cuPointerGetAttribute cuProfiler*"},
    {3020, "cuCtxGetApiVersion cuStreamWaitEvent"},
    {3010, "cuCtxGetCacheConfig cuCtxSetCacheConfig cuCtxGetLimit cuCtxSetLimit"},
    {3000, "cuGetExportTable cuMemsetD2D*Async cuMemsetD8Async cuMemsetD16Async "
           "cuMemsetD32Async cuFuncSetCacheConfig cuGraphics* cuModuleGetSurfRef cuSurfRef*"},
};

static int fits(const char *pattern, size_t len, const char *name) {
    const char *star = memchr(pattern, '*', len);
    if (star == NULL) {
        return strlen(name) == len && strncmp(pattern, name, len) == 0;
    }
    size_t front = (size_t)(star - pattern);
    size_t back = len - front - 1;
    size_t n = strlen(name);
    return n >= front + back && strncmp(pattern, name, front) == 0 &&
           strncmp(star + 1, name + n - back, back) == 0;
}

static int listed(const char *names, const char *name) {
    while (*names != '\0') {
        size_t len = strcspn(names, " ");
        if (fits(names, len, name)) {
            return 1;
        }
        names += len;
        names += strspn(names, " ");
    }
    return 0;
}

unsigned sg_since(const char *name) {
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (listed(table[i].names, name)) {
            return table[i].version;
        }
    }
    return sg_version_of(name) >= 2 ? 3020 : 2000;
}

/* Length of the name without its per-thread ending. */
static size_t without_thread(const char *name) {
    size_t n = strlen(name);
    return n > 5 && (strcmp(name + n - 5, "_ptsz") == 0 || strcmp(name + n - 5, "_ptds") == 0)
               ? n - 5
               : n;
}

int sg_is_per_thread(const char *name) {
    return name[without_thread(name)] != '\0';
}

size_t sg_base_length(const char *name) {
    size_t n = without_thread(name);
    if (n > 3 && name[n - 1] >= '1' && name[n - 1] <= '9' && name[n - 2] == 'v' &&
        name[n - 3] == '_') {
        return n - 3;
    }
    return n;
}

unsigned sg_version_of(const char *name) {
    size_t n = without_thread(name);
    return sg_base_length(name) < n ? (unsigned)(name[n - 1] - '0') : 1;
}
