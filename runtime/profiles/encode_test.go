package profiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"hash/crc32"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/sched"
)

// everything compares all that profiles hold, in the order in which they hold it.
func everything(p *Profile) []any {
	all := []any{p.ID, p.Label, p.Sensitivity, p.uses}
	for key, k := range p.kernels.all() {
		k := *k
		k.detect.up, k.detect.down = 0, 0 // the beginning of a change is not kept
		all = append(all, key, k)
	}
	for key, both := range p.pairs.all() {
		all = append(all, key, *both)
	}
	return all
}

func clone(t *testing.T, p *Profile) *Profile {
	t.Helper()
	again, err := Decode(p.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// fields are compared, but for what is not kept: what disturbed launches were seen of late.
var fields = cmp.Options{
	cmp.AllowUnexported(Kernel{}, Histogram{}, Figures{}, detector{}, pair{}),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".disturbed" || p.Last().String() == ".run" }, cmp.Ignore()),
}

func TestWhatIsKeptIsWhatIsRead(t *testing.T) {
	r := newRand(t)
	for i := range 12 {
		p := someProfile(r)
		switch i {
		case 0:
			p = New(ID{})
		case 1:
			p = New(ID{strings.Repeat("w", idMax), strings.Repeat("é", idMax/2)})
			p.Label = strings.Repeat("l", labelMax)
		case 2:
			p.Sensitivity[3] = [4]float64{1, 1.1, 1.5, 2}
			p.Sensitivity[5] = [4]float64{1, 1, 1, slowdownMax}
		}
		for _, k := range p.Kernels() {
			k.disturbed = 0 // is not kept
			if r.IntN(2) == 0 {
				k.Figures.Set(Figure(r.IntN(figureCount)), r.Float64())
			}
		}
		p.reassess() // Decode does
		again := clone(t, p)
		if diff := cmp.Diff(everything(p), everything(again), fields); diff != "" {
			t.Fatal(diff)
		}
		if !bytes.Equal(p.Encode(), again.Encode()) {
			t.Fatal("kept again it is something else")
		}
	}
}

func TestAnOrdinaryProfileIsSmall(t *testing.T) {
	p := New(ID{"name:resnet", "NVIDIA H100 80GB HBM3"})
	r := newRand(t)
	for key := range uint64(100) {
		p.Describe(Description{Key: key + 1, Name: strings.Repeat("x", 60)})
		for range 100 {
			s := took(key+1, steadyTime(r, 80*us, 0.05))
			s.Previous, s.HasGap, s.Gap = key, true, 300*us
			p.Observe(s)
		}
	}
	if n := len(p.Encode()); n > 100*300 {
		t.Errorf("%d bytes for 100 kernels and 100 pairs", n)
	}
}

// sealed puts head and checksum around the fields of a profile.
func sealed(version byte, body []byte) []byte {
	b := append([]byte(encodingMagic), version)
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func TestWhatIsCorruptIsRefused(t *testing.T) {
	whole := New(ID{"w", "d"})
	describe(whole, 1, 10)
	for range 5 {
		s := took(1, 100*us)
		s.Previous, s.Gap, s.HasGap = 1, 50*us, true
		whole.Observe(s)
	}
	good := whole.Encode()
	body := good[5 : len(good)-checksumBytes]
	none := []byte{0, 0, 0, 0}                                // ids, label, sensitivity
	kernel := append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0}, 0xff) // no name, no module, all flags
	tests := []struct {
		name, want string
		data       []byte
		kind       error
	}{
		{"nothing", "0 bytes that are none", nil, errdefs.ErrCorrupt},
		{"something else", "16 bytes that are none", []byte("not a profile...")[:16], errdefs.ErrCorrupt},
		{"cut off", "checksum", good[:len(good)-1], errdefs.ErrCorrupt},
		{"one bit is wrong", "checksum", append([]byte("HPRF\x01\x02"), good[6:]...), errdefs.ErrCorrupt},
		{"a newer version", "version 2", sealed(2, body), errdefs.ErrUnsupported},
		{"too long", "1 bytes too many", sealed(1, append(bytes.Clone(body), 0)), errdefs.ErrCorrupt},
		{"without a body", "no number", sealed(1, nil), errdefs.ErrCorrupt},
		{"a long id", "length of a text", sealed(1, []byte{0xff, 0xff, 3}), errdefs.ErrCorrupt},
		{"an id that is no text", "no UTF-8", sealed(1, []byte{1, 0xff, 0, 0, 0, 0, 0}), errdefs.ErrCorrupt},
		{"channels that do not exist", "channels", sealed(1, []byte{0, 0, 0, 0xff}), errdefs.ErrCorrupt},
		{"more kernels than are kept", "kernels: no number up to 1024", sealed(1, append(bytes.Clone(none), 0xff, 0xff, 3)), errdefs.ErrCorrupt},
		{"more kernels than bytes", "9 kernels in 0 bytes", sealed(1, append(bytes.Clone(none), 9)), errdefs.ErrCorrupt},
		{"unknown flags", "flags 0xff", sealed(1, append(append(append(bytes.Clone(none), 1), make([]byte, 8)...), kernel...)), errdefs.ErrCorrupt},
		{"a kernel twice", "again", sealed(1, twice(body)), errdefs.ErrCorrupt},
		{"moments without sense", "moments", sealed(1, bytes.Replace(bytes.Clone(body), float(100e3), float(math.NaN()), 1)), errdefs.ErrCorrupt},
		{"a negative mean", "moments", sealed(1, bytes.Replace(bytes.Clone(body), float(100e3), float(-1), 1)), errdefs.ErrCorrupt},
		{"a mean of years", "moments", sealed(1, bytes.Replace(bytes.Clone(body), float(100e3), float(1e17), 1)), errdefs.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Decode(tt.data)
			if !errors.Is(err, tt.kind) || p != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %v, want %q", p, err, tt.want)
			}
		})
	}
	for cut := range body { // each field may be the last one
		if p, err := Decode(sealed(1, body[:cut])); !errors.Is(err, errdefs.ErrCorrupt) || p != nil {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func float(x float64) []byte {
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
}

// twice gives the one kernel of a profile again: five bytes come before it, 4 of the ids' and 2 after.
func twice(body []byte) []byte {
	head := len("\x01w\x01d\x00\x00")
	pairs := 1 + 8 + 8 + 25 + 1
	kernel := body[head+1 : len(body)-pairs]
	b := append(bytes.Clone(body[:head]), 2)
	b = append(append(b, kernel...), kernel...)
	return append(b, body[len(body)-pairs:]...)
}

// FuzzDecode seals what it is given, so that it comes past the checksum.
func FuzzDecode(f *testing.F) {
	for _, p := range []*Profile{New(ID{}), New(ID{"w", "d"})} {
		encoded := p.Encode()
		f.Add(encoded[5 : len(encoded)-checksumBytes])
		describe(p, 1, 10)
		p.Kernel(1).Figures.Set(L2Hit, 0.5)
		p.Sensitivity[2] = [4]float64{1, 1.1, 1.2, 1.3}
		for i := range uint64(4) {
			s := took(i/2+1, 100*us)
			s.Previous, s.Gap, s.HasGap = i+1, 50*us, true
			p.Observe(s)
		}
		encoded = p.Encode()
		f.Add(encoded[5 : len(encoded)-checksumBytes])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := Decode(sealed(encodingVersion, body))
		if (err == nil) != (p != nil) {
			t.Fatal("error and value, or neither")
		}
		if err != nil {
			if !errors.Is(err, errdefs.ErrCorrupt) {
				t.Fatalf("kind of %v", err)
			}
			return
		}
		again, err := Decode(p.Encode())
		if err != nil {
			t.Fatalf("what was read cannot be kept: %v", err)
		}
		if !bytes.Equal(p.Encode(), again.Encode()) {
			t.Fatal("what was kept is read as something else")
		}
		// It is fit for use.
		for key := range p.Kernels() {
			p.Observe(took(key, 50*us))
			break
		}
		p.Table(h100, sched.Bound{SMs: p.Demand(h100).PeakSMs, DRAM: 1})
		if err := p.Merge(again); err != nil {
			t.Fatal(err)
		}
	})
}

// update writes the saved profile of the present version anew: only before its release.
var update = flag.Bool("update", false, "write testdata/v1.profile")

// savedProfile has something in every field that is kept.
func savedProfile() *Profile {
	p := New(ID{"name:0123", "NVIDIA H100 80GB HBM3"})
	p.Label = "résumé"
	p.Sensitivity[sched.FP64] = [4]float64{1, 1.25, 1.5, 2}
	p.Describe(Description{Key: math.MaxUint64, Name: "saxpy", Module: 1 << 63, Graph: true, Shape: Shape{
		Grid: [3]uint32{math.MaxUint32, 2, 3}, Block: [3]uint32{4, 5, 6}, DynamicShared: 7, StaticShared: 8, Registers: 9,
		ThreadsMax: 10, BlocksPerSM: 11,
	}})
	p.Kernel(math.MaxUint64).Figures.Set(L2Hit, 0.25)
	for i := range time.Duration(40) {
		p.Observe(took(math.MaxUint64, 50*us+i%4*us+i/30*500*us)) // it changes once
		p.Observe(Sample{Kernel: math.MaxUint64, Previous: 3, Gap: 300*us + i*us, HasGap: true})
	}
	p.Observe(beside(2, 20*us))
	p.reassess()
	return p
}

func TestProfilesThatWereKeptCanStillBeRead(t *testing.T) {
	const path = "testdata/v1.profile"
	if *update {
		if err := os.WriteFile(path, savedProfile().Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(everything(savedProfile()), everything(p), fields, rounded); diff != "" {
		t.Error(diff)
	}
	if k := p.Kernel(math.MaxUint64); k.Changes != 1 || p.pairs.len() != 1 || p.Len() != 2 {
		t.Errorf("%d changes, %d pairs, %d kernels: the saved profile misses something", k.Changes, p.pairs.len(), p.Len())
	}
	if !bytes.Equal(p.Encode(), data) {
		t.Error("kept again it is something else")
	}
}
