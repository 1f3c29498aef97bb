// Package abi is the Go mirror of the shared-memory contract and of the attach messages: constants
// and structs, no behaviour.
//
// The contract itself are the C headers in interpose/include/heddle. zabi.go is written from what
// the C compiler made of them; docs/protocol.md explains it.
package abi

//go:generate go run ../../cmd/genabi -root ../.. -unit heddle
