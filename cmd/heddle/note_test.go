package main

import (
	"encoding/binary"
	"testing"
)

// aNote is one note as the linker writes it.
func aNote(owner string, kind uint32, desc ...byte) []byte {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, uint32(len(owner)))
	out = le.AppendUint32(out, uint32(len(desc)))
	out = le.AppendUint32(out, kind)
	out = append(out, owner...)
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	out = append(out, desc...)
	for len(out)%4 != 0 {
		out = append(out, 0)
	}
	return out
}

func TestFindNote(t *testing.T) {
	ours, others := aNote(noteOwner, noteType, 3, 0, 0, 0), aNote("GNU\x00", 3, 1, 2, 3, 4, 5)
	tests := []struct {
		name  string
		data  []byte
		abi   uint32
		found bool
	}{
		{"nothing", nil, 0, false},
		{"ours", ours, 3, true},
		{"ours behind another", append(append([]byte(nil), others...), ours...), 3, true},
		{"another alone", others, 0, false},
		{"another type of ours", aNote(noteOwner, 2, 3, 0, 0, 0), 0, false},
		{"cut short", ours[:len(ours)-1], 0, false},
		{"too small a value", aNote(noteOwner, noteType, 3), 0, false},
		{"a length beyond the end", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			abi, found := findNote(tt.data, binary.LittleEndian)
			if abi != tt.abi || found != tt.found {
				t.Errorf("%d, %v; want %d, %v", abi, found, tt.abi, tt.found)
			}
		})
	}
}

// FuzzFindNote looks for lengths that lead outside.
func FuzzFindNote(f *testing.F) {
	f.Add(aNote(noteOwner, noteType, 3, 0, 0, 0))
	f.Add(aNote("GNU\x00", 3, 1, 2, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		abi, found := findNote(data, binary.LittleEndian)
		if !found && abi != 0 {
			t.Errorf("version %d of a note that is not there", abi)
		}
	})
}
