// Package mig carries out plans of package partition, one device at a time: it drains, destroys and
// creates GPU instances through a gpu.MIG, in a transaction that ends with the device as wanted or as it
// was. A journal says what is about to be done before it is done, so that the next heddled can finish or
// undo what this one began; a device that can be brought to neither is left alone, with the reason.
//
// Instances that the journal does not know are foreign, and are never touched. The mode of a device is
// never changed here.
package mig
