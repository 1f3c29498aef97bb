package clients

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/wire"
)

// programVariable makes the test binary a program that attaches to the socket
// that it names.
const programVariable = "HEDDLE_TEST_ATTACH"

// endVariable says how that program ends, instead of being killed: see partings.
const endVariable = "HEDDLE_TEST_END"

// TestMain fails the package if a test left a segment open or mapped.
func TestMain(m *testing.M) {
	if path := os.Getenv(programVariable); path != "" {
		if err := beProgram(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || strings.Contains(string(maps), "memfd:heddle") || strings.Contains(string(maps), "memfd:test-client") {
		fmt.Fprintln(os.Stderr, "leaked mappings", err)
		for line := range strings.Lines(string(maps)) {
			if strings.Contains(line, "memfd:") {
				fmt.Fprint(os.Stderr, line)
			}
		}
		code = 99
	}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && (strings.Contains(target, "memfd:") || strings.Contains(target, "pidfd")) {
			fmt.Fprintf(os.Stderr, "leaked descriptor %s: %s\n", e.Name(), target)
			code = 99
		}
	}
	os.Exit(code)
}

// beProgram attaches with class 2, opens a device, hands its connection on to
// a child of its own, says the child's pid and waits to be killed. If its
// environment says so, it ends another way.
func beProgram(path string) error {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "program")
	header := binary.NativeEndian.AppendUint32(nil, abi.MagicClient)
	header = binary.NativeEndian.AppendUint32(header, abi.ABIVersion)
	header = binary.NativeEndian.AppendUint64(header, abi.SizeofClientSegment)
	if _, err := f.WriteAt(header, 0); err != nil {
		return err
	}
	if err := f.Truncate(abi.SizeofClientSegment); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, goodSeals); err != nil {
		return err
	}
	c := wire.NewConn(conn)
	h := wire.Hello{ABIVersion: 1, ABIOldest: 1, PriorityHint: 2, Name: "program"}
	if err := c.WriteMessage(h, f); err != nil {
		return err
	}
	if _, _, err := c.ReadMessage(); err != nil {
		return err
	}
	if err := c.WriteMessage(wire.Device{Slot: 0, UUID: gpu0}); err != nil {
		return err
	}
	if end, ok := partings()[os.Getenv(endVariable)]; ok {
		return end.act(c)
	}
	inherited, err := conn.File()
	if err != nil {
		return err
	}
	child := exec.Command("sleep", "60")
	child.ExtraFiles = []*os.File{inherited}
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, child.Process.Pid)
	time.Sleep(time.Minute)
	return nil
}

func TestAKilledProgramIsForgottenThoughAChildHoldsItsConnection(t *testing.T) {
	s := serve(t)
	low := attach(t, s.path, withPriority("low", 7))
	low.open(0, gpu0)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), programVariable+"="+s.path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(child, unix.SIGKILL)
		_ = cmd.Wait()
	})
	eventually(t, "low yields to the program", func() bool { return low.gate(0) == abi.GateYield })
	if list := s.List(); len(list) != 2 || list[1].PID != cmd.Process.Pid {
		t.Errorf("%+v", list)
	}
	killed := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "low is free", func() bool { return low.gate(0) == 0 })
	t.Logf("free %v after the kill", time.Since(killed))
	eventually(t, "it is not listed any more", func() bool { return s.Count() == 1 })
	if err := unix.Kill(child, 0); err != nil {
		t.Errorf("the child that holds the connection is gone: %v", err)
	}
}
