package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Header is the beginning of a segment, read once.
type Header struct {
	Magic      uint32
	ABIVersion uint32
	Size       uint64
	Features   uint64
	Generation uint64
}

func readHeader(h *abi.SegmentHeader) Header {
	return Header{
		Magic:      atomic.LoadUint32(&h.Magic),
		ABIVersion: atomic.LoadUint32(&h.ABIVersion),
		Size:       atomic.LoadUint64(&h.Size),
		Features:   atomic.LoadUint64(&h.Features),
		Generation: atomic.LoadUint64(&h.Generation),
	}
}

// writeHeader is for a segment that nobody else sees yet.
func writeHeader(h *abi.SegmentHeader, magic uint32, size int, generation uint64) {
	h.Magic = magic
	h.ABIVersion = abi.ABIVersion
	h.Size = uint64(size)
	h.Generation = generation
}

// check compares a header with what the segment must be. A writer of a later version may have
// grown the segment at its end; the part that this version knows is the same.
func (h Header) check(magic uint32, size, known int) error {
	if h.Magic != magic {
		return errdefs.Errorf(errdefs.Corrupt, "segment magic %#x, want %#x", h.Magic, magic)
	}
	if h.Size != uint64(size) {
		return errdefs.Errorf(errdefs.Corrupt, "segment says %d bytes and has %d", h.Size, size)
	}
	if h.ABIVersion < abi.ABIOldest {
		return errdefs.Errorf(errdefs.Unsupported, "segment of ABI version %d, oldest supported is %d", h.ABIVersion, abi.ABIOldest)
	}
	if size < known || h.ABIVersion == abi.ABIVersion && size != known {
		return errdefs.Errorf(errdefs.Corrupt, "segment of ABI version %d has %d bytes, want %d", h.ABIVersion, size, known)
	}
	return nil
}

// A segment is one of the struct types that lie in shared memory.
type segment interface {
	abi.ClientSegment | abi.VerdictSegment | abi.ArenaSegment
}

// view lays T over data. It panics if data is too short or not aligned: both are decided by this
// package, never by a peer.
func view[T segment](data []byte) *T {
	var t T
	if uintptr(len(data)) < unsafe.Sizeof(t) {
		panic("shm: memory shorter than its segment")
	}
	p := unsafe.Pointer(unsafe.SliceData(data))
	if uintptr(p)%unsafe.Alignof(uint64(0)) != 0 {
		panic("shm: memory not aligned")
	}
	return (*T)(p)
}
