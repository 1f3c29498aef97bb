// Package wire encodes and decodes the messages of the attach protocol and moves them, with the
// descriptors that belong to them, over a unix stream socket.
//
// Messages from a client are hostile input: decoding gives a value that passed every check, or an
// error of kind Corrupt, after which the connection must be closed. docs/protocol.md tells who
// sends what when.
package wire

import "github.com/heddle-project/heddle/runtime/abi"

// Token lets a client prove after a restart of heddled who it was before. All zero is none.
type Token [abi.TokenBytes]byte

// UUID identifies a GPU or a MIG device.
type UUID [abi.UUIDBytes]byte

// Message is one of the messages below.
type Message interface {
	encode() any // the message as the C struct, its header still empty
	kind() uint16
	files() (least, most int) // how many descriptors travel with it
}

// Hello is a client's first message. It carries the client's segment.
type Hello struct {
	ABIVersion   uint32
	ABIOldest    uint32
	PID          uint32 // as the client sees itself
	PriorityHint int32  // abi.HintNone = none
	WeightHint   uint32 // 0 = none
	Token        Token
	Name         string
	Build        string
	Gang         string // empty = it is in none
	GangSize     uint32 // ranks; 0 without a gang
}

// Welcome answers Hello. It carries the verdict segment if Status is abi.StatusOK.
type Welcome struct {
	Status     uint32
	ABIVersion uint32
	Generation uint64
	ClientID   uint64
	Token      Token
	Text       string
}

// Device says that the client opened a device under a slot.
type Device struct {
	Slot uint32
	UUID UUID
}

// Peer adds or removes a client to which the receiver may have to yield. It carries that client's
// segment if Op is abi.PeerAdd.
type Peer struct {
	Op         uint32
	Slot       uint32
	DeviceSlot uint32
	PeerSlot   uint32
}

// Arena carries the arena of one class on one device.
type Arena struct {
	DeviceSlot uint32
	Priority   uint32
	Member     int32 // abi.MemberNone = the receiver only reads
}

// Evict is the last message to a client that is thrown out.
type Evict struct{ Text string }

// Bye is a client's last message.
type Bye struct{}

func (Hello) kind() uint16   { return abi.MsgHelloType }
func (Welcome) kind() uint16 { return abi.MsgWelcomeType }
func (Device) kind() uint16  { return abi.MsgDeviceType }
func (Peer) kind() uint16    { return abi.MsgPeerType }
func (Arena) kind() uint16   { return abi.MsgArenaType }
func (Evict) kind() uint16   { return abi.MsgEvictType }
func (Bye) kind() uint16     { return abi.MsgByeType }

func (Hello) files() (least, most int) { return 1, 1 }
func (m Welcome) files() (least, most int) {
	if m.Status == abi.StatusOK {
		return 1, 1
	}
	return 0, 0
}
func (Device) files() (least, most int) { return 0, 0 }
func (m Peer) files() (least, most int) {
	if m.Op == abi.PeerAdd {
		return 1, 1
	}
	return 0, 0
}
func (Arena) files() (least, most int) { return 1, 1 }
func (Evict) files() (least, most int) { return 0, 0 }
func (Bye) files() (least, most int)   { return 0, 0 }

func (m Hello) encode() any {
	c := abi.MsgHello{
		ABIVersion: m.ABIVersion, ABIOldest: m.ABIOldest, PID: m.PID,
		PriorityHint: m.PriorityHint, WeightHint: m.WeightHint, GangSize: m.GangSize, Token: m.Token,
	}
	putText(c.Name[:], m.Name)
	putText(c.Build[:], m.Build)
	putText(c.Gang[:], m.Gang)
	return &c
}

func (m Welcome) encode() any {
	c := abi.MsgWelcome{
		Status: m.Status, ABIVersion: m.ABIVersion, Generation: m.Generation,
		ClientID: m.ClientID, Token: m.Token,
	}
	putText(c.Text[:], m.Text)
	return &c
}

func (m Device) encode() any { return &abi.MsgDevice{Slot: m.Slot, UUID: m.UUID} }

func (m Peer) encode() any {
	return &abi.MsgPeer{Op: m.Op, Slot: m.Slot, DeviceSlot: m.DeviceSlot, PeerSlot: m.PeerSlot}
}

func (m Arena) encode() any {
	return &abi.MsgArena{DeviceSlot: m.DeviceSlot, Priority: m.Priority, Member: m.Member}
}

func (m Evict) encode() any {
	var c abi.MsgEvict
	putText(c.Text[:], m.Text)
	return &c
}

func (Bye) encode() any { return &abi.MsgHeader{} }
