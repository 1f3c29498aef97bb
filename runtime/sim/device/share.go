package device

import "math"

// compete puts a kernel among those that want SMs, behind the ones of its priority that came earlier.
func (d *Device) compete(i int32) {
	s := &d.streams[d.ops[i].stream]
	at := len(d.ready)
	d.ready = append(d.ready, i)
	for ; at > 0 && s.priority < d.streams[d.ops[d.ready[at-1]].stream].priority; at-- {
		d.ready[at] = d.ready[at-1]
	}
	d.ready[at] = i
	ctx := &d.contexts[s.context]
	ctx.ready++
	if ctx.mps {
		d.slices.mpsReady++
	}
}

// lose takes a kernel off the books of its context.
func (d *Device) lose(ctx *context) {
	ctx.ready--
	if ctx.mps {
		d.slices.mpsReady--
	}
}

// withdraw takes a kernel that competes away, with the SMs that it holds.
func (d *Device) withdraw(i int32) {
	kept := d.ready[:0]
	for _, j := range d.ready {
		if j != i {
			kept = append(kept, j)
		}
	}
	d.ready = kept
	ctx := &d.contexts[d.streams[d.ops[i].stream].context]
	ctx.held -= d.ops[i].held
	d.lose(ctx)
}

// assign gives free SMs out within the group that runs, and sets the rate of every kernel.
func (d *Device) assign(t int64) {
	d.busy = 0
	if d.slices.target != none {
		for _, i := range d.ready {
			d.ops[i].rate = 0
		}
		return
	}
	free := d.gpu.SMs - d.heldByGroup()
	m := 0.0
	for _, i := range d.ready {
		o := &d.ops[i]
		o.rate = 0
		ctx := d.contextOf(o)
		if !d.slices.runs(d, o) {
			continue
		}
		give := min(o.want-o.held, free, ctx.cap-ctx.held)
		if give > 0 && o.held == 0 && o.progress <= 0 {
			o.start = t
		}
		o.held += give
		ctx.held += give
		free -= give
		m += o.dram * float64(o.held) / float64(o.want)
		d.busy += o.held
	}
	d.setRates(m)
}

// setRates sets the speed of the kernels that hold SMs, given the memory bandwidth that they ask for together.
func (d *Device) setRates(m float64) {
	short := false // somebody ahead wants SMs that its cap would allow
	for _, i := range d.ready {
		o := &d.ops[i]
		if !d.slices.runs(d, o) {
			continue
		}
		if o.held > 0 {
			o.rate = float64(o.held) / float64(o.want)
			if m > 1 {
				o.rate /= (1 - o.dram) + o.dram*m
			}
			o.boundary = 1
			if short {
				o.boundary = o.waveEnd()
			}
		}
		ctx := d.contextOf(o)
		short = short || o.held < o.want && (ctx.held < ctx.cap || ctx.cap == d.gpu.SMs)
	}
}

// waveEnd is the progress at which the present wave is over. A wave that ends at this moment is over already.
func (o *op) waveEnd() float64 {
	return min(1, (math.Floor(o.progress*o.waves+1e-6)+1)/o.waves)
}

func (d *Device) contextOf(o *op) *context { return &d.contexts[d.streams[o.stream].context] }
