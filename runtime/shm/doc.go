// Package shm makes, verifies and reads the shared-memory segments of the contract in package abi.
//
// A segment is a memfd. Its writer maps it, sets the seals and only then passes the descriptor on:
// after that nobody can resize it, so that no reader can be hit by SIGBUS, and nobody can get a
// writable mapping of it any more, not even by opening the descriptor again through /proc. The
// arena is the exception: its members share the right to write.
//
// What a client wrote is hostile. Views read every shared word once, by an atomic load, into a
// value that is checked and returned; nothing hands out a pointer into shared memory. A value that
// no honest client can have written gives an error of kind Corrupt, which ends that client and
// nothing else.
//
// The race detector does not look at mapped memory. The views therefore work on any aligned
// memory, the tests drive them over ordinary Go memory under -race and by fuzzing, and over real
// mappings only to show that sealing, mapping and waking work.
package shm
