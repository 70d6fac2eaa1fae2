// An independent measurement of pinned copies: the driver's own calls, with nothing of Pinlane in it.
//
//   nvcc -O2 -o independent independent.cu -lcuda
//   ./independent BYTES…      prints: direction, bytes, median GB/s
//
// Each time is that between two events around one asynchronous copy on an idle stream.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda.h>

#define CHECK(call)                                                     \
  do {                                                                  \
    CUresult result = (call);                                           \
    if (result != CUDA_SUCCESS) {                                       \
      fprintf(stderr, "%s: %d\n", #call, (int)result);                  \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

/// One size: memory, and the times of its copies, to the device and back.
struct Size {
  size_t bytes;
  void *host;
  CUdeviceptr device;
  std::vector<float> times[2];
};

static void copy(Size &size, int back, int count, CUevent start, CUevent end, CUstream stream) {
  // The first ones of a turn warm up.
  for (int i = -5; i < count; i++) {
    CHECK(cuEventRecord(start, stream));
    if (back) CHECK(cuMemcpyDtoHAsync(size.host, size.device, size.bytes, stream));
    else CHECK(cuMemcpyHtoDAsync(size.device, size.host, size.bytes, stream));
    CHECK(cuEventRecord(end, stream));
    CHECK(cuEventSynchronize(end));
    float ms;
    CHECK(cuEventElapsedTime(&ms, start, end));
    if (i >= 0) size.times[back].push_back(ms);
  }
}

int main(int count, char **words) {
  CUdevice number;
  CUcontext context;
  CUstream stream;
  CUevent start, end;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&number, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, number));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
  CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  std::vector<Size> sizes;
  for (int i = 1; i < count; i++) {
    Size size;
    size.bytes = strtoull(words[i], nullptr, 10);
    CHECK(cuMemHostAlloc(&size.host, size.bytes, 0));
    memset(size.host, 1, size.bytes);
    CHECK(cuMemAlloc(&size.device, size.bytes));
    sizes.push_back(size);
  }
  // Turn and turn about, so that a busy moment of the machine does not spoil one size.
  for (int turn = 0; turn < 4; turn++)
    for (Size &size : sizes)
      for (int back : {0, 1})
        copy(size, back, size.bytes > (1 << 24) ? 5 : 100, start, end, stream);
  for (Size &size : sizes)
    for (int back : {0, 1}) {
      std::vector<float> &times = size.times[back];
      std::sort(times.begin(), times.end());
      double ms = times[times.size() / 2];
      printf("%s %zu %.4f\n", back ? "d2h" : "h2d", size.bytes, size.bytes / ms / 1e6);
    }
}
