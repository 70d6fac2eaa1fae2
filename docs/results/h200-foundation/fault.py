# After a kernel fault on one stream: does a copy in flight on another still write host memory?
import ctypes, time, sys
import numpy as np
cu = ctypes.CDLL("libcuda.so.1")
def ck(r, w):
    if r: print(w, "->", r); 
    return r
cu.cuInit(0); dev=ctypes.c_int(); cu.cuDeviceGet(ctypes.byref(dev),0)
ctx=ctypes.c_void_p(); ck(cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx),dev),"retain"); cu.cuCtxSetCurrent(ctx)
N=8<<30
host=ctypes.c_void_p(); ck(cu.cuMemHostAlloc(ctypes.byref(host),ctypes.c_size_t(N),1),"hostalloc")
buf=np.ctypeslib.as_array((ctypes.c_uint8*N).from_address(host.value)); buf[:]=0
d=ctypes.c_uint64(); ck(cu.cuMemAlloc_v2(ctypes.byref(d),ctypes.c_size_t(N)),"alloc"); ck(cu.cuMemsetD8_v2(d,ctypes.c_ubyte(0xAA),ctypes.c_size_t(N)),"memset"); cu.cuCtxSynchronize()
ptx=b""".version 8.0
.target sm_52
.address_size 64
.visible .entry boom(){ .reg .u64 a; .reg .u32 b; mov.u64 a, 16; mov.u32 b, 1; st.global.u32 [a], b; ret; }
"""
m=ctypes.c_void_p(); ck(cu.cuModuleLoadData(ctypes.byref(m),ptx),"module"); f=ctypes.c_void_p(); ck(cu.cuModuleGetFunction(ctypes.byref(f),m,b"boom"),"fn")
s1=ctypes.c_void_p(); s2=ctypes.c_void_p(); cu.cuStreamCreate(ctypes.byref(s1),1); cu.cuStreamCreate(ctypes.byref(s2),1)
ev=ctypes.c_void_p(); cu.cuEventCreate(ctypes.byref(ev),2)
ck(cu.cuMemcpyDtoHAsync_v2(host,d,ctypes.c_size_t(N),s1),"copy"); cu.cuEventRecord(ev,s1)
time.sleep(0.02)
t0=time.time(); ck(cu.cuLaunchKernel(f,1,1,1,1,1,1,0,s2,None,None),"launch")
while True:
    r=cu.cuEventQuery(ev)
    if r!=600: break
t1=time.time()
def progress(): return int(np.count_nonzero(buf[::1<<16]))
a=progress(); t2=time.time(); time.sleep(0.5); b=progress()
print(f"event query says {r} {1e3*(t1-t0):.2f} ms after the launch; of {N>>16} sampled places written: {a} when counted {1e3*(t2-t1):.1f} ms after the error, {b} half a second later")
