package profiles

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/heddle-project/heddle/runtime/sched"
)

// The form in which profiles are kept: these bytes, a version, the fields in the order of the
// functions below, and a checksum of everything before it. Counts and small numbers are variable in
// length, keys and fractions are little-endian words.
const (
	encodingMagic   = "HPRF"
	encodingVersion = 1
	checksumBytes   = 4
)

// Bits of the flags of an encoded kernel.
const (
	flagGraph = 1 << iota
	flagAlone
	flagsKnown = flagGraph | flagAlone
)

// Encode returns the profile as [Decode] reads it.
func (p *Profile) Encode() []byte {
	b := make([]byte, 0, 256+p.kernels.len()*192+p.pairs.len()*48)
	b = append(b, encodingMagic...)
	b = append(b, encodingVersion)
	b = appendText(b, p.ID.Workload)
	b = appendText(b, p.ID.Device)
	b = appendText(b, p.Label)
	b = appendSensitivity(b, &p.Sensitivity)
	b = binary.AppendUvarint(b, uint64(p.kernels.len()))
	for key, k := range p.kernels.all() {
		b = binary.LittleEndian.AppendUint64(b, key)
		b = k.append(b)
	}
	b = binary.AppendUvarint(b, uint64(p.pairs.len()))
	for _, both := range p.pairs.all() {
		b = binary.LittleEndian.AppendUint64(b, both.previous)
		b = binary.LittleEndian.AppendUint64(b, both.kernel)
		b = appendMoments(b, &both.gap.Moments)
		b = binary.AppendUvarint(b, uint64(both.uses))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func (k *Kernel) append(b []byte) []byte {
	b = appendText(b, k.Name)
	b = binary.LittleEndian.AppendUint64(b, k.Module)
	flags := byte(0)
	if k.Graph {
		flags |= flagGraph
	}
	if k.Alone {
		flags |= flagAlone
	}
	b = append(b, flags)
	for _, n := range k.Shape.fields() {
		b = binary.AppendUvarint(b, uint64(*n))
	}
	b = append(b, k.Figures.known)
	for f := range Figure(figureCount) {
		if part, ok := k.Figures.Get(f); ok {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(part)))
		}
	}
	for _, n := range []uint64{k.Samples, uint64(k.Changes), k.Min, uint64(k.uses)} {
		b = binary.AppendUvarint(b, n)
	}
	b = appendMoments(b, &k.Time)
	b = appendMoments(b, &k.Gap.Moments)
	b = appendMoments(b, &k.detect.logs)
	return k.Times.append(b)
}

// append writes the buckets that are not empty, each with its distance from the one before.
func (h *Histogram) append(b []byte) []byte {
	used := 0
	for _, count := range h.counts {
		if count != 0 {
			used++
		}
	}
	b = binary.AppendUvarint(b, uint64(used))
	before := -1
	for i, count := range h.counts {
		if count != 0 {
			b = binary.AppendUvarint(b, uint64(i-before))
			b = binary.AppendUvarint(b, uint64(count))
			before = i
		}
	}
	return b
}

// fields are the numbers of a shape, in the order in which they are kept.
func (s *Shape) fields() []*uint32 {
	return []*uint32{
		&s.Grid[0], &s.Grid[1], &s.Grid[2], &s.Block[0], &s.Block[1], &s.Block[2],
		&s.DynamicShared, &s.StaticShared, &s.Registers, &s.ThreadsMax, &s.BlocksPerSM,
	}
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// appendMoments writes nothing but a zero for moments without samples.
func appendMoments(b []byte, m *Moments) []byte {
	if m.Weight == 0 {
		return append(b, 0)
	}
	b = append(b, 1)
	for _, x := range []float64{m.Weight, m.Mean, m.M2} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// appendSensitivity writes a bit for each channel that was measured, then the measured rows.
func appendSensitivity(b []byte, s *sched.Sensitivity) []byte {
	measured := byte(0)
	for c, row := range s {
		if row != [4]float64{} {
			measured |= 1 << c
		}
	}
	b = append(b, measured)
	for _, row := range s {
		if row == [4]float64{} {
			continue
		}
		for _, x := range row {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b
}
