package profiles

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"unicode/utf8"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/sched"
)

const (
	// idMax is how many bytes the parts of an ID may have.
	idMax = 256
	// logsMax is the largest logarithm of a time that is believed, and more.
	logsMax = 32
	// slowdownMax is the largest sensitivity that is believed.
	slowdownMax = 1000
)

// Decode reads what [Profile.Encode] wrote. The error is [errdefs.ErrCorrupt] if the bytes make no
// sense, and [errdefs.ErrUnsupported] if a newer version wrote them.
func Decode(data []byte) (*Profile, error) {
	head := len(encodingMagic) + 1
	if len(data) < head+checksumBytes || string(data[:len(encodingMagic)]) != encodingMagic {
		return nil, errdefs.Errorf(errdefs.Corrupt, "profile: %d bytes that are none", len(data))
	}
	body, sum := data[:len(data)-checksumBytes], data[len(data)-checksumBytes:]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(sum) {
		return nil, errdefs.Errorf(errdefs.Corrupt, "profile: the checksum is another one")
	}
	if version := data[head-1]; version != encodingVersion {
		return nil, errdefs.Errorf(errdefs.Unsupported, "profile: version %d, this heddled knows %d", version, encodingVersion)
	}
	d := decoder{data: body, at: head}
	p := d.profile()
	if d.err == nil && d.at != len(body) {
		d.fail("%d bytes too many", len(body)-d.at)
	}
	if d.err != nil {
		return nil, d.err
	}
	p.reassess()
	return p, nil
}

// decoder reads one field after the other. After the first error everything is zero.
type decoder struct {
	data []byte
	at   int
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = errdefs.Errorf(errdefs.Corrupt, "profile: byte %d: "+format, append([]any{d.at}, args...)...)
	}
}

func (d *decoder) profile() *Profile {
	p := New(ID{Workload: d.text(idMax), Device: d.text(idMax)})
	p.Label = d.text(labelMax)
	d.sensitivity(&p.Sensitivity)
	for range d.count(kernelsMax, "kernels") {
		key := d.word()
		var k Kernel
		d.kernel(&k)
		if d.err != nil {
			return p
		}
		if key == 0 || p.kernels.peek(key) != nil {
			d.fail("kernel %#x again, or without a key", key)
			return p
		}
		kept, _ := p.kernels.use(key)
		*kept = k
	}
	for range d.count(pairsMax, "pairs") {
		both := pair{previous: d.word(), kernel: d.word()}
		d.moments(&both.gap.Moments, float64(timeMax))
		both.uses = uint32(d.number(usesMax-1, "uses"))
		if d.err != nil {
			return p
		}
		key := PairKey(both.previous, both.kernel)
		if both.previous == 0 || both.kernel == 0 || p.pairs.peek(key) != nil {
			d.fail("pair of %#x and %#x again, or without a key", both.previous, both.kernel)
			return p
		}
		kept, _ := p.pairs.use(key)
		*kept = both
	}
	return p
}

func (d *decoder) kernel(k *Kernel) {
	k.Name = d.text(nameMax)
	k.Module = d.word()
	flags := d.byte()
	if flags&^flagsKnown != 0 {
		d.fail("flags %#x", flags)
	}
	k.Graph, k.Alone = flags&flagGraph != 0, flags&flagAlone != 0
	for _, n := range k.Shape.fields() {
		*n = uint32(d.number(math.MaxUint32, "shape"))
	}
	known := d.byte()
	for f := range Figure(figureCount) {
		if known&(1<<f) == 0 {
			continue
		}
		part := float64(math.Float32frombits(d.word32()))
		if !(part >= 0 && part <= 1) {
			d.fail("%v is %g", f, part)
			return
		}
		k.Figures.Set(f, part)
	}
	k.Samples = d.number(math.MaxUint64, "samples")
	k.Changes = uint32(d.number(math.MaxUint32, "changes"))
	k.Min = d.number(uint64(timeMax), "shortest time")
	k.uses = uint32(d.number(usesMax-1, "uses"))
	d.moments(&k.Time, float64(timeMax))
	d.moments(&k.Gap.Moments, float64(timeMax))
	d.moments(&k.detect.logs, logsMax)
	d.histogram(&k.Times)
}

func (d *decoder) histogram(h *Histogram) {
	at := -1
	for range d.count(bucketsCount, "buckets") {
		step, count := d.number(bucketsCount, "bucket"), d.number(memory, "count")
		at += int(step)
		if step == 0 || count == 0 || at >= bucketsCount {
			d.fail("bucket %d with %d times", at, count)
		}
		if d.err != nil {
			return
		}
		h.counts[at] = uint16(count)
		h.total += uint32(count)
	}
	if h.total > memory {
		d.fail("%d times, at most %d are remembered", h.total, memory)
	}
}

func (d *decoder) sensitivity(s *sched.Sensitivity) {
	measured := d.byte()
	if measured>>sched.Channels != 0 {
		d.fail("channels %#x", measured)
	}
	for c := range s {
		if measured&(1<<c) == 0 {
			continue
		}
		for i := range s[c] {
			x := math.Float64frombits(d.word())
			if !(x >= 0 && x <= slowdownMax) {
				d.fail("sensitivity %g", x)
				return
			}
			s[c][i] = x
		}
	}
}

func (d *decoder) moments(m *Moments, top float64) {
	switch present := d.byte(); present {
	case 0:
	case 1:
		for _, x := range []*float64{&m.Weight, &m.Mean, &m.M2} {
			*x = math.Float64frombits(d.word())
		}
		if !m.sane(top) {
			d.fail("moments %+v", *m)
			*m = Moments{}
		}
	default:
		d.fail("moments begin with %d", present)
	}
}

// take returns the next n bytes, nil if there are fewer.
func (d *decoder) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n > len(d.data)-d.at {
		d.fail("it ends here, %d bytes early", n-(len(d.data)-d.at))
		return nil
	}
	d.at += n
	return d.data[d.at-n : d.at]
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) word32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) word() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) number(most uint64, what string) uint64 {
	if d.err != nil {
		return 0
	}
	n, length := binary.Uvarint(d.data[d.at:])
	if length <= 0 || n > most {
		d.fail("%s: no number up to %d", what, most)
		return 0
	}
	d.at += length
	return n
}

// count is a number of things that follow, each of which takes at least one byte.
func (d *decoder) count(most int, what string) int {
	n := d.number(uint64(most), what)
	if n > uint64(len(d.data)-d.at) {
		d.fail("%d %s in %d bytes", n, what, len(d.data)-d.at)
		return 0
	}
	return int(n)
}

func (d *decoder) text(most int) string {
	b := d.take(int(d.number(uint64(most), "length of a text")))
	if !utf8.Valid(b) {
		d.fail("a text that is no UTF-8")
		return ""
	}
	return string(b)
}
