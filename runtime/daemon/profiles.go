package daemon

import (
	"bytes"
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/library"
	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sched"
)

// missingMax is how many kernels of a table that fit nothing are named.
const missingMax = 100

// Profiles implements api.ProfileBackend.
func (b *backend) Profiles(context.Context) ([]*heddlev1.Profile, error) {
	entries, err := b.d.library.List()
	if err != nil {
		return nil, err
	}
	list := make([]*heddlev1.Profile, len(entries))
	for i := range entries {
		list[i] = protoProfile(&entries[i])
	}
	return list, nil
}

func protoProfile(e *library.Entry) *heddlev1.Profile {
	p := &heddlev1.Profile{
		Workload: e.ID.Workload, Device: e.ID.Device, Label: e.Label,
		Kernels: uint32(e.Kernels), KernelsKnown: uint32(e.Known), Samples: e.Samples, // a thousand at most
		Learning: e.Measuring, CoveredShare: e.Covered, Longest: durationpb.New(e.Longest),
		Clients: uint32(e.Clients), Probed: e.Probed, // bounded by configuration
	}
	if !e.Kept.IsZero() {
		p.Kept = timestamppb.New(e.Kept)
	}
	return p
}

// Profile implements api.ProfileBackend.
func (b *backend) Profile(_ context.Context, req *heddlev1.GetProfileRequest) (*heddlev1.GetProfileResponse, error) {
	id := profiles.ID{Workload: req.GetWorkload(), Device: req.GetDevice()}
	res := &heddlev1.GetProfileResponse{}
	err := b.d.library.View(id, func(p *profiles.Profile) error {
		res.Profile = protoProfile(&library.Entry{Summary: p.Summary()})
		for _, k := range p.Summaries(profiles.Device{SMs: b.d.inventory.multiprocessors(id.Device)}) {
			res.Kernels = append(res.Kernels, protoProfileKernel(&k))
		}
		for c, row := range p.Sensitivity {
			if row != [4]float64{} {
				res.Sensitivity = append(res.Sensitivity, &heddlev1.ChannelSensitivity{
					Channel: sched.Channel(c).String(), Slowdown: row[:],
				})
			}
		}
		return nil
	})
	return res, err
}

func protoProfileKernel(k *profiles.KernelSummary) *heddlev1.ProfileKernel {
	duration := func(d time.Duration) *durationpb.Duration { return durationpb.New(d) }
	return &heddlev1.ProfileKernel{
		Key: k.Key, Name: k.Name, Graph: k.Graph, Grid: k.Grid[:], Block: k.Block[:], Share: k.Share, Samples: k.Samples,
		Changes: k.Changes, Known: k.Settled, Alone: k.Alone, Mean: duration(k.Mean), Deviation: duration(k.Deviation),
		Min: duration(k.Min), P90: duration(k.P90), Predicted: duration(k.Predicted), Gap: duration(k.Gap),
		SmNeed: k.SMNeed, Waves: k.Waves, Bound: k.Class.String(), Dram: k.DRAM, Guessed: k.Guessed,
	}
}

// ExportProfile implements api.ProfileBackend.
func (b *backend) ExportProfile(_ context.Context, req *heddlev1.ExportProfileRequest) (document []byte, err error) {
	err = b.d.library.View(profiles.ID{Workload: req.GetWorkload(), Device: req.GetDevice()}, func(p *profiles.Profile) (err error) {
		document, err = p.Export()
		return err
	})
	return document, err
}

// ImportProfile implements api.ProfileBackend.
func (b *backend) ImportProfile(_ context.Context, head *heddlev1.ImportProfileRequest, document []byte) (*heddlev1.ImportProfileResponse, error) {
	switch head.GetKind() {
	case heddlev1.ImportProfileRequest_KIND_PROFILE:
		return b.importDocument(document, head.GetReplace())
	case heddlev1.ImportProfileRequest_KIND_NSIGHT:
		return b.importNsight(head, document)
	default:
		return nil, errdefs.Errorf(errdefs.Invalid, "import profile: neither a document nor a table")
	}
}

func (b *backend) importDocument(document []byte, replace bool) (*heddlev1.ImportProfileResponse, error) {
	p, err := profiles.Import(document)
	if err != nil {
		return nil, err
	}
	if replace {
		err = b.d.library.Replace(p)
	} else {
		err = b.d.library.Merge(p)
	}
	if err != nil {
		return nil, err
	}
	b.d.log.Info("profile imported", "workload", p.ID.Workload, "device", p.ID.Device, "kernels", p.Len(), "replace", replace)
	return b.imported(p.ID, &heddlev1.ImportProfileResponse{})
}

func (b *backend) importNsight(head *heddlev1.ImportProfileRequest, document []byte) (*heddlev1.ImportProfileResponse, error) {
	table, err := profiles.ReadNsight("table", bytes.NewReader(document))
	if err != nil {
		return nil, errdefs.Errorf(errdefs.Invalid, "%w", err)
	}
	id := profiles.ID{Workload: head.GetWorkload(), Device: head.GetDevice()}
	res := &heddlev1.ImportProfileResponse{}
	err = b.d.library.Change(id, func(p *profiles.Profile) error {
		found, missing := p.AddNsight(table)
		res.Found = uint32(found) // a thousand at most
		for i := range missing[:min(len(missing), missingMax)] {
			res.Missing = append(res.Missing, missing[i].Name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.d.log.Info("figures imported", "workload", id.Workload, "device", id.Device, "kernels", res.GetFound())
	return b.imported(id, res)
}

func (b *backend) imported(id profiles.ID, res *heddlev1.ImportProfileResponse) (*heddlev1.ImportProfileResponse, error) {
	err := b.d.library.View(id, func(p *profiles.Profile) error {
		res.Profile = protoProfile(&library.Entry{Summary: p.Summary()})
		return nil
	})
	return res, err
}

// ForgetProfile implements api.ProfileBackend.
func (b *backend) ForgetProfile(_ context.Context, req *heddlev1.ForgetProfileRequest) error {
	id := profiles.ID{Workload: req.GetWorkload(), Device: req.GetDevice()}
	if err := b.d.library.Forget(id); err != nil {
		return err
	}
	b.d.log.Info("profile forgotten", "workload", id.Workload, "device", id.Device)
	return nil
}
