//go:build ignore

// Generate writes the workloads of this folder: kernel tables of a transformer
// as a roofline predicts them, so that they are of our own making and anybody
// can say where each number comes from.
//
//	go run generate.go
package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"log"
	"math"
	"os"
)

// The machine of the roofline: what a kernel reaches, not what a data sheet
// promises.
const (
	flopsPerSecond = 50e12
	bytesPerSecond = 1.2e12
	fixedNs        = 2000 // a kernel that does nothing
	tile           = 128  // a block of a matrix product computes tile x tile
	blockBytes     = 64 << 10
	elementBytes   = 2
)

// Values of the Profile column.
const (
	memory  = 0
	compute = 1
	unknown = -1
)

type kernel struct {
	name    string
	profile int
	bytes   float64
	sms     int
	ns      int
}

// matmul is an m x k by k x n product.
func matmul(name string, m, n, k float64) kernel {
	traffic := elementBytes * (m*k + k*n + m*n)
	return kernel{
		name: name, profile: compute, bytes: traffic,
		sms: int(math.Ceil(m/tile) * math.Ceil(n/tile)),
		ns:  fixedNs + int(1e9*math.Max(2*m*n*k/flopsPerSecond, traffic/bytesPerSecond)),
	}
}

// elementwise moves that many elements, in and out together.
func elementwise(name string, profile int, elements float64) kernel {
	traffic := elementBytes * elements
	return kernel{
		name: name, profile: profile, bytes: traffic,
		sms: max(1, int(math.Ceil(traffic/blockBytes))),
		ns:  fixedNs + int(1e9*traffic/bytesPerSecond),
	}
}

type shape struct {
	batch, sequence, hidden, inner, heads, layers, vocabulary float64
}

func (s shape) tokens() float64 { return s.batch * s.sequence }

func (s shape) scores() float64 { return s.batch * s.heads * s.sequence * s.sequence }

// attention is one of the two batched products, all heads in one launch.
func (s shape) attention(name string) kernel {
	k := matmul(name, s.sequence*s.batch*s.heads, s.sequence, s.hidden/s.heads)
	k.profile = unknown // small products: which side they are on depends on the device
	return k
}

func (s shape) forwardLayer() []kernel {
	t, h := s.tokens(), s.hidden
	return []kernel{
		elementwise("void norm_forward<half, float>(half const*, half*, int)", memory, 2*t*h),
		matmul("gemm_128x128_nt<half, half, float>", t, 3*h, h),
		s.attention("batched_gemm_64x64_tn<half, half, float>"),
		elementwise("void softmax_forward<half, 128>(half const*, half*, int)", memory, 2*s.scores()),
		s.attention("batched_gemm_64x64_nn<half, half, float>"),
		matmul("gemm_128x128_nt<half, half, float>", t, h, h),
		elementwise("void add_norm_forward<half, float>(half const*, half const*, half*, int)", memory, 3*t*h),
		matmul("gemm_128x128_nt<half, half, float>", t, s.inner, h),
		elementwise(`void pointwise<half, "gelu">(half const*, half*, int)`, memory, 2*t*s.inner),
		matmul("gemm_128x128_nt<half, half, float>", t, h, s.inner),
	}
}

// backwardLayer has two products for each of the forward pass: one for the
// gradient of the input, one for that of the weights.
func (s shape) backwardLayer() []kernel {
	t, h := s.tokens(), s.hidden
	pair := func(n, k float64) []kernel {
		return []kernel{
			matmul("gemm_128x128_nn<half, half, float>", t, k, n),
			matmul("gemm_128x128_tn<half, half, float>", k, n, t),
		}
	}
	var out []kernel
	out = append(out, pair(h, s.inner)...)
	out = append(out, elementwise(`void pointwise_grad<half, "gelu">(half const*, half const*, half*, int)`, memory, 3*t*s.inner))
	out = append(out, pair(s.inner, h)...)
	out = append(out, elementwise("void norm_backward<half, float>(half const*, half const*, half*, float*, int)", memory, 4*t*h))
	out = append(out, pair(h, h)...)
	for range 2 {
		out = append(out, s.attention("batched_gemm_64x64_nt<half, half, float>"), s.attention("batched_gemm_64x64_tn<half, half, float>"))
	}
	out = append(out, elementwise("void softmax_backward<half, 128>(half const*, half const*, half*, int)", memory, 3*s.scores()))
	out = append(out, pair(3*h, h)...)
	out = append(out, elementwise("void norm_backward<half, float>(half const*, half const*, half*, float*, int)", memory, 4*t*h))
	return out
}

// optimizerLayer updates the weights, group by group: master copy and two
// moments in 32 bits, the gradient in 16.
func (s shape) optimizerLayer() []kernel {
	var out []kernel
	for _, elements := range []float64{3 * s.hidden * s.hidden, s.hidden * s.hidden, s.hidden * s.inner, s.inner * s.hidden, 4 * s.hidden} {
		out = append(out, elementwise("void adam_step<float, half>(float*, float*, float*, half const*, float, float, float)", memory, 13*elements))
	}
	return out
}

func repeat(n float64, layer func() []kernel) []kernel {
	var out []kernel
	for range int(n) {
		out = append(out, layer()...)
	}
	return out
}

func inference(s shape) []kernel {
	out := []kernel{elementwise("void embed<half>(int const*, half const*, half*, int)", memory, 2*s.tokens()*s.hidden)}
	out = append(out, repeat(s.layers, s.forwardLayer)...)
	// Only the last token of each sequence is turned into a word.
	return append(out,
		elementwise("void norm_forward<half, float>(half const*, half*, int)", memory, 2*s.batch*s.hidden),
		matmul("gemv_tn<half, half, float>", s.batch, s.vocabulary, s.hidden))
}

func training(s shape) []kernel {
	out := []kernel{elementwise("void embed<half>(int const*, half const*, half*, int)", memory, 2*s.tokens()*s.hidden)}
	out = append(out, repeat(s.layers, s.forwardLayer)...)
	out = append(out,
		elementwise("void loss_forward<float>(half const*, int const*, float*, int)", unknown, s.tokens()*s.hidden),
		elementwise("void loss_backward<float>(half const*, int const*, half*, int)", unknown, 2*s.tokens()*s.hidden))
	out = append(out, repeat(s.layers, s.backwardLayer)...)
	return append(out, repeat(s.layers, s.optimizerLayer)...)
}

func write(path string, kernels []kernel) error {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	rows := [][]string{{"Name", "Profile", "Memory_footprint", "SM_usage", "Duration"}}
	total := 0
	for _, k := range kernels {
		rows = append(rows, []string{k.name, fmt.Sprint(k.profile), fmt.Sprint(int(k.bytes)), fmt.Sprint(k.sms), fmt.Sprint(k.ns)})
		total += k.ns
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	fmt.Printf("%s: %d kernels, %.3f ms\n", path, len(kernels), float64(total)/1e6)
	return os.WriteFile(path, text.Bytes(), 0o644)
}

func main() {
	log.SetFlags(0)
	large := shape{batch: 8, sequence: 128, hidden: 1024, inner: 4096, heads: 16, layers: 10, vocabulary: 32000}
	batch := shape{batch: 32, sequence: 128, hidden: 1024, inner: 4096, heads: 16, layers: 8, vocabulary: 32000}
	small := shape{batch: 4, sequence: 64, hidden: 512, inner: 2048, heads: 8, layers: 2, vocabulary: 8000}
	for path, kernels := range map[string][]kernel{
		"inference.csv":       inference(large),
		"training.csv":        training(batch),
		"small-inference.csv": inference(small),
		"small-training.csv":  training(small),
	} {
		if err := write(path, kernels); err != nil {
			log.Fatal(err)
		}
	}
}
