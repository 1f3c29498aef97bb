package api

import (
	"bytes"
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// ProfileBackend is the part of a Backend that knows workloads.
type ProfileBackend interface {
	Profiles(ctx context.Context) ([]*heddlev1.Profile, error)
	Profile(ctx context.Context, req *heddlev1.GetProfileRequest) (*heddlev1.GetProfileResponse, error)
	ExportProfile(ctx context.Context, req *heddlev1.ExportProfileRequest) ([]byte, error)
	// ImportProfile takes a whole document; head is the first piece, without its bytes.
	ImportProfile(ctx context.Context, head *heddlev1.ImportProfileRequest, document []byte) (*heddlev1.ImportProfileResponse, error)
	ForgetProfile(ctx context.Context, req *heddlev1.ForgetProfileRequest) error
}

const (
	// documentMax bounds what is imported: several times a profile that is full.
	documentMax = 16 << 20
	// pieceBytes is the length of its pieces, inside what one message may have.
	pieceBytes = requestBytesMax / 2
)

func (h *handler) ListProfiles(ctx context.Context, _ *heddlev1.ListProfilesRequest) (*heddlev1.ListProfilesResponse, error) {
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	list, err := h.backend.Profiles(ctx)
	return &heddlev1.ListProfilesResponse{Profiles: list}, toConnect(err)
}

func (h *handler) GetProfile(ctx context.Context, req *heddlev1.GetProfileRequest) (*heddlev1.GetProfileResponse, error) {
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	res, err := h.backend.Profile(ctx, req)
	return res, toConnect(err)
}

func (h *handler) ExportProfile(ctx context.Context, req *heddlev1.ExportProfileRequest) (*heddlev1.ExportProfileResponse, error) {
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	document, err := h.backend.ExportProfile(ctx, req)
	return &heddlev1.ExportProfileResponse{Document: document}, toConnect(err)
}

func (h *handler) ImportProfile(ctx context.Context, stream *connect.ClientStream[heddlev1.ImportProfileRequest]) (*heddlev1.ImportProfileResponse, error) {
	// Before a byte of it is kept.
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	var (
		head     *heddlev1.ImportProfileRequest
		document []byte
	)
	for stream.Receive() {
		piece := stream.Msg()
		if len(document)+len(piece.GetPiece()) > documentMax {
			return nil, toConnect(errdefs.Errorf(errdefs.Invalid, "import profile: more than %d MiB", documentMax>>20))
		}
		document = append(document, piece.GetPiece()...)
		if head == nil {
			head = &heddlev1.ImportProfileRequest{
				Kind: piece.GetKind(), Workload: piece.GetWorkload(), Device: piece.GetDevice(), Replace: piece.GetReplace(),
			}
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	res, err := h.backend.ImportProfile(ctx, head, document)
	return res, toConnect(err)
}

func (h *handler) ForgetProfile(ctx context.Context, req *heddlev1.ForgetProfileRequest) (*heddlev1.ForgetProfileResponse, error) {
	if err := h.mayChange(ctx); err != nil {
		return nil, err
	}
	return &heddlev1.ForgetProfileResponse{}, toConnect(h.backend.ForgetProfile(ctx, req))
}

// Profiles lists what is known of workloads.
func (c *Conn) Profiles(ctx context.Context) ([]*heddlev1.Profile, error) {
	res, err := c.service.ListProfiles(ctx, &heddlev1.ListProfilesRequest{})
	return res.GetProfiles(), c.fromConnect(err)
}

// Profile asks for what is known of the kernels of a workload on a model of device.
func (c *Conn) Profile(ctx context.Context, workload, device string) (*heddlev1.GetProfileResponse, error) {
	res, err := c.service.GetProfile(ctx, &heddlev1.GetProfileRequest{Workload: workload, Device: device})
	return res, c.fromConnect(err)
}

// ExportProfile asks for a profile as a document.
func (c *Conn) ExportProfile(ctx context.Context, workload, device string) ([]byte, error) {
	res, err := c.service.ExportProfile(ctx, &heddlev1.ExportProfileRequest{Workload: workload, Device: device})
	return res.GetDocument(), c.fromConnect(err)
}

// ImportProfile sends a document, whose kind and place head says.
func (c *Conn) ImportProfile(ctx context.Context, head *heddlev1.ImportProfileRequest, document []byte) (*heddlev1.ImportProfileResponse, error) {
	stream, err := c.service.ImportProfile(ctx)
	if err != nil {
		return nil, c.fromConnect(err)
	}
	from := bytes.NewReader(document)
	piece := make([]byte, pieceBytes)
	for first := true; first || from.Len() > 0; first = false {
		n, _ := from.Read(piece) // at the end there is nothing, and nothing wrong
		message := &heddlev1.ImportProfileRequest{Piece: piece[:n]}
		if first {
			message.Kind, message.Replace = head.GetKind(), head.GetReplace()
			message.Workload, message.Device = head.GetWorkload(), head.GetDevice()
		}
		// EOF says that the server has answered already; the answer says why.
		if err := stream.Send(message); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, c.fromConnect(err)
		}
	}
	res, err := stream.CloseAndReceive()
	return res, c.fromConnect(err)
}

// ForgetProfile removes what is known of a workload on a model of device.
func (c *Conn) ForgetProfile(ctx context.Context, workload, device string) error {
	_, err := c.service.ForgetProfile(ctx, &heddlev1.ForgetProfileRequest{Workload: workload, Device: device})
	return c.fromConnect(err)
}
