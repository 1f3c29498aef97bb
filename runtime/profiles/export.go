package profiles

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// jsonFormat and jsonVersion stand in every exported document; docs/profiles.md describes it.
const (
	jsonFormat  = "heddle-profile"
	jsonVersion = 1
)

type jsonProfile struct {
	Format      string                `json:"format"`
	Version     int                   `json:"version"`
	Workload    string                `json:"workload"`
	Device      string                `json:"device"`
	Label       string                `json:"label,omitempty"`
	Sensitivity map[string][4]float64 `json:"sensitivity,omitempty"`
	Kernels     []jsonKernel          `json:"kernels"`
	Gaps        []jsonPair            `json:"pair_gaps,omitempty"`
}

type jsonKernel struct {
	Key       jsonKey            `json:"key"`
	Name      string             `json:"name,omitempty"`
	Module    jsonKey            `json:"module,omitempty"`
	Graph     bool               `json:"graph,omitempty"`
	Grid      [3]uint32          `json:"grid"`
	Block     [3]uint32          `json:"block"`
	Dynamic   uint32             `json:"dynamic_shared_bytes,omitempty"`
	Static    uint32             `json:"static_shared_bytes,omitempty"`
	Registers uint32             `json:"registers,omitempty"`
	Threads   uint32             `json:"threads_max,omitempty"`
	Resident  uint32             `json:"blocks_per_sm,omitempty"`
	Figures   map[string]float64 `json:"figures,omitempty"`
	Samples   uint64             `json:"samples"`
	Changes   uint32             `json:"changes,omitempty"`
	Alone     bool               `json:"alone"`
	Recent    uint32             `json:"recent_launches"`
	Time      *jsonTime          `json:"time,omitempty"`
	Gap       *jsonMoments       `json:"gap,omitempty"`
	Logs      *jsonMoments       `json:"log_time,omitempty"`
}

type jsonTime struct {
	jsonMoments
	Min     uint64     `json:"min_ns"`
	P90     uint64     `json:"p90_ns"` // follows from the buckets; not read
	Buckets [][2]int64 `json:"buckets"`
}

// jsonMoments has the unit of what it describes: nanoseconds, or their logarithm.
type jsonMoments struct {
	Weight    float64 `json:"weight"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

type jsonPair struct {
	Previous jsonKey     `json:"previous"`
	Kernel   jsonKey     `json:"kernel"`
	Recent   uint32      `json:"recent_gaps"`
	Gap      jsonMoments `json:"gap"`
}

// jsonKey is a word in hexadecimal: JSON's numbers lose the low bits of large ones.
type jsonKey uint64

// MarshalText implements [encoding.TextMarshaler].
func (k jsonKey) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#016x", uint64(k)), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *jsonKey) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return fmt.Errorf("%q is no key", text)
	}
	*k = jsonKey(n)
	return nil
}

// Export writes the profile as a document for people and other programs.
func (p *Profile) Export() ([]byte, error) {
	doc := jsonProfile{
		Format: jsonFormat, Version: jsonVersion, Workload: p.ID.Workload, Device: p.ID.Device, Label: p.Label,
		Kernels: make([]jsonKernel, 0, p.kernels.len()),
	}
	for c, row := range p.Sensitivity {
		if row != [4]float64{} {
			if doc.Sensitivity == nil {
				doc.Sensitivity = map[string][4]float64{}
			}
			doc.Sensitivity[Figure(c).String()] = row
		}
	}
	for key, k := range p.kernels.all() {
		doc.Kernels = append(doc.Kernels, k.export(key))
	}
	for _, both := range p.pairs.all() {
		doc.Gaps = append(doc.Gaps, jsonPair{
			Previous: jsonKey(both.previous), Kernel: jsonKey(both.kernel), Recent: both.uses, Gap: exportMoments(&both.gap.Moments),
		})
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("export profile of %s: %w", p.ID.Workload, err)
	}
	return append(text, '\n'), nil
}

func (k *Kernel) export(key uint64) jsonKernel {
	out := jsonKernel{
		Key: jsonKey(key), Name: k.Name, Module: jsonKey(k.Module), Graph: k.Graph,
		Grid: k.Shape.Grid, Block: k.Shape.Block, Dynamic: k.Shape.DynamicShared, Static: k.Shape.StaticShared,
		Registers: k.Shape.Registers, Threads: k.Shape.ThreadsMax, Resident: k.Shape.BlocksPerSM,
		Samples: k.Samples, Changes: k.Changes, Alone: k.Alone, Recent: k.uses,
	}
	for f := range Figure(figureCount) {
		if part, ok := k.Figures.Get(f); ok {
			if out.Figures == nil {
				out.Figures = map[string]float64{}
			}
			out.Figures[f.String()] = part
		}
	}
	if k.Time.Weight > 0 {
		out.Time = &jsonTime{jsonMoments: exportMoments(&k.Time), Min: k.Min, P90: k.Times.Quantile(0.9), Buckets: [][2]int64{}}
		for b, count := range k.Times.counts {
			if count != 0 {
				out.Time.Buckets = append(out.Time.Buckets, [2]int64{int64(middle(b)), int64(count)})
			}
		}
	}
	if k.Gap.Weight > 0 {
		gap := exportMoments(&k.Gap.Moments)
		out.Gap = &gap
	}
	if k.detect.logs.Weight > 0 {
		logs := exportMoments(&k.detect.logs)
		out.Logs = &logs
	}
	return out
}

func exportMoments(m *Moments) jsonMoments {
	return jsonMoments{Weight: m.Weight, Mean: m.Mean, Deviation: m.Deviation()}
}
