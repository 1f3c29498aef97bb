package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// RecordTrace is for those who may change things: it makes every launch of the clients cost more, and
// tells what programs of other users do.
func (h *handler) RecordTrace(ctx context.Context, req *heddlev1.RecordTraceRequest, stream *connect.ServerStream[heddlev1.RecordTraceResponse]) error {
	if err := h.mayChange(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-h.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := h.backend.RecordTrace(ctx, req, stream.Send)
	cancel()
	<-stopped
	select {
	case <-h.stop:
		return toConnect(errors.Join(errdefs.Errorf(errdefs.Unavailable, "heddled is stopping"), err))
	default:
		return toConnect(err)
	}
}

// RecordTrace calls f with what clients tell, until the trace, f or the connection ends.
func (c *Conn) RecordTrace(ctx context.Context, req *heddlev1.RecordTraceRequest, f func(*heddlev1.RecordTraceResponse) error) error {
	stream, err := c.service.RecordTrace(ctx, req)
	if err != nil {
		return c.fromConnect(err)
	}
	for stream.Receive() {
		if err := f(stream.Msg()); err != nil {
			return errors.Join(err, c.fromConnect(stream.Close()))
		}
	}
	err = c.fromConnect(stream.Err())
	_ = stream.Close() // the error that ended the stream is the one that counts
	return err
}
