package profiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/sched"
)

// Import reads what [Profile.Export] wrote, and documents of that form from elsewhere. A member that
// this version does not know is an error: it may be a misspelt one.
func Import(document []byte) (*Profile, error) {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, importError(document, err)
	}
	switch {
	case head.Format != jsonFormat:
		return nil, errdefs.Errorf(errdefs.Invalid, "import profile: the format is %q, not %q", head.Format, jsonFormat)
	case head.Version != jsonVersion:
		return nil, errdefs.Errorf(errdefs.Unsupported, "import profile: version %d, this heddle knows %d", head.Version, jsonVersion)
	}
	var doc jsonProfile
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&doc); err != nil {
		return nil, importError(document, err)
	}
	p, err := doc.profile()
	if err != nil {
		return nil, errdefs.Errorf(errdefs.Invalid, "import profile: %w", err)
	}
	return p, nil
}

// importError adds the line where there is one.
func importError(document []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(document)) {
		return errdefs.Errorf(errdefs.Invalid, "import profile: %w", err)
	}
	return errdefs.Errorf(errdefs.Invalid, "import profile: line %d: %w", 1+bytes.Count(document[:offset], []byte{'\n'}), err)
}

// profile makes the profile and checks what the encoding checks as well.
func (doc *jsonProfile) profile() (*Profile, error) {
	p := New(ID{doc.Workload, doc.Device})
	p.Label = printable(doc.Label, labelMax)
	if doc.Workload == "" || len(doc.Workload) > idMax || len(doc.Device) > idMax {
		return nil, fmt.Errorf("workload of %d and device of %d bytes, from 1 and up to %d each", len(doc.Workload), len(doc.Device), idMax)
	}
	for name, row := range doc.Sensitivity {
		f, ok := figureNamed(name)
		if !ok || int(f) >= sched.Channels {
			return nil, fmt.Errorf("sensitivity: no channel %q", name)
		}
		for _, x := range row {
			if !(x >= 0 && x <= slowdownMax) {
				return nil, fmt.Errorf("sensitivity: %s: %g is not between 0 and %d", name, x, slowdownMax)
			}
		}
		p.Sensitivity[f] = row
	}
	if len(doc.Kernels) > kernelsMax || len(doc.Gaps) > pairsMax {
		return nil, fmt.Errorf("%d kernels and %d pairs, at most %d and %d are kept", len(doc.Kernels), len(doc.Gaps), kernelsMax, pairsMax)
	}
	for i := range doc.Kernels {
		from := &doc.Kernels[i]
		k, isNew := p.kernels.use(uint64(from.Key))
		if from.Key == 0 || !isNew {
			return nil, fmt.Errorf("kernel %d: key %#x again, or 0", i, uint64(from.Key))
		}
		if err := from.read(k); err != nil {
			return nil, fmt.Errorf("kernel %d: %w", i, err)
		}
	}
	for i := range doc.Gaps {
		from := &doc.Gaps[i]
		both, isNew := p.pairs.use(PairKey(uint64(from.Previous), uint64(from.Kernel)))
		if from.Previous == 0 || from.Kernel == 0 || !isNew {
			return nil, fmt.Errorf("pair %d: keys %#x and %#x again, or 0", i, uint64(from.Previous), uint64(from.Kernel))
		}
		*both = pair{previous: uint64(from.Previous), kernel: uint64(from.Kernel), uses: min(from.Recent, usesMax-1)}
		if err := from.Gap.read(&both.gap.Moments, float64(timeMax)); err != nil {
			return nil, fmt.Errorf("pair %d: %w", i, err)
		}
	}
	p.reassess()
	return p, nil
}

func (from *jsonKernel) read(k *Kernel) error {
	*k = Kernel{
		Name: printable(from.Name, nameMax), Module: uint64(from.Module), Graph: from.Graph,
		Shape: Shape{
			Grid: from.Grid, Block: from.Block, DynamicShared: from.Dynamic, StaticShared: from.Static,
			Registers: from.Registers, ThreadsMax: from.Threads, BlocksPerSM: from.Resident,
		},
		Samples: from.Samples, Changes: from.Changes, Alone: from.Alone, uses: min(from.Recent, usesMax-1),
	}
	for name, part := range from.Figures {
		f, ok := figureNamed(name)
		if !ok || !(part >= 0 && part <= 1) {
			return fmt.Errorf("figures: %q is %g; one of %v between 0 and 1", name, part, figureNames)
		}
		k.Figures.Set(f, part)
	}
	if from.Gap != nil {
		if err := from.Gap.read(&k.Gap.Moments, float64(timeMax)); err != nil {
			return fmt.Errorf("gap: %w", err)
		}
	}
	if from.Logs != nil {
		if err := from.Logs.read(&k.detect.logs, logsMax); err != nil {
			return fmt.Errorf("log_time: %w", err)
		}
	}
	if from.Time == nil {
		return nil
	}
	if err := from.Time.read(&k.Time, float64(timeMax)); err != nil {
		return fmt.Errorf("time: %w", err)
	}
	k.Min = from.Time.Min
	if k.Min > uint64(timeMax) {
		return fmt.Errorf("time: at least %d ns", k.Min)
	}
	for _, b := range from.Time.Buckets {
		ns, count := b[0], b[1]
		if ns < 0 || count < 1 || count > memory-int64(k.Times.total) {
			return fmt.Errorf("time: bucket %d with %d times, at most %d together", ns, count, memory)
		}
		k.Times.counts[bucket(uint64(ns))] += uint16(count)
		k.Times.total += uint32(count)
	}
	return nil
}

func (from *jsonMoments) read(m *Moments, top float64) error {
	*m = Moments{Weight: from.Weight, Mean: from.Mean, M2: from.Deviation * from.Deviation * max(0, from.Weight-1)}
	if !(from.Deviation >= 0) || math.IsInf(from.Deviation, 0) || !m.sane(top) {
		return fmt.Errorf("weight %g, mean %g and deviation %g make no sense", from.Weight, from.Mean, from.Deviation)
	}
	return nil
}

func figureNamed(name string) (Figure, bool) {
	for f, known := range figureNames {
		if known == name {
			return Figure(f), true
		}
	}
	return 0, false
}
