package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

const (
	uuidA   = "GPU-3f2a0d5c-9b1e-4a7d-8c6f-0123456789ab"
	uuidB   = "GPU-77e1c0de-1111-4222-9333-abcdefabcdef"
	uuidMIG = "MIG-5a5a5a5a-0000-4000-8000-00000000000a"
)

// fakeDaemon is the API of a heddled whose node and clients a test chooses.
type fakeDaemon struct {
	socket string
	status *heddlev1.StatusResponse
	stop   func() // politely
	cut    func() // as a kill does: every connection breaks

	mu      sync.Mutex
	devices []*heddlev1.Device
	clients []*heddlev1.Client
	calls   []string // requests that change something

	trace    []*heddlev1.RecordTraceResponse
	traceErr error         // what ends it, nil = its receiver or its time
	traced   chan struct{} // told when all was sent
}

var _ api.Backend = (*fakeDaemon)(nil)

// startFake serves a fake daemon until the test ends.
func startFake(t *testing.T, mayChange bool) *fakeDaemon {
	t.Helper()
	dir := shortTempDir(t)
	d := &fakeDaemon{
		socket: filepath.Join(dir, "api.sock"),
		status: &heddlev1.StatusResponse{
			Version: buildVersion(), Generation: 4, AbiVersion: 1, Pid: 812, DriverVersion: "580.65.06",
			NvmlVersion: "13.580.65.06", AttachSocket: filepath.Join(dir, "attach.sock"), Clients: 4, Devices: 2,
			Started: timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		},
		devices: fakeDevices(),
		clients: fakeClients(),
	}
	d.serve(t, mayChange)
	return d
}

// serve answers on the daemon's socket until stop, or the end of the test.
func (d *fakeDaemon) serve(t *testing.T, mayChange bool) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", d.socket)
	if err != nil {
		t.Fatal(err)
	}
	cutting := &cuttingListener{Listener: listener}
	d.cut = cutting.cut
	server := api.NewServer(d, api.Options{
		Log:   slog.New(slog.DiscardHandler),
		Admin: func(api.Peer) bool { return mayChange },
	})
	done := make(chan error, 1)
	go func() { done <- server.Serve(cutting) }()
	stopped := false
	d.stop = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(d.stop)
}

// env is the environment of somebody who uses this daemon.
func (d *fakeDaemon) env(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HEDDLE_API=" + d.socket}, more...)
}

func (d *fakeDaemon) Status(context.Context) (*heddlev1.StatusResponse, error) { return d.status, nil }

func (d *fakeDaemon) ListDevices(context.Context) ([]*heddlev1.Device, error) { return d.devices, nil }

func (d *fakeDaemon) ListClients(_ context.Context, req *heddlev1.ListClientsRequest) ([]*heddlev1.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*heddlev1.Client
	for _, c := range d.clients {
		if req.GetTenant() == "" || req.GetTenant() == c.GetTenant() {
			list = append(list, proto.CloneOf(c))
		}
	}
	return list, nil
}

func (d *fakeDaemon) SetClient(_ context.Context, req *heddlev1.SetClientRequest) (*heddlev1.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.clients, func(c *heddlev1.Client) bool {
		return c.GetId() == req.GetId() || req.GetPid() != 0 && c.GetPid() == req.GetPid()
	})
	if i < 0 {
		return nil, errdefs.Errorf(errdefs.NotFound, "no such client")
	}
	c := d.clients[i]
	d.calls = append(d.calls, fmt.Sprintf("client %d", c.GetId()))
	if req.GetReset_() {
		d.calls = append(d.calls, "reset")
		c.Priority, c.Weight = 5, 100
	}
	if req.Priority != nil {
		c.Priority = req.GetPriority()
	}
	if req.Weight != nil {
		c.Weight = req.GetWeight()
	}
	if req.Slo != nil {
		c.Slo = req.GetSlo()
	}
	return proto.CloneOf(c), nil
}

func (d *fakeDaemon) SetTenant(_ context.Context, req *heddlev1.SetTenantRequest) (uint32, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var n uint32
	for _, c := range d.clients {
		if c.GetTenant() == req.GetTenant() {
			n++
		}
	}
	if n == 0 {
		return 0, errdefs.Errorf(errdefs.NotFound, "no tenant %s", req.GetTenant())
	}
	d.calls = append(d.calls, "tenant "+req.GetTenant())
	if req.GetReset_() {
		d.calls = append(d.calls, "reset")
	}
	return n, nil
}

func (d *fakeDaemon) SetPolicy(_ context.Context, req *heddlev1.SetPolicyRequest) ([]*heddlev1.DevicePolicy, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, "policy "+req.GetPolicy()+" "+strings.Join(req.GetDevices(), " "))
	for _, dev := range d.devices {
		if len(req.GetDevices()) > 0 && !slices.Contains(req.GetDevices(), dev.GetUuid()) {
			continue
		}
		if dev.Policy, dev.PolicyOrigin = req.GetPolicy(), "set"; req.GetReset_() {
			dev.Policy, dev.PolicyOrigin = "heddle", "default"
		}
	}
	return nil, nil
}

func (d *fakeDaemon) Reserve(_ context.Context, req *heddlev1.ReserveRequest) (*heddlev1.Reservation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if req.GetBudget().AsDuration() > time.Second {
		return nil, errdefs.Errorf(errdefs.Exhausted, "deadlines cannot be promised: too much")
	}
	d.calls = append(d.calls, fmt.Sprint("reserve ", req.GetPid(), " ", req.GetDevice(), " ", req.GetBudget().AsDuration(), " ", req.GetRelease()))
	if req.GetRelease() {
		return nil, nil
	}
	deadline := req.GetDeadline()
	if deadline == nil {
		deadline = req.GetPeriod()
	}
	return &heddlev1.Reservation{
		Pid: req.GetPid(), Device: uuidA, Period: req.GetPeriod(), Budget: req.GetBudget(), Deadline: deadline,
		MaxBlock: req.GetMaxBlock(), Response: durationpb.New(3 * time.Millisecond),
	}, nil
}

func (d *fakeDaemon) Reservations(context.Context) ([]*heddlev1.Reservation, error) {
	return []*heddlev1.Reservation{
		{
			Pid: 4242, Device: uuidA, Period: durationpb.New(20 * time.Millisecond), Budget: durationpb.New(2 * time.Millisecond),
			Deadline: durationpb.New(10 * time.Millisecond), Response: durationpb.New(3 * time.Millisecond),
		},
		{
			Pid: 4711, Device: uuidB, Period: durationpb.New(time.Second), Budget: durationpb.New(time.Millisecond),
			Deadline: durationpb.New(time.Second), MaxBlock: durationpb.New(500 * time.Microsecond),
			Response: durationpb.New(2 * time.Second), AtRisk: "client 3 is in class realtime without a reservation",
		},
	}, nil
}

func (d *fakeDaemon) Profiles(context.Context) ([]*heddlev1.Profile, error) {
	return []*heddlev1.Profile{
		{
			Workload: "name:11aa22bb33cc44dd55ee66ff77008899", Device: "NVIDIA H100 80GB HBM3", Label: "resnet", Kernels: 12,
			KernelsKnown: 10, Samples: 648, Learning: true, CoveredShare: 0.973, Longest: durationpb.New(2228224), Clients: 1,
			Kept: timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		},
		{
			Workload: "exe:aa11", Device: "NVIDIA A100", Label: "python3 train.py", Kernels: 250, KernelsKnown: 250,
			Samples: 90000, CoveredShare: 1, Longest: durationpb.New(687361), Probed: true,
		},
		{Workload: "exe:aa11", Device: "NVIDIA H100 80GB HBM3", Label: "python3 train.py", Kernels: 1, Samples: 2, Learning: true},
	}, nil
}

func (d *fakeDaemon) Profile(ctx context.Context, req *heddlev1.GetProfileRequest) (*heddlev1.GetProfileResponse, error) {
	list, err := d.Profiles(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if p.GetWorkload() != req.GetWorkload() || p.GetDevice() != req.GetDevice() {
			continue
		}
		return &heddlev1.GetProfileResponse{
			Profile: p,
			Kernels: []*heddlev1.ProfileKernel{
				{
					Key: 1 << 63, Name: "gemm_128x128", Grid: []uint32{16, 8, 1}, Block: []uint32{256, 1, 1}, Share: 0.913,
					Samples: 125, Known: true, Alone: true, Mean: durationpb.New(107826), Deviation: durationpb.New(2000),
					Min: durationpb.New(104948), P90: durationpb.New(112000), Predicted: durationpb.New(107826),
					SmNeed: 64, Waves: 1, Bound: "compute", Dram: 0.2, Guessed: true,
				},
				{
					Key: 2, Grid: []uint32{1, 1, 1}, Block: []uint32{32, 1, 1}, Share: 0.087, Samples: 3, Graph: true,
					Mean: durationpb.New(2000), Predicted: durationpb.New(2000), Gap: durationpb.New(1500000), Bound: "memory", Dram: 0.74,
				},
			},
			Sensitivity: []*heddlev1.ChannelSensitivity{{Channel: "DRAM", Slowdown: []float64{1, 1.1, 1.25, 1.5}}},
		}, nil
	}
	return nil, errdefs.Errorf(errdefs.NotFound, "no profile of %s on %s", req.GetWorkload(), req.GetDevice())
}

func (d *fakeDaemon) ExportProfile(_ context.Context, req *heddlev1.ExportProfileRequest) ([]byte, error) {
	return []byte("{\"workload\": \"" + req.GetWorkload() + "\"}\n"), nil
}

func (d *fakeDaemon) ImportProfile(_ context.Context, head *heddlev1.ImportProfileRequest, document []byte) (*heddlev1.ImportProfileResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(document) == 0 {
		return nil, errdefs.Errorf(errdefs.Invalid, "import profile: line 1: nothing there")
	}
	d.calls = append(d.calls, fmt.Sprint("import ", head.GetKind(), " ", head.GetWorkload(), " ", head.GetReplace(), " ", len(document)))
	res := &heddlev1.ImportProfileResponse{Profile: &heddlev1.Profile{Label: "resnet", Device: "NVIDIA A100", Kernels: 12}}
	if head.GetKind() == heddlev1.ImportProfileRequest_KIND_NSIGHT {
		res.Found, res.Missing = 11, []string{"saxpy"}
	}
	return res, nil
}

func (d *fakeDaemon) ForgetProfile(_ context.Context, req *heddlev1.ForgetProfileRequest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, "forget "+req.GetWorkload()+" on "+req.GetDevice())
	return nil
}

func (d *fakeDaemon) SetMeasure(context.Context, *heddlev1.SetMeasureRequest) error { return nil }

func (d *fakeDaemon) SetSensitivity(context.Context, *heddlev1.SetSensitivityRequest) error {
	return nil
}

func (d *fakeDaemon) Config(context.Context) (*heddlev1.GetConfigResponse, error) {
	return &heddlev1.GetConfigResponse{
		Toml: "version = 1\n\n[scheduling]\nfail = \"open\"\n",
		Path: "/etc/heddle/heddled.toml",
		Origins: []*heddlev1.ConfigOrigin{
			{Key: "admin_group", Value: `"heddle"`, Origin: "default"},
			{Key: "scheduling.fail", Value: `"open"`, Origin: "file:4"},
		},
	}, nil
}

// tells makes the daemon tell a trace, and returns how to hear that all of it was sent.
func (d *fakeDaemon) tells(trace []*heddlev1.RecordTraceResponse, err error) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trace, d.traceErr, d.traced = trace, err, make(chan struct{}, 1)
	return d.traced
}

// RecordTrace sends what the test put there. It ends by itself if it is asked to.
func (d *fakeDaemon) RecordTrace(ctx context.Context, req *heddlev1.RecordTraceRequest, send func(*heddlev1.RecordTraceResponse) error) error {
	d.mu.Lock()
	d.calls = append(d.calls, fmt.Sprint("trace ", req.GetClients(), " ", req.GetDevices(), " ", req.GetDuration().AsDuration()))
	trace, err, traced := d.trace, d.traceErr, d.traced
	d.mu.Unlock()
	for _, message := range trace {
		if err := send(message); err != nil {
			return err
		}
	}
	select {
	case traced <- struct{}{}:
	default: // nobody waits for it
	}
	if err == nil && req.Duration == nil {
		<-ctx.Done()
	}
	return err
}

func (d *fakeDaemon) changes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

func fakeDevices() []*heddlev1.Device {
	const gib = 1 << 30
	return []*heddlev1.Device{
		{
			Uuid: uuidB, Index: 1, Name: "NVIDIA H100 80GB HBM3", MemoryTotalBytes: 80 * gib, Multiprocessors: 132,
			PciBusId: "0000:65:00.0", MigMode: "enabled", ComputeMode: "default",
			MigDevices: []*heddlev1.MIGDevice{{Uuid: uuidMIG, Profile: "1g.10gb", MemoryTotalBytes: 10 * gib}},
		},
		{
			Uuid: uuidA, Index: 0, Name: "NVIDIA H100 80GB HBM3", MemoryTotalBytes: 80 * gib, MemoryUsedBytes: 13 * gib / 2,
			UtilizationPercent: 97, Multiprocessors: 132, PciBusId: "0000:17:00.0", MigMode: "disabled", Mps: true,
			Clients: 3, Processes: 5, ComputeMode: "default",
		},
	}
}

func fakeClients() []*heddlev1.Client {
	const mib = 1 << 20
	return []*heddlev1.Client{
		{
			Id: 3, Pid: 4711, Uid: 1001, User: "ada", Tenant: "research", Name: "train", Priority: 7, Weight: 100,
			Command: "python3 train.py --epochs 90", State: heddlev1.ClientState_CLIENT_STATE_ATTACHED, LaunchesPerSecond: 412.4,
			Launches: 90210, InterposerVersion: "v1.2.3",
			Devices: []*heddlev1.ClientDevice{
				{Uuid: uuidA, BusyShare: new(0.61), HeldShare: 0.3, MemoryBytes: 5150 * mib, Gate: "yielding", Holds: 88, Held: true, Busy: true},
				{Uuid: uuidMIG, HeldShare: 0, MemoryBytes: 512 * mib, Gate: "yielding"},
			},
		},
		{
			Id: 1, Pid: 4242, Uid: 1000, User: "bob", Container: "9f86d081884c", Tenant: "web", Name: "resnet", Priority: 2, Weight: 300, Slo: "2%",
			Command: "/usr/bin/serve --port 8000", State: heddlev1.ClientState_CLIENT_STATE_ATTACHED, LaunchesPerSecond: 12345,
			Launches: 1 << 33, Attached: timestamppb.New(time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)),
			Devices: []*heddlev1.ClientDevice{{Uuid: uuidA, BusyShare: new(0.004), MemoryBytes: 1536 * mib, Gate: "yielded to", Busy: true}},
		},
		{
			Id: 9, Uid: 1002, Tenant: "research", Priority: 4, Weight: 100, State: heddlev1.ClientState_CLIENT_STATE_WAITING,
			Command: "./\x1b[31mevil\nname",
		},
		{
			Id: 12, Pid: 5000, Uid: 1001, User: "ada", Tenant: "research", Priority: 9, Weight: 1, Command: "/opt/bad",
			State: heddlev1.ClientState_CLIENT_STATE_EVICTED, Reason: "client segment: bad magic",
			Devices: []*heddlev1.ClientDevice{{Uuid: "GPU-99999999-gone", Gate: "closed"}},
		},
	}
}

// cuttingListener remembers its connections, to break them as the death of a process does.
type cuttingListener struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *cuttingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.conns = append(l.conns, conn)
		l.mu.Unlock()
	}
	return conn, err
}

func (l *cuttingListener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close() // the server may have closed it
	}
	l.conns = nil
}
