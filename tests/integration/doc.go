// Package integration runs heddled, real processes under the interposer, and
// the software GPU together on one node. The numbers in test names are the
// groups of traps that other systems fell into; docs/testing.md lists them.
package integration
