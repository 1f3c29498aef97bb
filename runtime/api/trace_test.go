package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

func TestATraceIsReceivedUntilItEnds(t *testing.T) {
	lost := errdefs.Errorf(errdefs.Exhausted, "too many")
	for _, want := range []error{nil, lost} {
		conn := NewConn(serve(t, &backend{err: want}, true))
		t.Cleanup(conn.Close)
		var got []uint64
		err := conn.RecordTrace(t.Context(), &heddlev1.RecordTraceRequest{Duration: durationpb.New(1)},
			func(r *heddlev1.RecordTraceResponse) error {
				got = append(got, r.GetStart().GetClockNs())
				return nil
			})
		if len(got) != 2 || got[1] != 1 || errdefs.KindOf(err) != errdefs.KindOf(want) {
			t.Errorf("received %v, %v; want the error %v", got, err, want)
		}
	}
}

func TestATraceEndsWithItsReceiver(t *testing.T) {
	conn := NewConn(serve(t, &backend{}, true)) // whose end waits for the backend's
	t.Cleanup(conn.Close)
	enough := errors.New("enough")
	err := conn.RecordTrace(t.Context(), &heddlev1.RecordTraceRequest{}, func(*heddlev1.RecordTraceResponse) error { return enough })
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = conn.RecordTrace(ctx, &heddlev1.RecordTraceRequest{}, func(*heddlev1.RecordTraceResponse) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestATraceIsForAdministrators(t *testing.T) {
	conn := NewConn(serve(t, &backend{}, false))
	t.Cleanup(conn.Close)
	err := conn.RecordTrace(t.Context(), &heddlev1.RecordTraceRequest{}, func(r *heddlev1.RecordTraceResponse) error {
		t.Errorf("received %v", r)
		return nil
	})
	if !errors.Is(err, errdefs.ErrPermissionDenied) {
		t.Error(err)
	}
}

func TestShutdownEndsTraces(t *testing.T) {
	path := filepath.Join(shortDir(t), "api.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(&backend{}, Options{Log: slog.New(slog.DiscardHandler), Admin: func(Peer) bool { return true }})
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	conn := NewConn(path)
	t.Cleanup(conn.Close)
	first := make(chan struct{}, 2)
	traced := make(chan error, 1)
	go func() {
		traced <- conn.RecordTrace(t.Context(), &heddlev1.RecordTraceRequest{}, func(*heddlev1.RecordTraceResponse) error {
			first <- struct{}{}
			return nil
		})
	}()
	<-first
	if err := errors.Join(s.Shutdown(t.Context()), <-served); err != nil {
		t.Error(err)
	}
	if err := <-traced; !errors.Is(err, errdefs.ErrUnavailable) {
		t.Error(err)
	}
}
