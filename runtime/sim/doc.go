// Package sim answers what would happen if these workloads shared that device under this policy. It
// plays services and training jobs in virtual time on the device model of package device, with the
// policies of package sched: the same code that plans and gates in a node. A run is decided by its
// scenario and seed alone.
//
// What is modelled beside the device: the host time of launches and of waits, the time from a
// doorbell to the wake-up of who slept on it, and that a client learns the end of its work from a
// wait that returns. What is not: the processor (every program has its own), memory and copies.
package sim
