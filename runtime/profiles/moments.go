package profiles

import "math"

// memory is how many samples statistics remember at most: beyond it the older half counts half.
// What a kernel took long ago should not outweigh what it takes now.
const memory = 4096

// Moments are mean and variance of a quantity, learnt one sample at a time (Welford, 1962) and
// mergeable (Chan, Golub and LeVeque, 1979). The zero value has seen nothing.
type Moments struct {
	Weight float64 // samples that it stands for, at most memory after an Add
	Mean   float64
	M2     float64 // sum of squared distances from the mean
}

// Add learns a sample.
func (m *Moments) Add(x float64) {
	if m.Weight >= memory {
		m.halve()
	}
	m.Weight++
	d := x - m.Mean
	m.Mean += d / m.Weight
	m.M2 += d * (x - m.Mean)
}

// halve forgets half of the weight. Mean and variance stay what they are.
func (m *Moments) halve() {
	m.Weight /= 2
	m.M2 /= 2
}

// Merge adds what o has seen, by weight.
func (m *Moments) Merge(o Moments) {
	if o.Weight == 0 {
		return
	}
	total := m.Weight + o.Weight
	d := o.Mean - m.Mean
	m.Mean += d * (o.Weight / total)
	m.M2 += o.M2 + d*d*(m.Weight*(o.Weight/total))
	m.Weight = total
	for m.Weight > memory {
		m.halve()
	}
}

// Variance is that of the quantity, as estimated from the samples; 0 with fewer than two.
func (m *Moments) Variance() float64 {
	if m.Weight < 2 {
		return 0
	}
	return max(0, m.M2/(m.Weight-1))
}

// Deviation is the standard deviation.
func (m *Moments) Deviation() float64 { return math.Sqrt(m.Variance()) }

// Error is the standard error of the mean as a part of the mean; infinite while it is unknown.
func (m *Moments) Error() float64 {
	if m.Weight < 2 || m.Mean <= 0 {
		return math.Inf(1)
	}
	return math.Sqrt(m.Variance()/m.Weight) / m.Mean
}

// sane reports whether the numbers can come from samples between 0 and top, but for rounding.
func (m *Moments) sane(top float64) bool {
	slack := top * 1e-9
	return m.Weight > 0 && m.Weight <= memory && m.Mean >= -1e-9 && m.Mean <= top+slack &&
		m.M2 >= 0 && m.M2 <= m.Weight*(top+slack)*(top+slack)
}
