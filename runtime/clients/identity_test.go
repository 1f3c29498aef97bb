package clients

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const someID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestContainerAndCgroupOfEveryEngine(t *testing.T) {
	short := someID[:12]
	tests := []struct {
		name, text, path, container string
	}{
		{"no container, unified hierarchy", "0::/user.slice/user-1000.slice/session-2.scope\n",
			"/user.slice/user-1000.slice/session-2.scope", ""},
		{"Docker, systemd driver", "0::/system.slice/docker-" + someID + ".scope\n",
			"/system.slice/docker-" + someID + ".scope", short},
		{"Docker, cgroupfs driver, version 1",
			"12:memory:/docker/" + someID + "\n3:cpu,cpuacct:/docker/" + someID + "\n0::/\n", "/docker/" + someID, short},
		{"containerd under Kubernetes",
			"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaa_bb.slice/cri-containerd-" + someID + ".scope\n",
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaa_bb.slice/cri-containerd-" + someID + ".scope", short},
		{"containerd under Kubernetes, cgroupfs driver", "0::/kubepods/besteffort/pod1234/" + someID + "\n",
			"/kubepods/besteffort/pod1234/" + someID, short},
		{"containerd with colons in the path",
			"0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" + someID + "\n",
			"/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" + someID, short},
		{"CRI-O", "0::/kubepods.slice/kubepods-pod1.slice/crio-" + someID + ".scope\n",
			"/kubepods.slice/kubepods-pod1.slice/crio-" + someID + ".scope", short},
		{"Podman", "0::/machine.slice/libpod-" + someID + ".scope/container\n",
			"/machine.slice/libpod-" + someID + ".scope/container", short},
		{"a container in a container is the inner one",
			"0::/docker/" + strings.Repeat("f", 64) + "/docker/" + someID + "\n",
			"/docker/" + strings.Repeat("f", 64) + "/docker/" + someID, short},
		{"too many digits are no id", "0::/x/" + someID + "0\n", "/x/" + someID + "0", ""},
		{"seen from inside a namespace", "0::/../../" + someID + "\n", "/../../" + someID, short},
		{"both hierarchies, the unified one empty", "0::/\n5:memory:/a/b\n6:pids:/a/b/c\n", "/a/b", ""},
		{"only other controllers", "6:pids:/a/b/c\n7:cpu:/a\n", "/a/b/c", ""},
		{"nothing", "", "", ""},
		{"noise", "::\n0:\nx\n0::relative\n", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := cgroupPath([]byte(tt.text)); got != tt.path {
				t.Errorf("path %q, want %q", got, tt.path)
			}
			if got := containerID([]byte(tt.text)); got != tt.container {
				t.Errorf("container %q, want %q", got, tt.container)
			}
		})
	}
}

func FuzzCgroup(f *testing.F) {
	f.Add([]byte("0::/system.slice/docker-" + someID + ".scope\n"))
	f.Add([]byte("12:memory:/docker/" + someID + "\n0::/\n"))
	f.Add([]byte(":::\n0::"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if id := containerID(text); id != "" && (len(id) != shortID || !strings.Contains(string(text), id)) {
			t.Fatalf("container %q", id)
		}
		if path := cgroupPath(text); path != "" && !strings.HasPrefix(path, "/") {
			t.Fatalf("path %q", path)
		}
	})
}

func TestStatusGroups(t *testing.T) {
	status := "Name:\tx\nGid:\t1\t1\t1\t1\nGroups:\t4 24 1000 \nNStgid:\t7\n"
	if diff := cmp.Diff([]int{4, 24, 1000}, statusGroups(status)); diff != "" {
		t.Error(diff)
	}
	if got := statusGroups("Name:\tx\nGroups:\t\n"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestStatusName(t *testing.T) {
	for status, want := range map[string]string{
		"Name:\ttrain net\nUmask:\t0022\n": "train net", "Name:\ta\tb\n": "a\tb", "": "",
	} {
		if got := statusName(status); got != want {
			t.Errorf("%q: %q, want %q", status, got, want)
		}
	}
}

func TestALongListOfGroupsIsReadWhole(t *testing.T) {
	want := make([]uint32, 3000)
	for i := range want {
		want[i] = 100000 + uint32(i)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, Groups: want}}
	if err := cmd.Start(); err != nil {
		t.Skipf("this user may not set groups: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	pidfd := os.NewFile(uintptr(fd), "pidfd")
	t.Cleanup(func() { _ = pidfd.Close() })
	got := lookUp(unix.Ucred{Pid: int32(cmd.Process.Pid), Uid: 65534, Gid: 65534}, pidfd).Groups
	if len(got) != len(want) || got[len(got)-1] != int(want[len(want)-1]) {
		t.Errorf("%d groups, the last is %v; want %d, %d", len(got), got[max(0, len(got)-1):], len(want), want[len(want)-1])
	}
}

func TestLookUpOfADeadProcessCountsForNothing(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	pidfd := os.NewFile(uintptr(fd), "pidfd")
	t.Cleanup(func() { _ = pidfd.Close() })
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	// Our own number stands for one that was used again.
	cred := unix.Ucred{Pid: int32(os.Getpid()), Uid: 5, Gid: 6}
	want := Identity{PID: os.Getpid(), UID: 5, GID: 6}
	if diff := cmp.Diff(want, lookUp(cred, pidfd)); diff != "" {
		t.Error(diff)
	}
}

func TestOwnTimeNamespaceIsNotForeign(t *testing.T) {
	if foreignTime("/proc/self") {
		t.Error("this process lives in another time namespace than itself")
	}
	if foreignTime(t.TempDir()) {
		t.Error("a process that cannot be seen counts as foreign")
	}
}

func TestAnotherTimeNamespaceIsForeign(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "unshare", "--time", "--monotonic", "1000", "sh", "-c", "echo $$; exec sleep 60")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no unshare: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Skipf("this user may not make time namespaces: %v", err)
	}
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) }) // unshare may have forked
	if !foreignTime("/proc/" + strconv.Itoa(pid)) {
		t.Error("a process whose clock is shifted counts as one of ours")
	}
}

func TestTokensAreBoundToIDAndUser(t *testing.T) {
	m := New(Options{Secret: secret})
	token := signToken(secret, 7, 1000)
	if id, ok := m.checkToken(token, 1000); !ok || id != 7 {
		t.Errorf("%d, %v", id, ok)
	}
	if _, ok := m.checkToken(token, 1001); ok {
		t.Error("another user may use the token")
	}
	other := token
	other[7]++
	if _, ok := m.checkToken(other, 1000); ok {
		t.Error("the id can be changed")
	}
	if _, ok := m.checkToken([16]byte{}, 1000); ok {
		t.Error("no token is a token")
	}
	if _, ok := New(Options{Secret: []byte("another")}).checkToken(token, 1000); ok {
		t.Error("another node's token is good")
	}
}

func TestSlotsGiveTheLowestFreePlace(t *testing.T) {
	var s slots
	for want := range 256 {
		n, ok := s.Free()
		if !ok || n != want {
			t.Fatalf("%d, %v, want %d", n, ok, want)
		}
		s.Add(n)
	}
	if _, ok := s.Free(); ok {
		t.Error("a full table has a place")
	}
	s.Remove(200)
	s.Remove(77)
	if n, ok := s.Free(); !ok || n != 77 {
		t.Errorf("%d, %v", n, ok)
	}
}
