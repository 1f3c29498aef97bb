package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// smallDisk is a disk of 128 KiB in a mount namespace of its own, which is gone with the test.
type smallDisk struct {
	holder int    // a process of the namespace
	dir    string // where it is mounted there
}

func newSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	dir := shortDir(t)
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o size=128k,mode=0700 none "$0" && echo ready && read line`, dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no unshare: %v", err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if word, err := bufio.NewReader(out).ReadString('\n'); err != nil || word != "ready\n" {
		t.Skip("this user may not make mount namespaces and mount there")
	}
	return &smallDisk{cmd.Process.Pid, dir}
}

// use makes a command run where the disk is mounted.
func (d *smallDisk) use(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		t.Skip(err)
	}
	cmd.Args = append([]string{nsenter, "--mount", "--target", strconv.Itoa(d.holder), "--"}, cmd.Args...)
	cmd.Path = nsenter
	cmd.Args = append(cmd.Args, "--state-dir", d.dir) // the last one counts
}

// path is a file of the disk as this process reaches it.
func (d *smallDisk) path(name string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", d.holder), d.dir, name)
}

func (d *smallDisk) fill(t *testing.T) {
	t.Helper()
	f, err := os.Create(d.path("filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 512))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

func (d *smallDisk) makeRoom(t *testing.T) {
	t.Helper()
	if err := os.Remove(d.path("filler")); err != nil {
		t.Fatal(err)
	}
}

func TestAStartOnAFullDiskSaysSoAndLeavesNothing(t *testing.T) {
	disk := newSmallDisk(t)
	disk.fill(t)
	p := startProcess(t, func(cmd *exec.Cmd) { disk.use(t, cmd) })
	_ = bounded(t, p)
	text := p.stderr.String()
	if p.ProcessState.ExitCode() != exitFailure || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "heddled: open state: ") ||
		!strings.Contains(text, "no space left on device") || !strings.Contains(text, "make room in "+disk.dir) {
		t.Errorf("code %d: %q", p.ProcessState.ExitCode(), text)
	}
	entries, err := os.ReadDir(disk.path(""))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}

	disk.makeRoom(t)
	p = startProcess(t, func(cmd *exec.Cmd) { disk.use(t, cmd) })
	p.await(t)
	if err := errors.Join(p.Process.Signal(syscall.SIGTERM), bounded(t, p)); err != nil {
		t.Errorf("with room: %v\n%s", err, p.stderr)
	}
}

func TestADiskThatBecomesFullEndsNoService(t *testing.T) {
	disk := newSmallDisk(t)
	p := startProcess(t, func(cmd *exec.Cmd) { disk.use(t, cmd) })
	p.await(t)
	set := func() error {
		weight := uint32(7)
		// A name that takes more room than heddled's file has.
		_, err := p.conn.SetTenant(t.Context(), &heddlev1.SetTenantRequest{Tenant: strings.Repeat("t", 30000), Weight: &weight})
		return err
	}
	disk.fill(t)
	err := set()
	if err == nil || !strings.Contains(err.Error(), "no space left on device") || strings.Contains(err.Error(), "\n") {
		t.Errorf("what was set is not on disk: %v", err)
	}
	if _, err := p.conn.Status(t.Context()); err != nil {
		t.Errorf("no service any more: %v", err)
	}
	disk.makeRoom(t)
	if err := set(); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	if err := errors.Join(p.Process.Signal(syscall.SIGTERM), bounded(t, p)); err != nil {
		t.Errorf("%v\n%s", err, p.stderr)
	}
}
