/* Preloaded behind the library: captures that succeed, which the simulated libcuda lacks. */
int cuStreamBeginCapture_v2(void *stream, int mode) { return 0; }
int cuStreamEndCapture(void *stream, void **graph) { return 0; }
