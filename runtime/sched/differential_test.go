package sched_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/sched"
)

// cGate is a running interpose/test/gate_vectors, which answers questions with the gate in C.
type cGate struct {
	in  io.WriteCloser
	out io.Reader
}

func startCGate(tb testing.TB) *cGate {
	tb.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		tb.Skipf("no C compiler: %v", err)
	}
	root := filepath.Join("..", "..", "interpose")
	program := filepath.Join(tb.TempDir(), "gate_vectors")
	build := exec.Command(cc, "-std=c11", "-O2", "-I"+filepath.Join(root, "include"),
		filepath.Join(root, "test", "gate_vectors.c"), "-o", program)
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build the gate in C: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "-")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			tb.Errorf("the gate in C: %v", err)
		}
	})
	return &cGate{in, out}
}

// decide asks the other side one question.
func (c *cGate) decide(tb testing.TB, in *sched.Input, peers []sched.Peer) sched.Answer {
	tb.Helper()
	question := []any{
		abi.GateInput{
			NowNs: in.NowNs, EstimateNs: in.EstimateNs, OutstandingNs: in.OutstandingNs, WindowNs: in.WindowNs,
			QuietNs: in.QuietNs, HeldSinceNs: in.HeldSinceNs, MaxHoldNs: in.MaxHoldNs,
			Gate: uint32(in.Gate), MarginPpm: in.MarginPPM, HasToken: bit(in.HasToken),
		},
		[2]uint32{uint32(len(peers))},
	}
	for _, p := range peers {
		question = append(question, abi.GatePeer{
			Busy: p.Busy, Corun: bit(p.CoRun), IdleSinceNs: p.IdleSinceNs, NextLaunchNs: p.NextLaunchNs,
		})
	}
	var raw []byte
	for _, part := range question {
		var err error
		if raw, err = binary.Append(raw, binary.NativeEndian, part); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := c.in.Write(raw); err != nil {
		tb.Fatal(err)
	}
	var a abi.GateAnswer
	if err := binary.Read(c.out, binary.NativeEndian, &a); err != nil {
		tb.Fatal(err)
	}
	return sched.Answer{Result: sched.Result(a.Result), Peer: int(a.Peer), RetryNs: a.RetryNs}
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func compare(tb testing.TB, c *cGate, in *sched.Input, peers []sched.Peer) {
	tb.Helper()
	if got, want := sched.Decide(in, peers), c.decide(tb, in, peers); got != want {
		tb.Fatalf("Go says %+v, C says %+v, to %+v with peers %+v", got, want, *in, peers)
	}
}

func TestGateInGoAndInCAgree(t *testing.T) {
	c := startCGate(t)
	r := newRand(t)
	results := map[sched.Result]int{}
	for range 20_000 {
		in, peers := someInput(r)
		compare(t, c, &in, peers)
		results[sched.Decide(&in, peers).Result]++
	}
	for result := sched.Open; result <= sched.Overrun; result++ {
		if results[result] < 100 {
			t.Errorf("only %d inputs had result %d: the generator misses it", results[result], result)
		}
	}
}

func FuzzGateInGoAndInC(f *testing.F) {
	c := startCGate(f)
	f.Add([]byte{}, uint8(0))
	f.Add(bytes.Repeat([]byte{0xff}, 120), uint8(0x1e))
	f.Add(bytes.Repeat([]byte{0, 1}, 60), uint8(0x17))
	f.Fuzz(func(t *testing.T, raw []byte, flags uint8) {
		in, peers := inputFrom(raw, flags)
		compare(t, c, &in, peers)
	})
}

// inputFrom makes an input out of any bytes; what is missing is zero.
func inputFrom(raw []byte, flags uint8) (sched.Input, []sched.Peer) {
	next := func() uint64 {
		var word [8]byte
		raw = raw[copy(word[:], raw):]
		return binary.LittleEndian.Uint64(word[:])
	}
	in := sched.Input{
		NowNs: next(), EstimateNs: next(), OutstandingNs: next(), WindowNs: next(), QuietNs: next(),
		HeldSinceNs: next(), MaxHoldNs: next(), Gate: sched.Gate(flags & 0x1f), HasToken: flags&0x20 != 0,
	}
	small := next()
	in.MarginPPM = uint32(small)
	if flags&0x40 != 0 { // unknown bits, too
		in.Gate |= sched.Gate(small>>32) << 5
	}
	var peers []sched.Peer
	for len(raw) != 0 && len(peers) < 8 {
		word := next()
		peers = append(peers, sched.Peer{
			Busy: uint32(word >> 1 & 3), CoRun: word&1 != 0, IdleSinceNs: next(), NextLaunchNs: next(),
		})
	}
	return in, peers
}
