package integration

import (
	"strconv"
	"testing"

	"github.com/heddle-project/heddle/tests/node"
)

// bound is how much longer, at most, the service's requests take beside a hostile client than alone:
// 99 of a hundred, in the time of the device. The machine's own noise is not in it.
const bound = 1.05

// The requests of the service: kernels of a millisecond, back to back, and a pause in which lower
// classes run. What the window lets be outstanding is a fiftieth of it.
const (
	requestKernels = 20
	requestPauseUs = 4000
)

// service is a client of class high whose latency is looked at.
type service struct {
	*node.Client
	alone float64 // p99
}

// serve prepares the service and measures it alone.
func serve(t *testing.T, high *node.Client) *service {
	t.Helper()
	s := &service{Client: high}
	high.Do("stream")
	high.Do("capture 0 1000000 %d", requestKernels)
	s.alone = s.p99(t, 60)
	if s.alone < 1e6*requestKernels {
		t.Fatalf("a request of %d ms took %.3f ms alone", requestKernels, s.alone/1e6)
	}
	return s
}

// p99 serves so many requests.
func (s *service) p99(t *testing.T, requests int) float64 {
	t.Helper()
	words := s.Do("serve %d %d", requests, requestPauseUs)
	figures := make([]float64, 3)
	for i := range figures {
		var err error
		if figures[i], err = strconv.ParseFloat(words[i], 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d requests: p50 %.3f, p99 %.3f, longest %.3f ms", requests, figures[0]/1e6, figures[1]/1e6, figures[2]/1e6)
	return figures[1]
}

// check serves requests while the hostile client is at it.
func (s *service) check(t *testing.T) {
	t.Helper()
	if p99 := s.p99(t, 120); p99 > bound*s.alone {
		t.Errorf("p99 %.3f ms, alone %.3f: %.3f times, want at most %.2f", p99/1e6, s.alone/1e6, p99/s.alone, bound)
	}
}

// hostileScenes are how a device can be shared, under the default policy.
func hostileScenes(t *testing.T, scene func(t *testing.T, opts node.Options)) {
	for name, opts := range map[string]node.Options{
		"in turns":     {},
		"side by side": {MPS: true},
	} {
		t.Run(name, func(t *testing.T) { scene(t, opts) })
	}
}

// What this file looks at can be seen: without Heddle the same client does harm.
func TestAFloodHurtsWithoutHeddle(t *testing.T) {
	hostileScenes(t, func(t *testing.T, opts node.Options) {
		n, c := start(t, opts, "high")
		s := serve(t, c[0])
		bad := n.Client(node.Hints{Bare: true}).Open(0)
		bad.Do("flood 8 200000")
		if p99 := s.p99(t, 60); p99 < 1.2*s.alone {
			t.Errorf("p99 %.3f ms, alone %.3f: no harm is seen", p99/1e6, s.alone/1e6)
		}
	})
}

func TestAHostileClientThatLaunchesAsFastAsItCan(t *testing.T) {
	for _, threads := range []int{1, 16} {
		t.Run(strconv.Itoa(threads)+" threads", func(t *testing.T) {
			hostileScenes(t, func(t *testing.T, opts node.Options) {
				n, c := start(t, opts, "high", "low")
				s := serve(t, c[0])
				bad := c[1]
				waitGate(n, bad, "yielding")
				bad.Do("flood %d 200000", threads)
				s.check(t)
				if bad.Number("flooded") == 0 {
					t.Error("it launched nothing")
				}
			})
		})
	}
}

func TestAHostileClientThatLiesAboutItsKernels(t *testing.T) {
	hostileScenes(t, func(t *testing.T, opts node.Options) {
		n, c := start(t, opts, "high", "low")
		s := serve(t, c[0])
		bad := c[1]
		waitGate(n, bad, "yielding")
		bad.Do("forge 1")
		bad.Do("flood 1 200000")
		s.p99(t, 60) // the lie is learnt
		s.check(t)
		if bad.Number("flooded") == 0 {
			t.Error("it launched nothing")
		}
	})
}
