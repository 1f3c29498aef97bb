package daemon

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/gpu/gputest"
	"github.com/heddle-project/heddle/runtime/store"
	"github.com/heddle-project/heddle/runtime/wire"
)

// load makes the configuration of a heddled that lives in dir.
func load(t *testing.T, dir, more string) *config.Loaded {
	t.Helper()
	path := filepath.Join(dir, "heddled.toml")
	text := "version = 1\n" +
		"api_socket = \"" + dir + "/api.sock\"\n" +
		"attach_dir = \"" + dir + "/attach\"\n" +
		"state_dir = \"" + dir + "/state\"\n" + more
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(config.Source{File: path})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func options(l *config.Loaded) Options {
	return Options{
		Config: l, Version: "test", Log: slog.New(slog.DiscardHandler),
		OpenDriver: func(string) (gpu.Driver, error) { return gputest.New(gputest.H100(0)), nil },
	}
}

// running is a Daemon that serves.
type running struct {
	*api.Conn
	d    *Daemon
	stop func() error
}

// start runs a Daemon until the test ends, and waits until its API answers.
func start(t *testing.T, opt Options) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	d := New(opt)
	go func() { done <- d.Run(ctx) }()
	conn := api.NewConn(opt.Config.APISocket)
	r := &running{Conn: conn, d: d}
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		conn.Close()
	})
	eventually(t, "the API answers", func() bool {
		select {
		case err := <-done:
			done <- err
			t.Fatalf("heddled ended: %v", err)
		default:
		}
		_, err := conn.Status(t.Context())
		return err == nil
	})
	return r
}

// shortDir is a folder whose name leaves room for a socket: a unix socket's path
// has 107 bytes, and t.TempDir spends many of them on the name of the test.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "heddle")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// attach makes this process a client, as the interposer would.
func attach(t *testing.T, l *config.Loaded, hello wire.Hello) (*wire.Conn, wire.Welcome) {
	t.Helper()
	segment, _ := clientSegment(t)
	return attachWith(t, l, hello, segment)
}

func attachWith(t *testing.T, l *config.Loaded, hello wire.Hello, segment *os.File) (*wire.Conn, wire.Welcome) {
	t.Helper()
	hello.ABIVersion, hello.ABIOldest = abi.ABIVersion, abi.ABIOldest
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(l.AttachDir, config.AttachSocket), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := wire.NewConn(conn)
	if err := c.WriteMessage(hello, segment); err != nil {
		t.Fatal(err)
	}
	message, files, err := c.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		_ = f.Close()
	}
	return c, message.(wire.Welcome)
}

// clientSegment is an honest client's: header, sealed. The second result is its
// memory, for tests that write there.
func clientSegment(t *testing.T) (*os.File, []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "test")
	t.Cleanup(func() { _ = f.Close() })
	if err := f.Truncate(abi.SizeofClientSegment); err != nil {
		t.Fatal(err)
	}
	data, err := unix.Mmap(fd, 0, abi.SizeofClientSegment, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(data) })
	binary.NativeEndian.PutUint32(data, abi.MagicClient)
	binary.NativeEndian.PutUint32(data[4:], abi.ABIVersion)
	binary.NativeEndian.PutUint64(data[8:], abi.SizeofClientSegment)
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return f, data
}

func TestAClientIsSeenThroughTheAPI(t *testing.T) {
	l := load(t, shortDir(t), "")
	r := start(t, options(l))
	conn, welcome := attach(t, l, wire.Hello{PriorityHint: abi.ClassLow, Name: "train"})
	if welcome.Status != abi.StatusOK || welcome.Generation != 1 {
		t.Fatalf("%+v", welcome)
	}
	uuid := gputest.H100(0).UUID
	if err := conn.WriteMessage(wire.Device{Slot: 0, UUID: wire.UUID(uuid)}); err != nil {
		t.Fatal(err)
	}
	var client *heddlev1.Client
	eventually(t, "the client has its device", func() bool {
		clients, err := r.Clients(t.Context(), nil)
		if err != nil || len(clients) != 1 {
			t.Fatalf("%v, %v", clients, err)
		}
		client = clients[0]
		return len(client.GetDevices()) == 1
	})
	if client.GetName() != "train" || client.GetPriority() != abi.ClassLow || int(client.GetPid()) != os.Getpid() ||
		client.GetState() != heddlev1.ClientState_CLIENT_STATE_ATTACHED || client.GetTenant() == "" {
		t.Errorf("%v", client)
	}
	if d := client.GetDevices()[0]; d.GetUuid() != uuid.GPUString() || d.GetGate() != "open" {
		t.Errorf("%v", d)
	}
	devices, err := r.Devices(t.Context())
	if err != nil || len(devices) != 1 || devices[0].GetClients() != 1 || devices[0].GetMigMode() != "disabled" {
		t.Errorf("%v, %v", devices, err)
	}
	status, err := r.Status(t.Context())
	if err != nil || status.GetClients() != 1 || status.GetDevices() != 1 || status.GetVersion() != "test" {
		t.Errorf("%v, %v", status, err)
	}
	_ = conn.Close()
	eventually(t, "the client is gone", func() bool {
		clients, err := r.Clients(t.Context(), nil)
		return err == nil && len(clients) == 0
	})
}

func TestWhatWasSetSurvivesARestart(t *testing.T) {
	l := load(t, shortDir(t), "")
	first := start(t, options(l))
	_, welcome := attach(t, l, wire.Hello{PriorityHint: abi.HintNone})
	high, weight := uint32(abi.ClassHigh), uint32(300)
	if _, err := first.SetClient(t.Context(), &heddlev1.SetClientRequest{
		Target: &heddlev1.SetClientRequest_Pid{Pid: uint32(os.Getpid())}, Priority: &high, Slo: new("2.0%"),
	}); err != nil {
		t.Fatal(err)
	}
	clients, err := first.Clients(t.Context(), nil)
	if err != nil || len(clients) != 1 {
		t.Fatalf("%v, %v", clients, err)
	}
	tenant := clients[0].GetTenant()
	if n, err := first.SetTenant(t.Context(), &heddlev1.SetTenantRequest{Tenant: tenant, Weight: &weight, Slo: new("20ms")}); err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}

	second := start(t, options(l))
	_, back := attach(t, l, wire.Hello{PriorityHint: abi.HintNone, Token: welcome.Token})
	if back.ClientID != welcome.ClientID || back.Generation != welcome.Generation+1 {
		t.Errorf("%+v, was %+v", back, welcome)
	}
	_, stranger := attach(t, l, wire.Hello{PriorityHint: abi.HintNone})
	clients, err = second.Clients(t.Context(), nil)
	if err != nil || len(clients) != 2 || stranger.ClientID == back.ClientID {
		t.Fatalf("%v, %v", clients, err)
	}
	for _, c := range clients {
		want, slo := uint32(abi.ClassNormal), "20ms"
		if c.GetId() == back.ClientID {
			want, slo = abi.ClassHigh, "2%"
		}
		if c.GetPriority() != want || c.GetWeight() != 300 || c.GetSlo() != slo {
			t.Errorf("client %d: class %d weight %d objective %q", c.GetId(), c.GetPriority(), c.GetWeight(), c.GetSlo())
		}
	}
}

func TestRulesDecideWhoMayAttach(t *testing.T) {
	l := load(t, shortDir(t), "[[rule]]\nexecutable = \"**/daemon.test\"\nrefuse = true\n")
	start(t, options(l))
	_, welcome := attach(t, l, wire.Hello{PriorityHint: abi.HintNone})
	if welcome.Status != abi.StatusRefused || !strings.Contains(welcome.Text, "file:5") {
		t.Errorf("%+v", welcome)
	}
}

func TestRunSaysWhyItCannotStart(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string, opt *Options)
		kind    errdefs.Kind
		words   []string
	}{
		{"a second instance", func(t *testing.T, _ string, opt *Options) {
			t.Helper()
			start(t, *opt)
		}, errdefs.Busy, []string{"open state", "another heddled", "state_dir"}},
		{"a second instance with its own state on the same sockets", func(t *testing.T, dir string, opt *Options) {
			t.Helper()
			start(t, *opt)
			other := load(t, shortDir(t), "")
			other.APISocket, other.AttachDir = dir+"/api.sock", dir+"/attach"
			opt.Config = other
		}, errdefs.Busy, []string{"open attach socket", "another heddled"}},
		{"no NVML", func(_ *testing.T, dir string, opt *Options) {
			opt.Config.NVMLLibrary = dir + "/libnvidia-ml.so.1"
			opt.OpenDriver = nil
		}, errdefs.Unavailable, []string{"find devices", "libnvidia-ml.so.1", "driver"}},
		{"a file where the state should be", func(t *testing.T, dir string, _ *Options) {
			t.Helper()
			if err := os.WriteFile(dir+"/state", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, errdefs.Exists, []string{"open state", "/state is in the way", "state_dir"}},
		{"damaged state", func(t *testing.T, dir string, _ *Options) {
			t.Helper()
			err := errors.Join(os.Mkdir(dir+"/state", 0o700), os.WriteFile(dir+"/state/heddled.db", []byte("x"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		}, errdefs.Corrupt, []string{"open state", "heddled.db", "move the file away"}},
		{"something else in the place of a socket", func(t *testing.T, dir string, _ *Options) {
			t.Helper()
			if err := os.WriteFile(dir+"/api.sock", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, errdefs.Exists, []string{"open API socket", "/api.sock", "remove it"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := shortDir(t)
			opt := options(load(t, dir, ""))
			tt.prepare(t, dir, &opt)
			err := New(opt).Run(t.Context())
			if err == nil {
				t.Fatal("it ran, and stopped without an error")
			}
			if got := errdefs.KindOf(err); got != tt.kind {
				t.Errorf("kind %v, want %v", got, tt.kind)
			}
			for _, w := range tt.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			// What never served has used up no generation.
			if s, err := store.Open(opt.Config.StateDir); err == nil {
				if s.Generation() != 0 {
					t.Errorf("it began generation %d", s.Generation())
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestAStartAfterAKillFindsItsSocketsInTheWay(t *testing.T) {
	l := load(t, shortDir(t), "")
	for _, path := range []string{l.APISocket, filepath.Join(l.AttachDir, config.AttachSocket)} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		listener.SetUnlinkOnClose(false) // as a kill leaves it
		_ = listener.Close()
	}
	r := start(t, options(l))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.APISocket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket was left behind: %v", err)
	}
}

func TestMetricsAndModes(t *testing.T) {
	old := unix.Umask(0o077)
	t.Cleanup(func() { unix.Umask(old) })
	l := load(t, shortDir(t), "")
	start(t, options(l))
	attach(t, l, wire.Hello{PriorityHint: abi.HintNone, Name: "train"})
	web := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.APISocket)
	}}}
	t.Cleanup(web.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"heddle_clients 1\n", `heddle_client_launches_total{client="1",name="train",`, "go_goroutines"} {
		if !strings.Contains(string(body), want) {
			t.Errorf("no %q in the metrics", want)
		}
	}
	for path, mode := range map[string]os.FileMode{
		l.AttachDir: 0o755, filepath.Join(l.AttachDir, config.AttachSocket): 0o666, l.APISocket: 0o666, l.StateDir: 0o700,
	} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode().Perm(), err, mode)
		}
	}
}

func TestWhatAClientPublishesBecomesRates(t *testing.T) {
	l := load(t, shortDir(t), "")
	fake := gputest.New(gputest.H100(0))
	uuid := gputest.H100(0).UUID
	fake.SetProcessShares(uuid, []gpu.ProcessShare{{PID: os.Getpid(), Share: 0.75}})
	opt := options(l)
	var log syncBuffer
	opt.Log = slog.New(slog.NewTextHandler(&log, nil))
	opt.OpenDriver = func(string) (gpu.Driver, error) { return fake, nil }
	opt.SampleEvery = time.Hour
	r := start(t, opt)
	segment, data := clientSegment(t)
	conn, _ := attachWith(t, l, wire.Hello{PriorityHint: abi.HintNone, Name: "x"}, segment)
	if err := conn.WriteMessage(wire.Device{Slot: 0, UUID: wire.UUID(uuid)}); err != nil {
		t.Fatal(err)
	}
	only := func() *heddlev1.Client {
		clients, err := r.Clients(t.Context(), nil)
		if err != nil || len(clients) != 1 {
			t.Fatalf("%v, %v", clients, err)
		}
		return clients[0]
	}
	eventually(t, "the client has its device", func() bool { return len(only().GetDevices()) == 1 })

	now := time.Now()
	sampler := newSampler(r.d)
	publish := func(after time.Duration, launches, held, memory uint64, text string) {
		var seg abi.ClientSegment
		seg.Header.Magic, seg.Header.ABIVersion, seg.Header.Size = abi.MagicClient, abi.ABIVersion, abi.SizeofClientSegment
		seg.Threads[3].Launches = launches
		seg.Devices[0].UUID = uuid
		seg.Devices[0].HeldNs = held
		seg.Devices[0].MemoryBytes = memory
		if text != "" {
			seg.Process.LogHead = 1
			seg.Log[0].Sequence, seg.Log[0].Level = 1, abi.LogWarn
			seg.Log[0].Length = uint32(copy(seg.Log[0].Text[:], text))
		}
		if _, err := binary.Encode(data, binary.NativeEndian, &seg); err != nil {
			t.Fatal(err)
		}
		sampler.round(t.Context(), now.Add(after))
	}
	publish(0, 100, 0, 64, "")
	publish(2*time.Second, 500, uint64(time.Second), 128, "no room")
	c := only()
	if c.GetLaunches() != 500 || c.GetLaunchesPerSecond() != 200 {
		t.Errorf("%d launches, %v a second", c.GetLaunches(), c.GetLaunchesPerSecond())
	}
	d := c.GetDevices()[0]
	if d.GetHeldShare() != 0.5 || d.GetMemoryBytes() != 128 || d.BusyShare == nil || d.GetBusyShare() != 0.75 {
		t.Errorf("%v", d)
	}
	for _, want := range []string{"level=WARN", `text="no room"`, "client=" + strconv.FormatUint(c.GetId(), 10), "pid=", "name=x"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log: %s", want, log.String())
		}
	}
	fake.Fail(errdefs.Errorf(errdefs.Unavailable, "the driver is being replaced"))
	publish(3*time.Second, 500, uint64(time.Second), 128, "no room")
	if d := only().GetDevices()[0]; d.BusyShare != nil || d.GetHeldShare() != 0 {
		t.Errorf("without a driver: %v", d)
	}
}

// syncBuffer is a log that a test reads while heddled writes it.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestAStopGivesEverythingBack(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	l := load(t, shortDir(t), "")
	warm := start(t, options(l)) // the poller and the like are made once
	if err := warm.stop(); err != nil {
		t.Fatal(err)
	}
	warm.Close()
	before := count()
	r := start(t, options(l))
	conn, _ := attach(t, l, wire.Hello{PriorityHint: abi.HintNone})
	if err := conn.WriteMessage(wire.Device{Slot: 0, UUID: wire.UUID{7}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client has its device", func() bool {
		clients, err := r.Clients(t.Context(), nil)
		return err == nil && len(clients) == 1 && len(clients[0].GetDevices()) == 1
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	// The client's own ends: its connection and its segment.
	eventually(t, "descriptors are closed", func() bool { return count() <= before+2 })
}
