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

static double median_ms(bool up, size_t bytes, void *host, CUdeviceptr device, CUstream stream) {
  CUevent start, end;
  CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
  CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  const int rounds = bytes > (1 << 24) ? 60 : 600, warm_up = 20;
  std::vector<float> times;
  for (int i = 0; i < warm_up + rounds; i++) {
    CHECK(cuEventRecord(start, stream));
    if (up) CHECK(cuMemcpyHtoDAsync(device, host, bytes, stream));
    else CHECK(cuMemcpyDtoHAsync(host, device, bytes, stream));
    CHECK(cuEventRecord(end, stream));
    CHECK(cuEventSynchronize(end));
    float ms;
    CHECK(cuEventElapsedTime(&ms, start, end));
    if (i >= warm_up) times.push_back(ms);
  }
  CHECK(cuEventDestroy(start));
  CHECK(cuEventDestroy(end));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int main(int count, char **words) {
  CUdevice number;
  CUcontext context;
  CUstream stream;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&number, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, number));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 1; i < count; i++) {
    size_t bytes = strtoull(words[i], nullptr, 10);
    void *host;
    CUdeviceptr device;
    CHECK(cuMemHostAlloc(&host, bytes, 0));
    memset(host, 1, bytes);
    CHECK(cuMemAlloc(&device, bytes));
    for (bool up : {true, false}) {
      double ms = median_ms(up, bytes, host, device, stream);
      printf("%s %zu %.4f\n", up ? "h2d" : "d2h", bytes, bytes / ms / 1e6);
    }
    CHECK(cuMemFree(device));
    CHECK(cuMemFreeHost(host));
  }
}
