package daemon

import (
	"context"
	"math"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/library"
	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/wire"
)

// addKnown says what is known of a client's kernels on a device.
func (b *backend) addKnown(p *heddlev1.ClientDevice, client uint64, uuid wire.UUID) {
	known := b.d.library.Known(library.Reader{Client: client, Device: string(uuid[:])})
	p.Measured, p.Expected = durationpb.New(known.Measured), durationpb.New(known.Expected)
	p.CoveredShare, p.Learning = known.Covered, known.Learning
}

// SetMeasure implements api.Backend.
func (b *backend) SetMeasure(_ context.Context, req *heddlev1.SetMeasureRequest) error {
	if b.d.learner == nil {
		return errdefs.Errorf(errdefs.Unsupported, "nothing is measured: scheduling.measure is 0")
	}
	id, err := b.living(func(c *clients.Info) bool { return c.ID == req.GetClient() }, "no client %d is attached", req.GetClient())
	if err == nil {
		b.d.learner.ask(id, req.GetEvery())
	}
	return err
}

// slowdownMax is more than a workload on a device suffers from one other.
const slowdownMax = 1000

// SetSensitivity implements api.Backend.
func (b *backend) SetSensitivity(_ context.Context, req *heddlev1.SetSensitivityRequest) error {
	uuid, err := gpu.ParseUUID(req.GetDevice())
	if err != nil {
		return errdefs.Errorf(errdefs.Invalid, "%w", err)
	}
	sensitivity, err := sensitivityOf(req.GetChannels())
	if err != nil {
		return err
	}
	known := b.d.library.Known(library.Reader{Client: req.GetClient(), Device: string(uuid[:])})
	if known.Profile.Workload == "" {
		return errdefs.Errorf(errdefs.NotFound, "no client %d with a profile is on device %s", req.GetClient(), req.GetDevice())
	}
	err = b.d.library.Change(known.Profile, func(p *profiles.Profile) error {
		p.Sensitivity = sensitivity
		return nil
	})
	if err != nil {
		return err
	}
	b.d.log.Info("sensitivity kept", "client", req.GetClient(), "workload", known.Profile.Workload, "device", known.Profile.Device)
	return nil
}

func sensitivityOf(rows []*heddlev1.ChannelSensitivity) (sched.Sensitivity, error) {
	var s sched.Sensitivity
	for _, row := range rows {
		c := -1
		for channel := range sched.Channel(sched.Channels) {
			if strings.EqualFold(channel.String(), row.GetChannel()) {
				c = int(channel)
			}
		}
		if c < 0 {
			return s, errdefs.Errorf(errdefs.Invalid, "no channel is called %q", row.GetChannel())
		}
		if len(row.GetSlowdown()) != len(s[c]) {
			return s, errdefs.Errorf(errdefs.Invalid, "channel %s: %d slowdowns, want %d", row.GetChannel(), len(row.GetSlowdown()), len(s[c]))
		}
		for i, v := range row.GetSlowdown() {
			if math.IsNaN(v) || v <= 0 || v > slowdownMax {
				return s, errdefs.Errorf(errdefs.Invalid, "channel %s: a slowdown of %v is not between 0 and %d", row.GetChannel(), v, slowdownMax)
			}
			// Chance makes some a little faster.
			s[c][i] = max(1, v)
		}
	}
	return s, nil
}
