// Package device is the device model of docs/device-model.md in virtual time: which operation of which stream holds
// which part of a GPU, and when it is done. It is the second implementation of that page; the software GPU is the
// first, and a differential test holds them together.
//
// A Device has no goroutine, no clock and no randomness: the same calls give the same answers. A simulator asks Next
// for the time of the next event, calls Advance with the earlier of that and its own next event, and submits what
// follows:
//
//	d := device.New(gpu)
//	s := d.AddStream(d.AddContext(device.Own), 0, device.NonBlocking)
//	d.Kernel(s, tag, device.Kernel{Grid: 264, Block: 256, Time: 10_000})
//	for t, ok := d.Next(); ok; t, ok = d.Next() {
//		for _, c := range d.Advance(t) {
//			// c.Tag ran from c.Start to c.End
//		}
//	}
//
// Operations are kept in a pool and the results in one slice, so a Device that has seen its deepest queues allocates
// nothing more. Host functions are not modelled: a simulator has its own idea of the host.
package device
