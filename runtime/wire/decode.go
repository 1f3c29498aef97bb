package wire

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// header checks the first abi.SizeofMsgHeader bytes of a message and returns its type and size.
func header(raw []byte) (kind uint16, size int, err error) {
	var h abi.MsgHeader
	if _, err := binary.Decode(raw, binary.NativeEndian, &h); err != nil {
		return 0, 0, errdefs.Errorf(errdefs.Corrupt, "message header of %d bytes", len(raw))
	}
	if h.Magic != abi.MsgMagic {
		return 0, 0, errdefs.Errorf(errdefs.Corrupt, "message magic %#x, want %#x", h.Magic, abi.MsgMagic)
	}
	if h.Size < abi.SizeofMsgHeader || h.Size > abi.MsgMax {
		return 0, 0, errdefs.Errorf(errdefs.Corrupt, "message of %d bytes, %d to %d make sense", h.Size, abi.SizeofMsgHeader, abi.MsgMax)
	}
	return h.Type, int(h.Size), nil
}

// Decode reads one whole message. A type that this version does not know gives nil and no error:
// the caller skips it. A body longer than this version knows is read as far as it is known; one
// shorter than the first version's is corrupt.
func Decode(raw []byte) (Message, error) {
	kind, size, err := header(raw)
	if err != nil {
		return nil, err
	}
	if size != len(raw) {
		return nil, errdefs.Errorf(errdefs.Corrupt, "message says %d bytes and has %d", size, len(raw))
	}
	switch kind {
	case abi.MsgHelloType:
		return decodeHello(raw)
	case abi.MsgWelcomeType:
		return decodeWelcome(raw)
	case abi.MsgDeviceType:
		return decodeDevice(raw)
	case abi.MsgPeerType:
		return decodePeer(raw)
	case abi.MsgArenaType:
		return decodeArena(raw)
	case abi.MsgEvictType:
		return decodeEvict(raw)
	case abi.MsgByeType:
		return Bye{}, nil
	default:
		return nil, nil
	}
}

func body(raw []byte, into any, name string) error {
	if n := binary.Size(into); len(raw) < n {
		return errdefs.Errorf(errdefs.Corrupt, "%s of %d bytes, has at least %d", name, len(raw), n)
	}
	if _, err := binary.Decode(raw, binary.NativeEndian, into); err != nil {
		return errdefs.Errorf(errdefs.Corrupt, "%s: %w", name, err)
	}
	return nil
}

func decodeHello(raw []byte) (Message, error) {
	var c abi.MsgHello
	if err := body(raw, &c, "HELLO"); err != nil {
		return nil, err
	}
	m := Hello{
		ABIVersion: c.ABIVersion, ABIOldest: c.ABIOldest, PID: c.PID,
		PriorityHint: c.PriorityHint, WeightHint: c.WeightHint, Token: c.Token,
	}
	if c.ABIOldest == 0 || c.ABIOldest > c.ABIVersion {
		return nil, errdefs.Errorf(errdefs.Corrupt, "HELLO: ABI versions %d to %d", c.ABIOldest, c.ABIVersion)
	}
	if c.PriorityHint < abi.HintNone || c.PriorityHint >= abi.ClassesMax {
		return nil, errdefs.Errorf(errdefs.Corrupt, "HELLO: priority hint %d", c.PriorityHint)
	}
	var err error
	if m.Name, err = text(c.Name[:], "HELLO: name"); err != nil {
		return nil, err
	}
	if m.Build, err = text(c.Build[:], "HELLO: build"); err != nil {
		return nil, err
	}
	if m.Gang, err = text(c.Gang[:], "HELLO: gang"); err != nil {
		return nil, err
	}
	if m.GangSize = c.GangSize; !goodGang(m.Gang, m.GangSize) {
		return nil, errdefs.Errorf(errdefs.Corrupt, "HELLO: gang %q of %d ranks", m.Gang, m.GangSize)
	}
	return m, nil
}

// goodGang accepts no gang, or a name of plain characters and a number of ranks: unlike the name of a
// workload, that of a gang decides who belongs together.
func goodGang(name string, size uint32) bool {
	return size <= abi.GangMax && (size == 0) == (name == "") && plainName(name)
}

// plainName reports whether a gang may have this name: letters and digits of ASCII, '.', '_' and '-'.
func plainName(name string) bool {
	return len(name) < abi.NameBytes && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	})
}

func decodeWelcome(raw []byte) (Message, error) {
	var c abi.MsgWelcome
	if err := body(raw, &c, "WELCOME"); err != nil {
		return nil, err
	}
	said, err := text(c.Text[:], "WELCOME: text")
	if err != nil {
		return nil, err
	}
	return Welcome{
		Status: c.Status, ABIVersion: c.ABIVersion, Generation: c.Generation,
		ClientID: c.ClientID, Token: c.Token, Text: said,
	}, nil
}

func decodeDevice(raw []byte) (Message, error) {
	var c abi.MsgDevice
	if err := body(raw, &c, "DEVICE"); err != nil {
		return nil, err
	}
	if c.Slot >= abi.DevicesMax {
		return nil, errdefs.Errorf(errdefs.Corrupt, "DEVICE: slot %d, there are %d", c.Slot, abi.DevicesMax)
	}
	if c.UUID == (UUID{}) {
		return nil, errdefs.Errorf(errdefs.Corrupt, "DEVICE: slot %d without a UUID", c.Slot)
	}
	return Device{Slot: c.Slot, UUID: c.UUID}, nil
}

func decodePeer(raw []byte) (Message, error) {
	var c abi.MsgPeer
	if err := body(raw, &c, "PEER"); err != nil {
		return nil, err
	}
	if c.Op != abi.PeerAdd && c.Op != abi.PeerRemove {
		return nil, errdefs.Errorf(errdefs.Corrupt, "PEER: operation %d", c.Op)
	}
	if c.Slot >= abi.PeersMax || c.DeviceSlot >= abi.DevicesMax || c.PeerSlot >= abi.DevicesMax {
		return nil, errdefs.Errorf(errdefs.Corrupt, "PEER: slot %d, device slots %d and %d", c.Slot, c.DeviceSlot, c.PeerSlot)
	}
	return Peer{Op: c.Op, Slot: c.Slot, DeviceSlot: c.DeviceSlot, PeerSlot: c.PeerSlot}, nil
}

func decodeArena(raw []byte) (Message, error) {
	var c abi.MsgArena
	if err := body(raw, &c, "ARENA"); err != nil {
		return nil, err
	}
	if c.DeviceSlot >= abi.DevicesMax || c.Priority >= abi.ClassesMax || c.Member < abi.MemberNone || c.Member >= abi.MembersMax {
		return nil, errdefs.Errorf(errdefs.Corrupt, "ARENA: device slot %d, class %d, member %d", c.DeviceSlot, c.Priority, c.Member)
	}
	return Arena{DeviceSlot: c.DeviceSlot, Priority: c.Priority, Member: c.Member}, nil
}

func decodeEvict(raw []byte) (Message, error) {
	var c abi.MsgEvict
	if err := body(raw, &c, "EVICT"); err != nil {
		return nil, err
	}
	said, err := text(c.Text[:], "EVICT: text")
	if err != nil {
		return nil, err
	}
	return Evict{Text: said}, nil
}

// text reads a NUL-padded field. The bytes after the first NUL must be zero, so that nothing travels
// unseen. Bytes that are not UTF-8 become question marks, for an honest client may have cut a name
// in the middle of a rune. Control characters stay: who shows the text must make it printable.
func text(field []byte, name string) (string, error) {
	said, rest, ended := bytes.Cut(field, []byte{0})
	if !ended {
		return "", errdefs.Errorf(errdefs.Corrupt, "%s does not end", name)
	}
	for _, b := range rest {
		if b != 0 {
			return "", errdefs.Errorf(errdefs.Corrupt, "%s has bytes behind its end", name)
		}
	}
	return strings.ToValidUTF8(string(said), "?"), nil
}
