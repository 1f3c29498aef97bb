package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

func pair(t *testing.T) (a, b *Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		ends[i] = NewConn(c.(*net.UnixConn))
		t.Cleanup(func() { c.Close() })
	}
	return ends[0], ends[1]
}

// segment returns a memfd and a check that no other descriptor of it is open.
func segment(t *testing.T) (*os.File, func() bool) {
	t.Helper()
	fd, err := unix.MemfdCreate(t.Name(), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "segment")
	t.Cleanup(func() { f.Close() })
	return f, func() bool { return copies(t, f) == 1 }
}

// pipe returns the writing end of a non-blocking pipe, and the same check.
func pipe(t *testing.T) (*os.File, func() bool) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return w, func() bool { return copies(t, w) == 2 } // its reading end is the same inode
}

// copies counts the open descriptors of this process that lead to what f does.
func copies(t *testing.T, f *os.File) int {
	t.Helper()
	want, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if info, err := os.Stat("/proc/self/fd/" + e.Name()); err == nil && os.SameFile(info, want) {
			n++
		}
	}
	return n
}

func TestConnKeepsDescriptorsWithTheirMessages(t *testing.T) {
	a, b := pair(t)
	w, _ := segment(t)
	messages := []Message{
		Welcome{Status: abi.StatusOK, ClientID: 1}, Peer{Op: abi.PeerRemove, Slot: 1},
		Peer{Op: abi.PeerAdd, Slot: 2}, Arena{Member: 5}, Evict{Text: "enough"}, Bye{},
	}
	// All are in the socket before the first is read: a careless reader mixes them up.
	for _, m := range messages {
		var files []*os.File
		if least, _ := m.files(); least == 1 {
			files = append(files, w)
		}
		if err := a.WriteMessage(m, files...); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	for _, want := range messages {
		got, files, err := b.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
		if least, _ := want.files(); len(files) != least {
			t.Errorf("%T came with %d descriptors, want %d", want, len(files), least)
		}
		for _, f := range files {
			flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_GETFD, 0)
			if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
				t.Errorf("descriptor would survive an exec: flags %#x, %v", flags, errno)
			}
		}
		closeAll(files)
	}
	if _, _, err := b.ReadMessage(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last message: %v, want EOF", err)
	}
}

func TestConnReadsMessagesThatArriveByteByByte(t *testing.T) {
	a, b := pair(t)
	want := Hello{ABIVersion: 1, ABIOldest: 1, PriorityHint: abi.HintNone, Name: "slow"}
	raw := Encode(nil, want)
	w, _ := segment(t)
	oob := syscall.UnixRights(int(w.Fd()))
	go func() {
		for i := range raw {
			if i != 0 {
				oob = nil
			}
			if _, _, err := a.WriteMsgUnix(raw[i:i+1], oob, nil); err != nil {
				return
			}
		}
	}()
	got, files, err := b.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	closeAll(files)
	if diff := cmp.Diff(Message(want), got); diff != "" || len(files) != 1 {
		t.Errorf("%d descriptors (-want +got):\n%s", len(files), diff)
	}
}

func TestConnSkipsUnknownMessagesAndTheirDescriptors(t *testing.T) {
	a, b := pair(t)
	w, allClosed := segment(t)
	raw := Encode(nil, Evict{Text: "of the future"})
	raw[6], raw[7] = 0x7f, 0x7f
	if _, _, err := a.WriteMsgUnix(raw, syscall.UnixRights(int(w.Fd())), nil); err != nil {
		t.Fatal(err)
	}
	if err := a.WriteMessage(Bye{}); err != nil {
		t.Fatal(err)
	}
	m, files, err := b.ReadMessage()
	if err != nil || m != (Bye{}) || len(files) != 0 {
		t.Errorf("ReadMessage = %v, %d descriptors, %v; want BYE", m, len(files), err)
	}
	if !allClosed() {
		t.Error("the unknown message's descriptor is still open")
	}
}

func TestConnRefusesAndClosesWhatItGot(t *testing.T) {
	hello := Encode(nil, Hello{ABIVersion: 1, ABIOldest: 1})
	bye := Encode(nil, Bye{})
	tests := []struct {
		name  string
		parts [][]byte // written one by one
		fds   []int    // how many descriptors go with each part
	}{
		{"a HELLO without its segment", [][]byte{hello}, []int{0}},
		{"a HELLO with two segments", [][]byte{hello}, []int{2}},
		{"a BYE with a descriptor", [][]byte{bye}, []int{1}},
		{"a flood of descriptors", [][]byte{hello}, []int{200}},
		{"a descriptor in the middle of a body", [][]byte{hello[:40], hello[40:]}, []int{1, 1}},
		{"an end inside a header", [][]byte{hello[:7]}, []int{1}},
		{"an end inside a body", [][]byte{hello[:70]}, []int{1}},
		{"another protocol", [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}, []int{1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := pair(t)
			w, allClosed := segment(t)
			for i, part := range tt.parts {
				var fds []int
				for range tt.fds[i] {
					fds = append(fds, int(w.Fd()))
				}
				var oob []byte
				if len(fds) != 0 {
					oob = syscall.UnixRights(fds...)
				}
				if _, _, err := a.WriteMsgUnix(part, oob, nil); err != nil {
					t.Fatal(err)
				}
			}
			a.Close()
			m, files, err := b.ReadMessage()
			if m != nil || files != nil || !errors.Is(err, errdefs.ErrCorrupt) {
				t.Errorf("ReadMessage = %v, %v, %v; want corrupt", m, files, err)
			}
			if !allClosed() {
				t.Error("a descriptor of the refused message is still open")
			}
		})
	}
}

func TestConnTakesNoDescriptorsInSmallPieces(t *testing.T) {
	for name, start := range map[string]int{"of a header": 1, "of a body": abi.SizeofMsgHeader} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			f, allClosed := segment(t)
			raw := Encode(nil, Hello{ABIVersion: 1, ABIOldest: 1})
			if _, err := a.Write(raw[:start]); err != nil {
				t.Fatal(err)
			}
			rights := syscall.UnixRights(int(f.Fd()), int(f.Fd()))
			for i := range 3 {
				if _, _, err := a.WriteMsgUnix(raw[start+i:start+i+1], rights, nil); err != nil {
					t.Fatal(err)
				}
			}
			// The sender keeps the connection open and says nothing more.
			if err := b.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			m, files, err := b.ReadMessage()
			if m != nil || files != nil || !errors.Is(err, errdefs.ErrCorrupt) {
				t.Errorf("ReadMessage = %v, %v, %v; want corrupt", m, files, err)
			}
			if !allClosed() {
				t.Error("a descriptor is still open")
			}
		})
	}
}

func TestConnClosesWhatIsNoMemory(t *testing.T) {
	a, b := pair(t)
	w, allClosed := pipe(t)
	f, _ := segment(t)
	before := copies(t, f)
	raw := Encode(nil, Hello{ABIVersion: 1, ABIOldest: 1})
	if err := syscall.SetNonblock(int(w.Fd()), true); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.WriteMsgUnix(raw, syscall.UnixRights(int(f.Fd()), int(w.Fd())), nil); err != nil {
		t.Fatal(err)
	}
	m, files, err := b.ReadMessage()
	if m != nil || files != nil || !errors.Is(err, errdefs.ErrCorrupt) || !strings.Contains(err.Error(), "memfd") {
		t.Errorf("ReadMessage = %v, %v, %v; want corrupt", m, files, err)
	}
	if !allClosed() || copies(t, f) != before {
		t.Error("a descriptor is still open")
	}
}

func TestWriteMessageRefusesTheWrongNumberOfDescriptors(t *testing.T) {
	a, _ := pair(t)
	if err := a.WriteMessage(Welcome{Status: abi.StatusOK}); !errors.Is(err, errdefs.ErrInvalid) {
		t.Errorf("WELCOME without a verdict: %v", err)
	}
	w, _ := segment(t)
	if err := a.WriteMessage(Welcome{Status: abi.StatusRefused, Text: strings.Repeat("no ", 100)}, w); !errors.Is(err, errdefs.ErrInvalid) {
		t.Errorf("a refusal with a descriptor: %v", err)
	}
}
