package clients

import (
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

// Info is a client as the outside sees it.
type Info struct {
	Identity
	ID        uint64
	User      string
	Tenant    string
	Name      string
	Build     string
	Gang      string // whose rank it is, empty = none's
	GangSize  int
	Ranks     int // of its gang that are there
	Priority  int
	Asked     int // class that its hint asked for and its grant refused, else abi.HintNone
	Weight    int
	Objective Objective
	Attached  time.Time
	Devices   []DeviceInfo
	Evicted   string // why, empty = attached

	// What it published until this moment.
	Launches uint64
	Unnamed  uint64 // driver addresses that had no exported name
	Left     time.Time
}

// DeviceInfo is one device that a client has opened.
type DeviceInfo struct {
	Slot     int
	UUID     wire.UUID
	Gate     uint32 // abi.Gate bits
	Mediated bool

	// What the client published until this moment.
	Busy        bool // has outstanding work
	Held        bool // a caller waits at the gate
	MemoryBytes uint64
	MemoryPeak  uint64
	Holds       uint64
	Overruns    uint64
}

func (c *client) info() Info {
	info := Info{
		Identity:  c.identity,
		ID:        c.id,
		User:      c.grant.User,
		Tenant:    c.grant.Tenant,
		Name:      c.hello.Name,
		Build:     c.hello.Build,
		Priority:  c.priority,
		Asked:     abi.HintNone,
		Weight:    c.weight,
		Objective: c.objective,
		Attached:  c.attached,
	}
	if g := c.gang; g != nil {
		info.Gang, info.GangSize, info.Ranks = g.key.name, g.key.size, g.ranks()
	}
	if c.distrusted != nil {
		info.Evicted = c.distrusted.Error()
	}
	asked := int(c.hello.PriorityHint)
	if asked != abi.HintNone && asked < c.priority && c.grant.Override.Priority == nil {
		info.Asked = asked
	}
	for _, b := range c.bindings {
		if b != nil {
			info.Devices = append(info.Devices, DeviceInfo{
				Slot: b.slot, UUID: b.device.uuid, Gate: b.verdict.Gate, Mediated: b.mediated,
			})
		}
	}
	return info
}

const (
	// evictedMax and evictedFor bound the memory of evictions: long enough for
	// a person to look why a program is not listed any more.
	evictedMax = 64
	evictedFor = 5 * time.Minute
)

// remember keeps why a client was evicted.
func (m *Manager) remember(c *client, err error) {
	m.totals.evicted.Add(1)
	info := c.info()
	info.Evicted, info.Left = err.Error(), time.Now()
	if len(m.evicted) >= evictedMax {
		m.evicted = slices.Delete(m.evicted, 0, 1)
	}
	m.evicted = append(m.evicted, info)
}

// List returns all attached clients by id, and those evicted lately.
func (m *Manager) List() []Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Info, 0, len(m.clients)+len(m.evicted))
	for _, c := range m.clients {
		info := c.info()
		c.look(&info)
		list = append(list, info)
	}
	m.evicted = slices.DeleteFunc(m.evicted, func(i Info) bool { return time.Since(i.Left) > evictedFor })
	for _, e := range m.evicted {
		// Its id may be attached again by now.
		if _, back := m.clients[e.ID]; !back {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return compareIDs(a.ID, b.ID) })
	return list
}

func compareIDs(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// look fills in what the client does at this moment. What is corrupt stays blank: the next sample
// evicts its writer.
func (c *client) look(info *Info) {
	if c.distrusted != nil {
		return
	}
	if p, err := c.segment.Process(); err == nil {
		info.Launches, info.Unnamed = p.Launches, p.UnnamedAddresses
	}
	for i := range info.Devices {
		d := &info.Devices[i]
		now, err := c.segment.Device(d.Slot)
		if err != nil {
			continue
		}
		d.Busy, d.Held = now.BusyStreams > 0, now.HeldSince != 0
		d.MemoryBytes, d.MemoryPeak = now.MemoryBytes, now.MemoryPeakBytes
		d.Holds, d.Overruns = now.Holds, now.Overruns
	}
}

// Count is the number of attached clients.
func (m *Manager) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.clients)
}

// Totals count what happened since the Manager began.
type Totals struct{ Attached, Refused, Evicted uint64 }

// Totals returns the counts.
func (m *Manager) Totals() Totals {
	return Totals{m.totals.attached.Load(), m.totals.refused.Load(), m.totals.evicted.Load()}
}

// Sample is what one client published, read once and checked.
type Sample struct {
	ID      uint64
	PID     int
	Process shm.ProcessSnapshot
	Devices [abi.DevicesMax]shm.DeviceSnapshot
	Bound   [abi.DevicesMax]bool
	UUIDs   [abi.DevicesMax]wire.UUID
	Publish [abi.DevicesMax]bool // it keeps its busy words true
	LogLost uint64               // records that were overwritten before this sample
}

// Record is one log record of an interposer with whose it is.
type Record struct {
	shm.LogRecord
	Client uint64
	PID    int
	Tenant string
	Name   string
}

// Each reads the segments of all clients, one after the other, into s and
// calls f for each. A client whose data is corrupt is evicted instead. What its
// interposer logged is handed to record. Neither function may wait for anybody.
func (m *Manager) Each(s *Sample, f func(*Sample), record func(Record)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.clients {
		if c.distrusted != nil {
			continue
		}
		if err := m.sample(c, s, record); err != nil {
			m.detachLocked(c, err)
			continue
		}
		f(s)
	}
}

func (m *Manager) sample(c *client, s *Sample, record func(Record)) (err error) {
	s.ID, s.PID = c.id, c.identity.PID
	if s.Process, err = c.segment.Process(); err != nil {
		return err
	}
	for i := range s.Devices {
		b := c.bindings[i]
		s.Bound[i] = b != nil
		if b == nil {
			continue
		}
		s.UUIDs[i] = b.device.uuid
		s.Publish[i] = b.verdict.Gate&abi.GatePublish != 0
		if s.Devices[i], err = c.segment.Device(i); err != nil {
			return err
		}
	}
	s.LogLost, err = c.log.Read(func(r shm.LogRecord) {
		record(Record{LogRecord: r, Client: c.id, PID: c.identity.PID, Tenant: c.grant.Tenant, Name: c.hello.Name})
	})
	return err
}
