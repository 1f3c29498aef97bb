package shm

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"unsafe"
)

// bytesAsWords is the address of 8-aligned bytes inside a segment, for loads by word.
func bytesAsWords(b []byte) unsafe.Pointer {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%8 != 0 || len(b)%8 != 0 {
		panic("shm: bytes are not whole words")
	}
	return p
}

// copyWords copies shared bytes by atomic loads of whole words into dst, which must not be shorter.
func copyWords(dst, shared []byte) {
	words := unsafe.Slice((*uint64)(bytesAsWords(shared)), len(shared)/8)
	for i := range words {
		binary.NativeEndian.PutUint64(dst[i*8:], atomic.LoadUint64(&words[i]))
	}
}

func joinClose(err error, m *mapping) error { return errors.Join(err, m.close()) }
