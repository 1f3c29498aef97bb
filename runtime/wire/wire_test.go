package wire

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// saved are the messages of tests/testdata/abi-v1, as its write.c filled them.
var saved = map[string]Message{
	"hello": Hello{
		ABIVersion: 1, ABIOldest: 1, PID: 4242, PriorityHint: abi.ClassLow, WeightHint: 300,
		Token: filled[Token](0xa1), Name: "training", Build: "v1.0.0", Gang: "job-7", GangSize: 4,
	},
	"welcome": Welcome{
		Status: abi.StatusFull, ABIVersion: 1, Generation: 7, ClientID: 99,
		Token: filled[Token](0xb2), Text: "too many clients",
	},
	"device":        Device{Slot: 3, UUID: filled[UUID](0xc3)},
	"peer":          Peer{Op: abi.PeerAdd, Slot: 200, DeviceSlot: 3, PeerSlot: 4},
	"arena-message": Arena{DeviceSlot: 3, Priority: abi.ClassIdle, Member: abi.MemberNone},
	"evict":         Evict{Text: "segment header changed"},
	"bye":           Bye{},
}

func filled[T ~[16]byte](b byte) (t T) {
	for i := range t {
		t[i] = b
	}
	return t
}

func readSaved(tb testing.TB, name string) []byte {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "tests", "testdata", "abi-v1", name+".bin"))
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

func TestMessagesOfVersion1AreStillUnderstood(t *testing.T) {
	for name, want := range saved {
		t.Run(name, func(t *testing.T) {
			raw := readSaved(t, name)
			got, err := Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(raw, Encode(nil, want)); diff != "" {
				t.Errorf("encoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeReadsLaterMessagesAsFarAsItKnows(t *testing.T) {
	raw := append(readSaved(t, "peer"), 1, 2, 3, 4)
	binary.NativeEndian.PutUint32(raw[8:], uint32(len(raw)))
	got, err := Decode(raw)
	if diff := cmp.Diff(saved["peer"], got); err != nil || diff != "" {
		t.Errorf("a body that grew: %v (-want +got):\n%s", err, diff)
	}
	raw = readSaved(t, "bye")
	binary.NativeEndian.PutUint16(raw[6:], 999)
	if got, err := Decode(raw); got != nil || err != nil {
		t.Errorf("an unknown type: %v, %v; want to skip it", got, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	put32 := func(offset int, v uint32) func([]byte) []byte {
		return func(raw []byte) []byte {
			binary.NativeEndian.PutUint32(raw[offset:], v)
			return raw
		}
	}
	const none = ^uint32(0)
	tests := []struct {
		name  string
		saved string
		edit  func([]byte) []byte
	}{
		{"nothing", "bye", func([]byte) []byte { return nil }},
		{"half a header", "bye", func(raw []byte) []byte { return raw[:8] }},
		{"another protocol", "bye", put32(0, 0x20544547)},
		{"a size below the header's", "bye", put32(8, 15)},
		// As long as it says, so that nothing but the bound refuses it.
		{"a size beyond all bounds", "bye", func(raw []byte) []byte {
			return put32(8, abi.MsgMax+1)(append(raw, make([]byte, abi.MsgMax+1-len(raw))...))
		}},
		{"a size that is not the message's", "bye", put32(8, 17)},
		{"a body cut off", "peer", func(raw []byte) []byte { return put32(8, 28)(raw[:28]) }},
		{"versions in the wrong order", "hello", put32(20, 2)},
		{"an oldest version of zero", "hello", put32(20, 0)},
		{"a class that is none", "hello", put32(28, 10)},
		{"a class below none", "hello", put32(28, none-1)},
		{"a name without an end", "hello", func(raw []byte) []byte { copy(raw[56:], strings.Repeat("x", 64)); return raw }},
		{"a gang without a size", "hello", put32(36, 0)},
		{"a gang of more ranks than there can be", "hello", put32(36, 1025)},
		{"a size without a gang", "hello", func(raw []byte) []byte { clear(raw[184:]); return raw }},
		{"a gang of another name than a plain one", "hello", func(raw []byte) []byte { raw[184] = '/'; return raw }},
		{"a gang whose name is no text", "hello", func(raw []byte) []byte { raw[184] = 0xff; return raw }},
		{"a gang whose name does not end", "hello", func(raw []byte) []byte { copy(raw[184:], strings.Repeat("x", 64)); return raw }},
		{"bytes hidden behind the name of a gang", "hello", func(raw []byte) []byte { raw[184+40] = 'x'; return raw }},
		{"a HELLO without its gang", "hello", func(raw []byte) []byte { return put32(8, 184)(raw[:184]) }},
		{"bytes hidden behind a name", "hello", func(raw []byte) []byte { raw[56+40] = 'x'; return raw }},
		{"a slot that is none", "device", put32(16, abi.DevicesMax)},
		{"a device without a UUID", "device", func(raw []byte) []byte { clear(raw[24:]); return raw }},
		{"an operation that is none", "peer", put32(16, 2)},
		{"a peer slot beyond the last", "peer", put32(20, abi.PeersMax)},
		{"a peer on a device slot that is none", "peer", put32(24, abi.DevicesMax)},
		{"a peer's own slot that is none", "peer", put32(28, abi.DevicesMax)},
		{"an arena on a device slot that is none", "arena-message", put32(16, abi.DevicesMax)},
		{"an arena of a class that is none", "arena-message", put32(20, abi.ClassesMax)},
		{"a member beyond the last", "arena-message", put32(24, abi.MembersMax)},
		{"a member below none", "arena-message", put32(24, none-1)},
		{"a reason without an end", "evict", func(raw []byte) []byte { copy(raw[16:], strings.Repeat("x", 160)); return raw }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Decode(tt.edit(readSaved(t, tt.saved)))
			if m != nil || !errors.Is(err, errdefs.ErrCorrupt) {
				t.Errorf("Decode = %+v, %v; want corrupt", m, err)
			}
		})
	}
}

func TestEncodeCutsTextsAtARune(t *testing.T) {
	long := strings.Repeat("x", abi.NameBytes-2) + "é"
	m, err := Decode(Encode(nil, Hello{ABIVersion: 1, ABIOldest: 1, Name: long}))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.(Hello).Name; got != long[:abi.NameBytes-2] || !utf8.ValidString(got) {
		t.Errorf("name of %d bytes arrived as %q", len(long), got)
	}
}

func TestDecodeMendsANameThatWasCutInARune(t *testing.T) {
	raw := readSaved(t, "hello")
	clear(raw[56 : 56+abi.NameBytes])
	copy(raw[56:], "caf\xc3")
	m, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.(Hello).Name; got != "caf?" {
		t.Errorf("name = %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	for name := range saved {
		f.Add(readSaved(f, name))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Decode(raw)
		if err != nil {
			if m != nil || !errors.Is(err, errdefs.ErrCorrupt) {
				t.Fatalf("Decode = %+v, %v; want corrupt and no value", m, err)
			}
			return
		}
		if m == nil {
			return
		}
		// What was understood means the same after being sent on.
		again, err := Decode(Encode(nil, m))
		if diff := cmp.Diff(m, again); err != nil || diff != "" {
			t.Fatalf("sent on: %v (-first +second):\n%s", err, diff)
		}
	})
}
