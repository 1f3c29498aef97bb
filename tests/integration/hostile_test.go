package integration

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
	alone float64 // ns of a request alone: it is the same each time
}

// serve brings up a node with a service, and measures it alone.
func serve(t *testing.T, opts node.Options) (*node.Node, *service) {
	t.Helper()
	n, _ := start(t, opts)
	s := &service{Client: n.Client(node.Hints{Priority: "high", Name: "service", Wrapper: preferred()}).Open(0)}
	s.Do("stream")
	s.Do("capture 0 1000000 %d", requestKernels)
	s.alone, _ = latencies(t, 30, s.Do("serve 30 %d", requestPauseUs))
	if s.alone < 1e6*requestKernels {
		t.Fatalf("a request of %d ms took %.3f ms alone", requestKernels, s.alone/1e6)
	}
	return n, s
}

// preferred lets a program have its processor when it wants it, where that is allowed: a thread that
// waits for it in the middle of a launch is the machine's noise, not the device's.
func preferred() []string {
	wrapper := []string{"chrt", "--rr", "1"}
	if exec.Command(wrapper[0], append(wrapper[1:], "true")...).Run() != nil {
		return nil
	}
	return wrapper
}

// p99 serves so many requests.
func (s *service) p99(t *testing.T, requests int) float64 {
	t.Helper()
	_, p99 := latencies(t, requests, s.Do("serve %d %d", requests, requestPauseUs))
	return p99
}

// latencies are what a client says of the requests that it served.
func latencies(t *testing.T, requests int, words []string) (p50, p99 float64) {
	t.Helper()
	figures := make([]float64, 3)
	for i := range figures {
		var err error
		if figures[i], err = strconv.ParseFloat(words[i], 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d requests: p50 %.3f, p99 %.3f, longest %.3f ms", requests, figures[0]/1e6, figures[1]/1e6, figures[2]/1e6)
	return figures[0], figures[1]
}

// check serves requests while the hostile client is at it.
func (s *service) check(t *testing.T) {
	t.Helper()
	s.judge(t, s.p99(t, 120))
}

func (s *service) judge(t *testing.T, p99 float64) {
	t.Helper()
	if p99 > bound*s.alone {
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
		n, s := serve(t, opts)
		bad := n.Client(node.Hints{Bare: true}).Open(0)
		bad.Do("flood 8 200000")
		if p99 := s.p99(t, 60); p99 < 1.2*s.alone {
			t.Errorf("p99 %.3f ms, alone %.3f: no harm is seen", p99/1e6, s.alone/1e6)
		}
	})
}

func TestAHostileClientThatWritesGarbage(t *testing.T) {
	for mode, name := range []string{"everywhere", "that looks possible"} {
		t.Run(name, func(t *testing.T) {
			hostileScenes(t, func(t *testing.T, opts node.Options) {
				n, s := serve(t, opts)
				bad := n.Client(node.Hints{Priority: "low", Name: "bad"}).Open(0)
				waitGate(n, bad, "yielding")
				bad.Do("flood 1 200000")
				bad.Do("scribble %d 7", mode)
				s.check(t)
				if bad.Number("flooded") == 0 {
					t.Error("it launched nothing")
				}
			})
		})
	}
}

func TestAHostileClientThatLaunchesAsFastAsItCan(t *testing.T) {
	for _, threads := range []int{1, 16} {
		t.Run(strconv.Itoa(threads)+" threads", func(t *testing.T) {
			hostileScenes(t, func(t *testing.T, opts node.Options) {
				n, s := serve(t, opts)
				bad := n.Client(node.Hints{Priority: "low", Name: "bad"}).Open(0)
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
		n, s := serve(t, opts)
		bad := n.Client(node.Hints{Priority: "low", Name: "bad"}).Open(0)
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

func TestAHostileClientWhoseStreamNeverGoesOn(t *testing.T) {
	hostileScenes(t, func(t *testing.T, opts node.Options) {
		n, s := serve(t, opts)
		bad := n.Client(node.Hints{Priority: "low", Name: "bad"}).Open(0)
		waitGate(n, bad, "yielding")
		bad.Do("stall")
		bad.Do("flood 1 200000")
		s.check(t)
		if bad.Number("flooded") == 0 {
			t.Error("it launched nothing")
		}
	})
}

// Kernels that are known to be longer than max_block are not let out any more.
func TestAHostileClientWithLongKernels(t *testing.T) {
	hostileScenes(t, func(t *testing.T, opts node.Options) {
		opts.Config = patient + "max_block = \"2ms\"\n"
		n, s := serve(t, opts)
		bad := n.Client(node.Hints{Priority: "low", Name: "bad"}).Open(0)
		waitGate(n, bad, "yielding")
		bad.Do("flood 1 20000000")
		n.Eventually("a long kernel is known", func() bool { s.p99(t, 5); return device(n, bad).GetHeld() })
		s.p99(t, 10)
		s.check(t)
		if bad.Number("flooded") == 0 {
			t.Error("it launched nothing")
		}
	})
}

// Nothing takes a kernel off a device that has begun, if not the device itself. Where it takes turns
// the service has every other one. Side by side it waits until somebody ends the program.
func TestAHostileClientWhoseKernelNeverEnds(t *testing.T) {
	const never = "flood 1 3600000000000"
	t.Run("in turns", func(t *testing.T) {
		n, s := serve(t, node.Options{})
		bad := n.Client(node.Hints{Priority: "low", Name: "bad"}).Open(0)
		waitGate(n, bad, "yielding")
		bad.Do(never)
		n.Eventually("it is on the device", func() bool { return s.p99(t, 5) > bound*s.alone })
		if p99 := s.p99(t, 60); p99 > 2.2*s.alone {
			t.Errorf("p99 %.3f ms, alone %.3f: more than every other turn is lost", p99/1e6, s.alone/1e6)
		}
		bad.Kill()
		s.p99(t, 5)
		s.check(t)
	})
	t.Run("side by side", func(t *testing.T) {
		n, s := serve(t, node.Options{MPS: true})
		bad := n.Client(node.Hints{Priority: "low", Name: "bad"}).Open(0)
		waitGate(n, bad, "yielding")
		bad.Do(never)
		n.Eventually("it is on the device", func() bool { return bad.Number("flooded") > 0 })
		s.Send("serve 1 0")
		if answer, ok := s.AnswerWithin(200 * time.Millisecond); ok {
			t.Fatalf("the service was answered beside it: %s", answer)
		}
		bad.Kill()
		s.Answer()
		s.check(t)
	})
}

// A client is stopped, or ends, right after it launched into a gap, and keeps the token of it.
func TestAHostileClientThatIsGoneWithTheToken(t *testing.T) {
	ends := map[string]func(*node.Node, *node.Client) *node.Client{
		"stopped": func(_ *node.Node, bad *node.Client) *node.Client {
			bad.Signal(syscall.SIGSTOP)
			<-time.After(20 * time.Millisecond)
			bad.Signal(syscall.SIGCONT)
			return bad
		},
		"dead": func(n *node.Node, bad *node.Client) *node.Client {
			bad.Kill()
			return n.Client(node.Hints{Priority: "low", Name: "next"}).Open(0)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			hostileScenes(t, func(t *testing.T, opts node.Options) {
				n, s := serve(t, opts)
				good := n.Client(node.Hints{Priority: "low", Name: "good"}).Open(0)
				bad := n.Client(node.Hints{Priority: "low", Name: "bad"}).Open(0)
				waitGate(n, bad, "yielding")
				good.Do("loop 200000 8")
				s.p99(t, 30) // its pauses are learnt
				before := looped(good)
				s.Send("serve 120 %d", requestPauseUs)
				var answer string
				n.Eventually("the requests are served", func() (done bool) {
					bad.Do("launch 200000")
					bad = end(n, bad)
					answer, done = s.AnswerWithin(time.Millisecond)
					return done
				})
				_, p99 := latencies(t, 120, strings.Fields(answer)[1:])
				s.judge(t, p99)
				if looped(good) == before {
					t.Error("the other low client stood still")
				}
			})
		})
	}
}
