package sched_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/runtime/sched"
)

// A vector is one line of tests/testdata/gate-vectors.txt; the file explains its own form.
type vector struct {
	name  string
	in    sched.Input
	peers []sched.Peer
	want  sched.Answer
}

func TestGateAnswersAsTheVectorsSay(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "tests", "testdata", "gate-vectors.txt"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	names := map[string]int{}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		v, err := parseVector(line)
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if before, dup := names[v.name]; dup {
			t.Errorf("lines %d and %d have the same name", before, i+1)
		}
		names[v.name] = i + 1
		count++
		t.Run(v.name, func(t *testing.T) {
			if got := sched.Decide(&v.in, v.peers); got != v.want {
				t.Errorf("line %d: got %+v, want %+v", i+1, got, v.want)
			}
		})
	}
	if count < 190 {
		t.Errorf("only %d vectors", count)
	}
}

func parseVector(line string) (vector, error) {
	var v vector
	name, rest, ok := strings.Cut(line, ": ")
	input, answer, ok2 := strings.Cut(rest, " => ")
	if !ok || !ok2 {
		return v, errors.New("not NAME: INPUT => ANSWER")
	}
	v.name = name
	for field := range strings.FieldsSeq(input) {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			return v, fmt.Errorf("%q is not key=value", field)
		}
		if err := v.set(key, value); err != nil {
			return v, fmt.Errorf("%s: %w", field, err)
		}
	}
	return v, v.setAnswer(answer)
}

func (v *vector) set(key, value string) error {
	wide := map[string]*uint64{
		"now": &v.in.NowNs, "estimate": &v.in.EstimateNs, "outstanding": &v.in.OutstandingNs,
		"window": &v.in.WindowNs, "quiet": &v.in.QuietNs, "held": &v.in.HeldSinceNs, "max_hold": &v.in.MaxHoldNs,
		"corun": &v.in.CoRunNs, "min_gap": &v.in.MinGapNs, "max_block": &v.in.MaxBlockNs,
	}
	var err error
	switch {
	case wide[key] != nil:
		*wide[key], err = number(value, math.MaxUint64)
	case key == "gate":
		v.in.Gate, err = gate(value)
	case key == "margin":
		var n uint64
		n, err = number(value, math.MaxUint32)
		v.in.MarginPPM = uint32(n)
	case key == "token":
		var n uint64
		n, err = number(value, math.MaxUint32)
		v.in.HasToken = n == 1
	case key == "beside":
		var n uint64
		n, err = number(value, math.MaxUint32)
		v.in.Beside = n == 1
	case key == "peer":
		err = v.addPeer(value)
	default:
		err = errors.New("unknown key")
	}
	return err
}

func (v *vector) addPeer(value string) error {
	parts := strings.Split(value, "/")
	if len(parts) != 4 && len(parts) != 5 {
		return errors.New("a peer has four or five numbers")
	}
	var n [5]uint64
	for i, part := range parts {
		most := uint64(math.MaxUint64)
		if i < 2 {
			most = math.MaxUint32
		}
		var err error
		if n[i], err = number(part, most); err != nil {
			return err
		}
	}
	v.peers = append(v.peers, sched.Peer{
		Busy: uint32(n[0]), CoRun: n[1] == 1, IdleSinceNs: n[2], NextLaunchNs: n[3], WantNs: n[4],
	})
	return nil
}

func (v *vector) setAnswer(text string) error {
	what, retry, hasRetry := strings.Cut(text, " retry=")
	v.want.RetryNs = sched.Never
	if hasRetry && retry != "never" {
		n, err := number(retry, math.MaxUint64)
		if err != nil {
			return err
		}
		v.want.RetryNs = n
	}
	kind, index, _ := strings.Cut(what, ":")
	switch kind {
	case "open":
		v.want.Result, v.want.RetryNs = sched.Open, v.in.NowNs
	case "closed":
		v.want.Result = sched.HeldClosed
	case "window":
		v.want.Result = sched.HeldWindow
	case "overrun":
		v.want.Result = sched.Overrun
	case "long":
		v.want.Result = sched.HeldLong
	case "peer", "token":
		n, err := strconv.Atoi(index)
		if err != nil {
			return err
		}
		v.want.Result, v.want.Peer = sched.HeldPeer, n
		if kind == "token" {
			v.want.Result = sched.HeldToken
		}
	default:
		return fmt.Errorf("unknown answer %q", what)
	}
	if held := kind == "window" || kind == "peer" || kind == "token"; held != hasRetry {
		return fmt.Errorf("answer %q and a retry time do not go together", text)
	}
	return nil
}

func number(text string, most uint64) (uint64, error) {
	if text == "max" {
		return most, nil
	}
	scale := uint64(1)
	for _, unit := range []struct {
		suffix string
		ns     uint64
	}{{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}} {
		if cut, ok := strings.CutSuffix(text, unit.suffix); ok {
			text, scale = cut, unit.ns
			break
		}
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err == nil && n > most/scale {
		err = strconv.ErrRange
	}
	return n * scale, err
}

func gate(text string) (sched.Gate, error) {
	bits := map[string]sched.Gate{
		"closed": sched.GateClosed, "yield": sched.GateYield, "publish": sched.GatePublish,
		"window": sched.GateWindow, "fill": sched.GateFill,
	}
	var g sched.Gate
	for name := range strings.SplitSeq(text, "+") {
		bit, ok := bits[name]
		if !ok {
			n, err := number(text, math.MaxUint32)
			return sched.Gate(n), err
		}
		g |= bit
	}
	return g, nil
}
