// Package profiles keeps what is known of the kernels of a workload: how long they take, how long
// the device is idle after them, and what they ask of it. Policies and the gate read it, measured
// launches write it, and it outlives the processes that taught it.
//
// # Identity
//
// A kernel is its name and the shape of its launch, as a 64-bit key ([LaunchKey]) that the
// interposer computes in the same way. A [Profile] holds the kernels of one workload on one model of
// device: the same code takes another time elsewhere. [Identity] says which workload a process is.
//
// # Learning
//
// A kernel is measured at each launch until its mean is known, then now and then
// ([Profile.MeasureEvery]). A launch that ran beside others says how much it was slowed down, not
// how long it takes: such a one teaches only what nothing better is known of. When a kernel takes
// another time for good, or unknown kernels appear, measuring begins again.
//
// Everything here is a pure function of its arguments: times come in with the samples, nothing reads
// a clock, and the same samples in the same order give the same profile. No type may be used by two
// goroutines at a time.
package profiles
