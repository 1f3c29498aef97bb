// Package foreign runs clients that we did not write against the software GPU: monitors over its NVML
// (gpustat, nvitop, by way of nvidia-ml-py) and a CUDA client over its driver (cuda-bindings), bare and
// through the interposer. They come from Python's package index; where that is out of reach the tests are
// skipped and say so.
package foreign
