package sched_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"unsafe"

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

// A question is one launch at the gate.
type question struct {
	in    sched.Input
	peers []sched.Peer
}

// decide asks the other side a batch of questions. The questions go out while the answers come in,
// so that no pipe stays full.
func (c *cGate) decide(tb testing.TB, questions []question) []sched.Answer {
	tb.Helper()
	raw := appendBytes(nil, &[2]uint32{uint32(len(questions))})
	for i := range questions {
		raw = appendQuestion(raw, &questions[i])
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.in.Write(raw)
		sent <- err
	}()
	answers := make([]sched.Answer, len(questions))
	var a abi.GateAnswer
	reply := make([]byte, len(questions)*abi.SizeofGateAnswer)
	if _, err := io.ReadFull(c.out, reply); err != nil {
		tb.Fatal(err)
	}
	if err := <-sent; err != nil {
		tb.Fatal(err)
	}
	for i := range answers {
		if _, err := binary.Decode(reply[i*abi.SizeofGateAnswer:], binary.NativeEndian, &a); err != nil {
			tb.Fatal(err)
		}
		answers[i] = sched.Answer{Result: sched.Result(a.Result), Peer: int(a.Peer), RetryNs: a.RetryNs}
	}
	return answers
}

func appendQuestion(raw []byte, q *question) []byte {
	in := &q.in
	raw = appendBytes(raw, &abi.GateInput{
		NowNs: in.NowNs, EstimateNs: in.EstimateNs, OutstandingNs: in.OutstandingNs, WindowNs: in.WindowNs,
		QuietNs: in.QuietNs, HeldSinceNs: in.HeldSinceNs, MaxHoldNs: in.MaxHoldNs,
		CorunNs: in.CoRunNs, MinGapNs: in.MinGapNs, MaxBlockNs: in.MaxBlockNs,
		Gate: uint32(in.Gate), MarginPpm: in.MarginPPM, HasToken: bit(in.HasToken), Beside: bit(in.Beside),
	})
	raw = appendBytes(raw, &[2]uint32{uint32(len(q.peers))})
	for _, p := range q.peers {
		raw = appendBytes(raw, &abi.GatePeer{
			Busy: p.Busy, Corun: bit(p.CoRun), IdleSinceNs: p.IdleSinceNs, NextLaunchNs: p.NextLaunchNs, WantNs: p.WantNs,
		})
	}
	return raw
}

// appendBytes appends a value as it lies in memory: the mirror's layout is C's.
func appendBytes[T any](raw []byte, value *T) []byte {
	return append(raw, unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))...)
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func compare(tb testing.TB, c *cGate, questions []question) {
	tb.Helper()
	for i, want := range c.decide(tb, questions) {
		q := &questions[i]
		if got := sched.Decide(&q.in, q.peers); got != want {
			tb.Fatalf("Go says %+v, C says %+v, to %+v with peers %+v", got, want, q.in, q.peers)
		}
	}
}

// roundsVariable sets how many random questions are asked: `make fuzz` asks ten million.
const roundsVariable = "HEDDLE_GATE_ROUNDS"

func TestGateInGoAndInCAgree(t *testing.T) {
	const batch = 1000
	count := rounds
	if text := os.Getenv(roundsVariable); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil || count < rounds {
			t.Fatalf("%s=%s is no number of at least %d", roundsVariable, text, rounds)
		}
	}
	c := startCGate(t)
	r := newRand(t)
	results := map[sched.Result]int{}
	questions := make([]question, batch)
	for asked := 0; asked < count; asked += batch {
		for i := range questions {
			q := &questions[i]
			q.in, q.peers = someInput(r)
			results[sched.Decide(&q.in, q.peers).Result]++
		}
		compare(t, c, questions)
	}
	t.Logf("answers: %v", results)
	for result := sched.Open; result <= sched.HeldLong; result++ {
		if results[result] < 100 {
			t.Errorf("only %d inputs had result %d: the generator misses it", results[result], result)
		}
	}
}

func FuzzGateInGoAndInC(f *testing.F) {
	c := startCGate(f)
	f.Add([]byte{}, uint16(0))
	f.Add(bytes.Repeat([]byte{0xff}, 160), uint16(0x1e))
	f.Add(bytes.Repeat([]byte{0, 1}, 80), uint16(0xb7))
	f.Fuzz(func(t *testing.T, raw []byte, flags uint16) {
		in, peers := inputFrom(raw, flags)
		compare(t, c, []question{{in, peers}})
	})
}

// inputFrom makes an input out of any bytes; what is missing is zero.
func inputFrom(raw []byte, flags uint16) (sched.Input, []sched.Peer) {
	next := func() uint64 {
		var word [8]byte
		raw = raw[copy(word[:], raw):]
		return binary.LittleEndian.Uint64(word[:])
	}
	in := sched.Input{
		NowNs: next(), EstimateNs: next(), OutstandingNs: next(), WindowNs: next(), QuietNs: next(),
		HeldSinceNs: next(), MaxHoldNs: next(), CoRunNs: next(), MinGapNs: next(), MaxBlockNs: next(),
		Gate: sched.Gate(flags & 0x1f), HasToken: flags&0x20 != 0, Beside: flags&0x80 != 0,
	}
	small := next()
	in.MarginPPM = uint32(small)
	if flags&0x40 != 0 { // unknown bits, too
		in.Gate |= sched.Gate(small>>32) << 6
	}
	var peers []sched.Peer
	for len(raw) != 0 && len(peers) < 8 {
		word := next()
		peers = append(peers, sched.Peer{
			Busy: uint32(word >> 1 & 3), CoRun: word&1 != 0, IdleSinceNs: next(), NextLaunchNs: next(), WantNs: next(),
		})
	}
	return in, peers
}
