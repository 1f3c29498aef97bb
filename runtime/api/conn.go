package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/durationpb"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/api/heddle/v1/heddlev1connect"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Conn speaks to the heddled behind one socket. It dials when it is first
// used; its methods may be called from many goroutines. Their errors say what
// a person can do about them, and have kinds of errdefs.
type Conn struct {
	path    string
	client  http.Client
	service heddlev1connect.HeddleServiceClient
}

// dialTimeout is short: the other end is on this machine.
const dialTimeout = 5 * time.Second

// NewConn returns a Conn to the API socket at path.
func NewConn(path string) *Conn {
	c := &Conn{path: path}
	c.client.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.dial(ctx)
		},
		DisableCompression: true,
	}
	// The host is never looked up; it only has to be there.
	c.service = heddlev1connect.NewHeddleServiceClient(&c.client, "http://heddled")
	return c
}

// dialError keeps its own words and kind on the way through HTTP and Connect.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// pathMax is the longest path of a unix socket; the system's own word for a
// longer one is "invalid argument".
const pathMax = 107

func (c *Conn) dial(ctx context.Context) (net.Conn, error) {
	if len(c.path) > pathMax {
		return nil, &dialError{errdefs.Errorf(errdefs.Invalid,
			"%s is %d bytes long; a unix socket's path has at most %d", c.path, len(c.path), pathMax)}
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "unix", c.path)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &dialError{errdefs.Errorf(errdefs.Unavailable,
			"no heddled at %s: no such socket; start heddled, or name its API socket", c.path)}
	case errors.Is(err, unix.ECONNREFUSED):
		return nil, &dialError{errdefs.Errorf(errdefs.Unavailable,
			"no heddled at %s: nobody listens; start heddled, or name its API socket", c.path)}
	case errors.Is(err, fs.ErrPermission):
		return nil, &dialError{errdefs.Errorf(errdefs.PermissionDenied,
			"%s: permission denied; this user may not use the socket", c.path)}
	case errors.Is(err, unix.EPROTOTYPE), errors.Is(err, unix.ENOTSOCK):
		return nil, &dialError{c.stranger(err)}
	default:
		return nil, &dialError{errdefs.Errorf(errdefs.Unavailable, "connect to %s: %w", c.path, err)}
	}
}

func (c *Conn) stranger(err error) error {
	return errdefs.Errorf(errdefs.Invalid, "%s is not heddled's API socket: %w", c.path, err)
}

// fromConnect gives an error the kind that its code stands for.
func (c *Conn) fromConnect(err error) error {
	if err == nil {
		return nil
	}
	if dial, ok := errors.AsType[*dialError](err); ok {
		return dial.err
	}
	for _, given := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, given) {
			return fmt.Errorf("ask heddled at %s: %w", c.path, given)
		}
	}
	var wire *connect.Error
	if !errors.As(err, &wire) {
		return err
	}
	if connect.IsWireError(err) {
		return errdefs.FromCode(uint32(wire.Code()), wire.Message())
	}
	// Not an answer of heddled: the connection broke, or another program answers.
	for _, broke := range []error{io.EOF, io.ErrUnexpectedEOF, unix.ECONNRESET, unix.EPIPE} {
		if errors.Is(err, broke) {
			return errdefs.Errorf(errdefs.Unavailable, "heddled at %s went away: %w", c.path, broke)
		}
	}
	return c.stranger(err)
}

// Status asks what runs there.
func (c *Conn) Status(ctx context.Context) (*heddlev1.StatusResponse, error) {
	res, err := c.service.Status(ctx, &heddlev1.StatusRequest{})
	return res, c.fromConnect(err)
}

// Devices lists the devices of the node.
func (c *Conn) Devices(ctx context.Context) ([]*heddlev1.Device, error) {
	res, err := c.service.ListDevices(ctx, &heddlev1.ListDevicesRequest{})
	return res.GetDevices(), c.fromConnect(err)
}

// Clients lists attached clients; an empty request means all.
func (c *Conn) Clients(ctx context.Context, req *heddlev1.ListClientsRequest) ([]*heddlev1.Client, error) {
	if req == nil {
		req = &heddlev1.ListClientsRequest{}
	}
	res, err := c.service.ListClients(ctx, req)
	return res.GetClients(), c.fromConnect(err)
}

// Watch calls f with all clients now and again every interval, until f or the
// connection fails or ctx ends.
func (c *Conn) Watch(ctx context.Context, interval time.Duration, f func([]*heddlev1.Client) error) error {
	stream, err := c.service.WatchClients(ctx, &heddlev1.WatchClientsRequest{Interval: durationpb.New(interval)})
	if err != nil {
		return c.fromConnect(err)
	}
	for stream.Receive() {
		if err := f(stream.Msg().GetClients()); err != nil {
			return errors.Join(err, c.fromConnect(stream.Close()))
		}
	}
	err = c.fromConnect(stream.Err())
	_ = stream.Close() // the error that ended the stream is the one that counts
	return err
}

// SetClient changes one living client, or undoes that.
func (c *Conn) SetClient(ctx context.Context, req *heddlev1.SetClientRequest) (*heddlev1.Client, error) {
	res, err := c.service.SetClient(ctx, req)
	return res.GetClient(), c.fromConnect(err)
}

// SetTenant changes a tenant or undoes that, and tells how many living clients that changed.
func (c *Conn) SetTenant(ctx context.Context, req *heddlev1.SetTenantRequest) (int, error) {
	res, err := c.service.SetTenant(ctx, req)
	return int(res.GetClients()), c.fromConnect(err)
}

// SetPolicy changes how devices are shared, or undoes that, and tells how those are shared now that
// were meant.
func (c *Conn) SetPolicy(ctx context.Context, req *heddlev1.SetPolicyRequest) ([]*heddlev1.DevicePolicy, error) {
	res, err := c.service.SetPolicy(ctx, req)
	return res.GetDevices(), c.fromConnect(err)
}

// Reserve promises device time to a process, or takes that back: then there is no reservation.
func (c *Conn) Reserve(ctx context.Context, req *heddlev1.ReserveRequest) (*heddlev1.Reservation, error) {
	res, err := c.service.Reserve(ctx, req)
	return res.GetReservation(), c.fromConnect(err)
}

// Reservations lists the device time that is promised.
func (c *Conn) Reservations(ctx context.Context) ([]*heddlev1.Reservation, error) {
	res, err := c.service.ListReservations(ctx, &heddlev1.ListReservationsRequest{})
	return res.GetReservations(), c.fromConnect(err)
}

// SetMeasure has one launch in every of a client measured, 0 = as configured.
func (c *Conn) SetMeasure(ctx context.Context, client uint64, every uint32) error {
	_, err := c.service.SetMeasure(ctx, &heddlev1.SetMeasureRequest{Client: client, Every: every})
	return c.fromConnect(err)
}

// SetSensitivity keeps how much a client's workload suffers from others.
func (c *Conn) SetSensitivity(ctx context.Context, req *heddlev1.SetSensitivityRequest) error {
	_, err := c.service.SetSensitivity(ctx, req)
	return c.fromConnect(err)
}

// Config asks for the configuration in force.
func (c *Conn) Config(ctx context.Context) (*heddlev1.GetConfigResponse, error) {
	res, err := c.service.GetConfig(ctx, &heddlev1.GetConfigRequest{})
	return res, c.fromConnect(err)
}

// Close gives up idle connections.
func (c *Conn) Close() { c.client.CloseIdleConnections() }
