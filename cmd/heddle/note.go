package main

import (
	"debug/elf"
	"encoding/binary"
	"io"
)

// The ELF note by which the interposer is known among libraries that all bear the driver's name.
const (
	noteOwner = "Heddle\x00"
	noteType  = 1
	// The interposer has a handful of notes; a file with more is not it.
	noteBytesMax = 4096
)

// interposerABI reads which version of the contract an interposer was built for. Not every library
// is one.
func interposerABI(file *elf.File) (abi uint32, found bool) {
	for _, p := range file.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(p.Open(), noteBytesMax))
		if err != nil {
			continue
		}
		if abi, found = findNote(data, file.ByteOrder); found {
			return abi, true
		}
	}
	return 0, false
}

// findNote looks for our note in a segment of notes. The file may be anybody's, so that every
// length is checked against what is left.
func findNote(data []byte, order binary.ByteOrder) (abi uint32, found bool) {
	const header, word = 12, 4
	for len(data) >= header {
		nameSize, descSize := uint64(order.Uint32(data)), uint64(order.Uint32(data[4:]))
		kind := order.Uint32(data[8:])
		name := data[header:]
		nameEnd, descEnd := align(nameSize), align(nameSize)+align(descSize)
		if descEnd > uint64(len(name)) {
			return 0, false
		}
		if kind == noteType && string(name[:nameSize]) == noteOwner && descSize >= word {
			return order.Uint32(name[nameEnd:]), true
		}
		data = name[descEnd:]
	}
	return 0, false
}

func align(n uint64) uint64 { return (n + 3) &^ 3 }

// isInterposer says whether a file is any build of the interposer.
func isInterposer(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	_, found := interposerABI(file)
	return found
}
