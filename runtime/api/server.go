// Package api is heddled's control socket: the server, and Conn, the client
// that everything else speaks to heddled with.
//
// The server does no work of its own. It decides who may ask, calls a Backend,
// and turns the kinds of errdefs into the codes of Connect; Conn turns them
// back, so that errors.Is works across the socket.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/api/heddle/v1/heddlev1connect"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Backend answers what the API asks. Its errors have kinds of errdefs; its
// messages are the caller's to change.
type Backend interface {
	Status(ctx context.Context) (*heddlev1.StatusResponse, error)
	ListDevices(ctx context.Context) ([]*heddlev1.Device, error)
	ListClients(ctx context.Context, req *heddlev1.ListClientsRequest) ([]*heddlev1.Client, error)
	SetClient(ctx context.Context, req *heddlev1.SetClientRequest) (*heddlev1.Client, error)
	SetTenant(ctx context.Context, req *heddlev1.SetTenantRequest) (uint32, error)
	Config(ctx context.Context) (*heddlev1.GetConfigResponse, error)
	SetPolicy(ctx context.Context, req *heddlev1.SetPolicyRequest) ([]*heddlev1.DevicePolicy, error)
	Reserve(ctx context.Context, req *heddlev1.ReserveRequest) (*heddlev1.Reservation, error)
	Reservations(ctx context.Context) ([]*heddlev1.Reservation, error)
	// RecordTrace calls send until the trace ends; send fails when the caller is gone.
	RecordTrace(ctx context.Context, req *heddlev1.RecordTraceRequest, send func(*heddlev1.RecordTraceResponse) error) error
	SetMeasure(ctx context.Context, req *heddlev1.SetMeasureRequest) error
	SetSensitivity(ctx context.Context, req *heddlev1.SetSensitivityRequest) error
	ProfileBackend
}

// Options are what a Server needs beside its Backend.
type Options struct {
	Log *slog.Logger
	// Admin decides who may change things.
	Admin func(Peer) bool
	// Metrics is served at /metrics; nil = not there.
	Metrics http.Handler
}

// Bounds of one request. Everything that is asked here is small.
const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	requestBytesMax   = 64 << 10
	streamsMax        = 16 // at once on one HTTP/2 connection; each may be a watcher
	watchMin          = 100 * time.Millisecond
	watchMax          = time.Minute
	watchDefault      = time.Second
)

// Server serves the control API.
type Server struct {
	http *http.Server
}

// NewServer returns a server that is not serving yet.
func NewServer(backend Backend, opt Options) *Server {
	mux := http.NewServeMux()
	stop := make(chan struct{})
	mux.Handle(heddlev1connect.NewHeddleServiceHandler(&handler{backend: backend, admin: opt.Admin, stop: stop},
		connect.WithReadMaxBytes(requestBytesMax),
		connect.WithRecover(recoverTo(opt.Log))))
	if opt.Metrics != nil {
		mux.Handle("GET /metrics", opt.Metrics)
	}
	// gRPC needs HTTP/2 and curl speaks 1.1; without TLS both are named here.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &Server{http: &http.Server{
		Handler:           mux,
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streamsMax},
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(opt.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return withPeer(ctx, conn)
		},
	}}
	// A watcher never ends by itself: without this, Shutdown would wait for it.
	s.http.RegisterOnShutdown(func() { close(stop) })
	return s
}

func recoverTo(log *slog.Logger) func(context.Context, connect.Spec, http.Header, any) error {
	return func(_ context.Context, spec connect.Spec, _ http.Header, r any) error {
		log.Error("request panicked", "procedure", spec.Procedure, "panic", fmt.Sprint(r))
		return connect.NewError(connect.CodeInternal, errors.New("internal error, see the log of heddled"))
	}
}

// Serve answers on listener until Shutdown or Close. It closes listener.
func (s *Server) Serve(listener net.Listener) error {
	if err := s.http.Serve(newFairListener(listener)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve API: %w", err)
	}
	return nil
}

// Shutdown stops accepting and waits for requests under way, at most until ctx
// is done: then it cuts them off and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}

// handler implements the service; stop ends its watchers.
type handler struct {
	backend Backend
	admin   func(Peer) bool
	stop    <-chan struct{}
}

var _ heddlev1connect.HeddleServiceHandler = (*handler)(nil)

// toConnect gives an error the code of its kind.
func toConnect(err error) error {
	if err == nil {
		return nil
	}
	return connect.NewError(connect.Code(errdefs.Code(err)), err)
}

func (h *handler) mayChange(ctx context.Context) error {
	peer, ok := peerFrom(ctx)
	if ok && h.admin(peer) {
		return nil
	}
	return toConnect(errdefs.Errorf(errdefs.PermissionDenied,
		"uid %d may only look; root, heddled's own user and its admin group change things", peer.UID))
}

func (h *handler) Status(ctx context.Context, _ *heddlev1.StatusRequest) (*heddlev1.StatusResponse, error) {
	res, err := h.backend.Status(ctx)
	return res, toConnect(err)
}

func (h *handler) ListDevices(ctx context.Context, _ *heddlev1.ListDevicesRequest) (*heddlev1.ListDevicesResponse, error) {
	devices, err := h.backend.ListDevices(ctx)
	return &heddlev1.ListDevicesResponse{Devices: devices}, toConnect(err)
}

func (h *handler) ListClients(ctx context.Context, req *heddlev1.ListClientsRequest) (*heddlev1.ListClientsResponse, error) {
	clients, err := h.backend.ListClients(ctx, req)
	hideCommands(ctx, clients...)
	return &heddlev1.ListClientsResponse{Clients: clients}, toConnect(err)
}

func (h *handler) WatchClients(ctx context.Context, req *heddlev1.WatchClientsRequest, stream *connect.ServerStream[heddlev1.ListClientsResponse]) error {
	interval := watchDefault
	if req.GetInterval() != nil {
		interval = min(max(req.GetInterval().AsDuration(), watchMin), watchMax)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		clients, err := h.backend.ListClients(ctx, &heddlev1.ListClientsRequest{})
		if err != nil {
			return toConnect(err)
		}
		hideCommands(ctx, clients...)
		if err := stream.Send(&heddlev1.ListClientsResponse{Clients: clients}); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-h.stop:
			return toConnect(errdefs.Errorf(errdefs.Unavailable, "heddled is stopping"))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *handler) SetClient(ctx context.Context, req *heddlev1.SetClientRequest) (*heddlev1.SetClientResponse, error) {
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	client, err := h.backend.SetClient(ctx, req)
	hideCommands(ctx, client)
	return &heddlev1.SetClientResponse{Client: client}, toConnect(err)
}

func (h *handler) SetTenant(ctx context.Context, req *heddlev1.SetTenantRequest) (*heddlev1.SetTenantResponse, error) {
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	clients, err := h.backend.SetTenant(ctx, req)
	return &heddlev1.SetTenantResponse{Clients: clients}, toConnect(err)
}

func (h *handler) SetPolicy(ctx context.Context, req *heddlev1.SetPolicyRequest) (*heddlev1.SetPolicyResponse, error) {
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	devices, err := h.backend.SetPolicy(ctx, req)
	return &heddlev1.SetPolicyResponse{Devices: devices}, toConnect(err)
}

func (h *handler) Reserve(ctx context.Context, req *heddlev1.ReserveRequest) (*heddlev1.ReserveResponse, error) {
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	made, err := h.backend.Reserve(ctx, req)
	return &heddlev1.ReserveResponse{Reservation: made}, toConnect(err)
}

func (h *handler) ListReservations(ctx context.Context, _ *heddlev1.ListReservationsRequest) (*heddlev1.ListReservationsResponse, error) {
	list, err := h.backend.Reservations(ctx)
	return &heddlev1.ListReservationsResponse{Reservations: list}, toConnect(err)
}

func (h *handler) SetMeasure(ctx context.Context, req *heddlev1.SetMeasureRequest) (*heddlev1.SetMeasureResponse, error) {
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	return &heddlev1.SetMeasureResponse{}, toConnect(h.backend.SetMeasure(ctx, req))
}

func (h *handler) SetSensitivity(ctx context.Context, req *heddlev1.SetSensitivityRequest) (*heddlev1.SetSensitivityResponse, error) {
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	return &heddlev1.SetSensitivityResponse{}, toConnect(h.backend.SetSensitivity(ctx, req))
}

func (h *handler) GetConfig(ctx context.Context, _ *heddlev1.GetConfigRequest) (*heddlev1.GetConfigResponse, error) {
	res, err := h.backend.Config(ctx)
	return res, toConnect(err)
}
