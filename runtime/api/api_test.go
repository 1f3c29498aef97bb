package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/api/heddle/v1/heddlev1connect"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// backend answers from its fields.
type backend struct {
	err error
}

func (b *backend) Status(context.Context) (*heddlev1.StatusResponse, error) {
	return &heddlev1.StatusResponse{Version: "v", Generation: 7}, b.err
}

func (b *backend) ListDevices(context.Context) ([]*heddlev1.Device, error) {
	return []*heddlev1.Device{{Uuid: "u"}}, b.err
}

func (b *backend) ListClients(context.Context, *heddlev1.ListClientsRequest) ([]*heddlev1.Client, error) {
	return []*heddlev1.Client{{Id: 1, Uid: uint32(os.Geteuid()), Command: "c"}}, b.err
}

func (b *backend) SetClient(_ context.Context, req *heddlev1.SetClientRequest) (*heddlev1.Client, error) {
	return &heddlev1.Client{Id: req.GetId(), Priority: req.GetPriority()}, b.err
}

func (b *backend) SetTenant(context.Context, *heddlev1.SetTenantRequest) (uint32, error) {
	return 3, b.err
}

func (b *backend) SetPolicy(_ context.Context, req *heddlev1.SetPolicyRequest) ([]*heddlev1.DevicePolicy, error) {
	return []*heddlev1.DevicePolicy{{Uuid: "u", Policy: req.GetPolicy()}}, b.err
}

func (b *backend) Reserve(_ context.Context, req *heddlev1.ReserveRequest) (*heddlev1.Reservation, error) {
	return &heddlev1.Reservation{Pid: req.GetPid()}, b.err
}

func (b *backend) Reservations(context.Context) ([]*heddlev1.Reservation, error) {
	return []*heddlev1.Reservation{{Pid: 1}}, b.err
}

func (b *backend) Profiles(context.Context) ([]*heddlev1.Profile, error) {
	return []*heddlev1.Profile{{Workload: "w"}}, b.err
}

func (b *backend) Profile(context.Context, *heddlev1.GetProfileRequest) (*heddlev1.GetProfileResponse, error) {
	return &heddlev1.GetProfileResponse{}, b.err
}

func (b *backend) ExportProfile(context.Context, *heddlev1.ExportProfileRequest) ([]byte, error) {
	return []byte("document"), b.err
}

func (b *backend) ImportProfile(_ context.Context, head *heddlev1.ImportProfileRequest, document []byte) (*heddlev1.ImportProfileResponse, error) {
	return &heddlev1.ImportProfileResponse{Found: uint32(len(document)), Missing: []string{head.GetWorkload()}}, b.err // a test's
}

func (b *backend) ForgetProfile(context.Context, *heddlev1.ForgetProfileRequest) error { return b.err }

func (b *backend) SetMeasure(context.Context, *heddlev1.SetMeasureRequest) error { return b.err }

func (b *backend) SetSensitivity(context.Context, *heddlev1.SetSensitivityRequest) error {
	return b.err
}

func (b *backend) Config(context.Context) (*heddlev1.GetConfigResponse, error) {
	return &heddlev1.GetConfigResponse{Toml: "version = 1\n"}, b.err
}

// RecordTrace sends two messages, and then nothing more until it is told to end.
func (b *backend) RecordTrace(ctx context.Context, req *heddlev1.RecordTraceRequest, send func(*heddlev1.RecordTraceResponse) error) error {
	for i := range uint64(2) {
		if err := send(&heddlev1.RecordTraceResponse{Start: &heddlev1.TraceStart{ClockNs: i}}); err != nil {
			return err
		}
	}
	if req.Duration == nil {
		<-ctx.Done()
	}
	return b.err
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

// serve starts a server for the test and returns its socket.
func serve(t *testing.T, b Backend, admin bool) string {
	t.Helper()
	path := filepath.Join(shortDir(t), "api.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(b, Options{
		Log:   slog.New(slog.DiscardHandler),
		Admin: func(Peer) bool { return admin },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "metric 1\n")
		}),
	})
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Shutdown(context.Background()), <-done); err != nil {
			t.Error(err)
		}
	})
	return path
}

func TestEveryCallReachesTheBackend(t *testing.T) {
	conn := NewConn(serve(t, &backend{}, true))
	t.Cleanup(conn.Close)
	if res, err := conn.Status(t.Context()); err != nil || res.GetGeneration() != 7 {
		t.Errorf("status: %v, %v", res, err)
	}
	if res, err := conn.Devices(t.Context()); err != nil || len(res) != 1 {
		t.Errorf("devices: %v, %v", res, err)
	}
	if res, err := conn.Clients(t.Context(), nil); err != nil || len(res) != 1 || res[0].GetCommand() != "c" {
		t.Errorf("clients: %v, %v", res, err)
	}
	priority := uint32(2)
	res, err := conn.SetClient(t.Context(), &heddlev1.SetClientRequest{
		Target: &heddlev1.SetClientRequest_Id{Id: 9}, Priority: &priority,
	})
	if err != nil || res.GetId() != 9 || res.GetPriority() != 2 {
		t.Errorf("set client: %v, %v", res, err)
	}
	if n, err := conn.SetTenant(t.Context(), &heddlev1.SetTenantRequest{Tenant: "a"}); err != nil || n != 3 {
		t.Errorf("set tenant: %d, %v", n, err)
	}
	if res, err := conn.Config(t.Context()); err != nil || res.GetToml() == "" {
		t.Errorf("config: %v, %v", res, err)
	}
}

func TestWatchEndsWhenItsCallerSaysSo(t *testing.T) {
	conn := NewConn(serve(t, &backend{}, false))
	t.Cleanup(conn.Close)
	enough := errors.New("enough")
	calls := 0
	err := conn.Watch(t.Context(), time.Nanosecond, func(clients []*heddlev1.Client) error {
		if calls++; calls == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestShutdownEndsWatchers(t *testing.T) {
	path := filepath.Join(shortDir(t), "api.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(&backend{}, Options{Log: slog.New(slog.DiscardHandler), Admin: func(Peer) bool { return false }})
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	conn := NewConn(path)
	t.Cleanup(conn.Close)
	first := make(chan struct{}, 1)
	watched := make(chan error, 1)
	go func() {
		watched <- conn.Watch(t.Context(), time.Minute, func([]*heddlev1.Client) error {
			first <- struct{}{}
			return nil
		})
	}()
	<-first
	if err := errors.Join(s.Shutdown(t.Context()), <-served); err != nil {
		t.Error(err)
	}
	if err := <-watched; !errors.Is(err, errdefs.ErrUnavailable) {
		t.Errorf("watcher: %v", err)
	}
}

func TestOthersMayLookAndNotChange(t *testing.T) {
	conn := NewConn(serve(t, &backend{}, false))
	t.Cleanup(conn.Close)
	if _, err := conn.Status(t.Context()); err != nil {
		t.Error(err)
	}
	_, err := conn.SetTenant(t.Context(), &heddlev1.SetTenantRequest{Tenant: "a"})
	if !errors.Is(err, errdefs.ErrPermissionDenied) {
		t.Errorf("set tenant: %v", err)
	}
	if _, err := conn.SetClient(t.Context(), &heddlev1.SetClientRequest{}); !errors.Is(err, errdefs.ErrPermissionDenied) {
		t.Errorf("set client: %v", err)
	}
}

func TestKindsCrossTheSocket(t *testing.T) {
	for k := errdefs.NotFound; k <= errdefs.PermissionDenied; k++ {
		conn := NewConn(serve(t, &backend{err: errdefs.Errorf(k, "because of %v", k)}, true))
		_, err := conn.Status(t.Context())
		if errdefs.KindOf(err) != k || err.Error() != "because of "+k.String() {
			t.Errorf("%v became %v: %v", k, errdefs.KindOf(err), err)
		}
		conn.Close()
	}
}

func TestConnSaysWhyItCannotReachHeddled(t *testing.T) {
	dir := shortDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rude := filepath.Join(dir, "rude")
	listener, err := net.Listen("unix", rude)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			// The request first: who closes before it comes is gone, not rude.
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, "SSH-2.0-rude\r\n")
			_ = conn.Close()
		}
	}()
	tests := []struct {
		name, path, text string
		kind             errdefs.Kind
	}{
		{"no socket", filepath.Join(dir, "none"), "no such socket", errdefs.Unavailable},
		{"a plain file", file, "nobody listens", errdefs.Unavailable},
		{"a path that no socket has", filepath.Join(dir, strings.Repeat("s", 108)), "a unix socket's path has at most 107", errdefs.Invalid},
		{"another program's socket", rude, "not heddled's API socket", errdefs.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewConn(tt.path).Status(t.Context())
			if err == nil || errdefs.KindOf(err) != tt.kind ||
				!strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), tt.path) {
				t.Errorf("%v of kind %v", err, errdefs.KindOf(err))
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// httpOver returns a client that dials path whatever the URL says.
func httpOver(path string, http2 bool) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	if http2 {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Client{Transport: transport}
}

func TestGRPCAndPlainJSONWorkOnTheSameSocket(t *testing.T) {
	path := serve(t, &backend{}, true)

	web := httpOver(path, true)
	t.Cleanup(web.CloseIdleConnections)
	grpc := heddlev1connect.NewHeddleServiceClient(web, "http://h", connect.WithGRPC())
	// Also shows that the peer's credentials reach HTTP/2 requests.
	res, err := grpc.SetTenant(t.Context(), &heddlev1.SetTenantRequest{Tenant: "a"})
	if err != nil || res.GetClients() != 3 {
		t.Errorf("gRPC: %v, %v", res, err)
	}

	plain := httpOver(path, false)
	t.Cleanup(plain.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://h"+heddlev1connect.HeddleServiceStatusProcedure, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if body := body(t, plain, req); !bytes.Contains(body, []byte(`"generation":"7"`)) {
		t.Errorf("JSON: %s", body)
	}
	req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if body := body(t, plain, req); string(body) != "metric 1\n" {
		t.Errorf("metrics: %s", body)
	}
}

func body(t *testing.T, c *http.Client, req *http.Request) []byte {
	t.Helper()
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCommandLinesAreHiddenFromOtherUsers(t *testing.T) {
	for _, tt := range []struct {
		name string
		ctx  context.Context
		want []string
	}{
		{"root", context.WithValue(t.Context(), peerKey{}, Peer{UID: 0}), []string{"a -x", "b -y", "c -z"}},
		{"one of them", context.WithValue(t.Context(), peerKey{}, Peer{UID: 1001}), []string{"", "b -y", ""}},
		{"somebody else", context.WithValue(t.Context(), peerKey{}, Peer{UID: 1002}), []string{"", "", ""}},
		{"nobody that is known", t.Context(), []string{"", "", ""}},
	} {
		clients := []*heddlev1.Client{
			{Uid: 1000, Program: "a", Command: "a -x"}, {Uid: 1001, Program: "b", Command: "b -y"}, {Uid: 0, Program: "c", Command: "c -z"},
		}
		hideCommands(tt.ctx, clients...)
		for i, c := range clients {
			if c.GetCommand() != tt.want[i] || c.GetProgram() == "" {
				t.Errorf("%s sees %q of %s, want %q", tt.name, c.GetCommand(), c.GetProgram(), tt.want[i])
			}
		}
	}
	hideCommands(t.Context(), nil) // no client was set
}

func TestAdministrators(t *testing.T) {
	admin := Administrators(1234, "no-such-group-here")
	for _, tt := range []struct {
		peer Peer
		want bool
	}{
		{Peer{UID: 0}, true},
		{Peer{UID: 1234}, true},
		{Peer{UID: 1235, GID: 0}, false},
		{Peer{UID: -1, GID: -1}, false},
	} {
		if got := admin(tt.peer); got != tt.want {
			t.Errorf("%+v: %v", tt.peer, got)
		}
	}
	// Group 0 exists everywhere, whatever its name.
	if inRoot := Administrators(1234, "root"); !inRoot(Peer{UID: 99999, GID: 0}) {
		t.Error("a peer whose own group is the admin group may not administer")
	}
}

func TestAUserHasABoundedNumberOfConnections(t *testing.T) {
	l := newFairListener(nil)
	for i := range connsPerUser {
		if !l.take(7) {
			t.Fatalf("connection %d was refused", i)
		}
	}
	if l.take(7) {
		t.Error("one more than the bound was let in")
	}
	if !l.take(8) {
		t.Error("another user was refused")
	}
	l.give(7)
	if !l.take(7) {
		t.Error("a place that was given back cannot be taken")
	}
	for range connsPerUser {
		l.give(7)
	}
	l.give(8)
	if len(l.open) != 0 {
		t.Errorf("counts are left over: %v", l.open)
	}
}

// Without a bound of ours, a user's connections times Go's 250 streams would be
// so many watchers.
func TestAConnectionCarriesABoundedNumberOfStreams(t *testing.T) {
	conn, err := net.Dial("unix", serve(t, &backend{}, true))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	emptySettings := string([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0})
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+emptySettings); err != nil {
		t.Fatal(err)
	}
	header := make([]byte, 9)
	if _, err := io.ReadFull(conn, header); err != nil {
		t.Fatal(err)
	}
	settings := make([]byte, int(header[1])<<8|int(header[2]))
	if _, err := io.ReadFull(conn, settings); err != nil {
		t.Fatal(err)
	}
	const maxConcurrentStreams = 3
	for s := range slices.Chunk(settings, 6) {
		if binary.BigEndian.Uint16(s) == maxConcurrentStreams {
			if got := binary.BigEndian.Uint32(s[2:]); got != streamsMax {
				t.Errorf("%d streams are allowed, want %d", got, streamsMax)
			}
			return
		}
	}
	t.Errorf("no bound on streams in the settings % x", settings)
}

func TestCountedConnectionsKeepTheirPeerAndGiveTheirPlaceBackOnce(t *testing.T) {
	a, b := net.Pipe()
	t.Cleanup(func() { _ = b.Close() })
	given := 0
	conn := &countedConn{Conn: a, peer: Peer{UID: 7, GID: 8, PID: 9}, done: sync.OnceFunc(func() { given++ })}
	if peer, err := peerOf(conn); err != nil || peer != (Peer{UID: 7, GID: 8, PID: 9}) {
		t.Errorf("%+v, %v", peer, err)
	}
	_ = conn.Close()
	_ = conn.Close()
	if given != 1 {
		t.Errorf("the place was given back %d times", given)
	}
}
