package script

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/sim/device"
)

// The differential test against the model in the software GPU. HEDDLE_REPLAY_SCRIPTS says how many scripts are tried,
// HEDDLE_REPLAY_SEED with which seed they begin, HEDDLE_REPLAY_TOOL names another tool than that of the build folder.
const (
	scriptsVariable = "HEDDLE_REPLAY_SCRIPTS"
	seedVariable    = "HEDDLE_REPLAY_SEED"
	usualScripts    = 500
)

// tolerance is what the page promises.
const tolerance = 0.01

func TestAgreesWithTheSoftwareGPU(t *testing.T) {
	tool := replayTool(t)
	seed := setting(t, seedVariable, uint64(time.Now().UnixNano()))
	count := setting(t, scriptsVariable, usualScripts)
	t.Logf("%d scripts from seed %d", count, seed)
	same := uint64(0)
	for i := range count {
		lines := randomScript(seed + i)
		diff, exact := compare(t, tool, lines)
		if diff != "" {
			lines = shrink(t, tool, lines)
			diff, _ = compare(t, tool, lines)
			t.Fatalf("seed %d: %s\n%s", seed+i, diff, strings.Join(lines, "\n"))
		}
		if exact {
			same++
		}
	}
	t.Logf("%d of %d scripts agree to the nanosecond", same, count)
}

func FuzzAgreesWithTheSoftwareGPU(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		lines := randomScript(seed)
		if diff, _ := compare(t, replayTool(t), lines); diff != "" {
			t.Errorf("seed %d: %s\n%s", seed, diff, strings.Join(lines, "\n"))
		}
	})
}

func replayTool(t *testing.T) string {
	t.Helper()
	tool := os.Getenv("HEDDLE_REPLAY_TOOL")
	if tool == "" {
		tool = "../../../../build/softgpu/bin/softgpu"
	}
	tool, err := filepath.Abs(tool)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tool); err != nil {
		t.Skipf("the software GPU is not built: %v", err)
	}
	return tool
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// compare plays a script on both models. It answers how they differ by more than the tolerance, or nothing; and
// whether they are equal to the nanosecond.
func compare(t *testing.T, tool string, lines []string) (string, bool) {
	t.Helper()
	text := strings.Join(lines, "\n") + "\n"
	s, err := Parse(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var got bytes.Buffer
	if err := s.Write(&got, s.Play()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), tool, "replay", "-")
	cmd.Stdin = strings.NewReader(text)
	cmd.Stderr = os.Stderr
	want, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s replay: %v\n%s", tool, err, text)
	}
	if bytes.Equal(got.Bytes(), want) {
		return "", true
	}
	return difference(strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")), false
}

func difference(got, want []string) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d lines here, %d there", len(got), len(want))
	}
	for i := range got {
		g, w := strings.Fields(got[i]), strings.Fields(want[i])
		if len(g) != len(w) {
			return fmt.Sprintf("here %q, there %q", got[i], want[i])
		}
		for j := range g {
			if !close(g[j], w[j]) {
				return fmt.Sprintf("here %q, there %q", got[i], want[i])
			}
		}
	}
	return ""
}

func close(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil {
		return a == b
	}
	return max(x, y)-min(x, y) <= max(x, y)*tolerance
}

// shrink leaves lines out as long as the models still differ.
func shrink(t *testing.T, tool string, lines []string) []string {
	t.Helper()
	for again := true; again; {
		again = false
		for i := len(lines) - 1; i > 0; i-- {
			fewer := append(append([]string{}, lines[:i]...), lines[i+1:]...)
			if _, err := Parse(strings.NewReader(strings.Join(fewer, "\n"))); err != nil {
				continue // somebody needs the line
			}
			if diff, _ := compare(t, tool, fewer); diff != "" {
				lines, again = fewer, true
			}
		}
	}
	return lines
}

// randomScript makes a script out of a seed. Sizes and times are round numbers half of the time, because events that
// fall together are where models differ.
func randomScript(seed uint64) []string {
	g := generator{rand.New(rand.NewPCG(seed, 1)), nil}
	models := device.Models()
	g.line("device %s", models[g.IntN(len(models))].Name)
	contexts, streams := 1+g.IntN(4), 0
	mixed := g.IntN(4)
	for c := range contexts {
		if mixed == 0 || mixed == 1 && g.IntN(2) == 0 {
			g.line("context c%d mps=%d", c, g.pick(100, 50, 25, 10, 1+g.IntN(100)))
		} else {
			g.line("context c%d", c)
		}
		legacy := g.IntN(2) == 0
		for range 1 + g.IntN(4) {
			kind := ""
			switch {
			case legacy:
				kind, legacy = " default=1", false
			case g.IntN(2) == 0:
				kind = " default=0"
			}
			g.line("stream s%d c%d priority=%d%s", streams, c, g.pick(0, 0, -1, -5, 3), kind)
			streams++
		}
	}
	at := 0
	reach := g.pick(0, 20_000, 1_000_000)
	n := 1 + g.IntN(40)
	for i := range n {
		if reach > 0 && g.IntN(3) > 0 {
			at += g.span(reach)
		}
		g.item(i, at, g.IntN(streams))
	}
	return g.lines
}

type generator struct {
	*rand.Rand
	lines []string
}

func (g *generator) line(format string, args ...any) {
	g.lines = append(g.lines, fmt.Sprintf(format, args...))
}

func (g *generator) pick(from ...int) int { return from[g.IntN(len(from))] }

// span is a time below a bound, often a round one.
func (g *generator) span(most int) int {
	if g.IntN(2) == 0 {
		return most / g.pick(1, 2, 4, 5, 10)
	}
	return g.IntN(most)
}

func (g *generator) item(i, at, stream int) {
	head := fmt.Sprintf("%d s%d o%d ", at, stream, i)
	switch kind := g.IntN(10); {
	case kind < 6:
		line := fmt.Sprintf("%skernel grid=%d block=%d time=%d", head, g.pick(1, 132, 264, 1320, 1+g.IntN(3000)),
			g.pick(32, 256, 1024, 1+g.IntN(1024)), g.span(g.pick(1, 10_000, 100_000, 5_000_000)))
		if g.IntN(2) == 0 {
			line += fmt.Sprintf(" dram=%.2f", g.Float64())
		}
		if g.IntN(3) == 0 {
			line += fmt.Sprintf(" regs=%d", g.pick(16, 32, 64, 255, g.IntN(256)))
		}
		if g.IntN(3) == 0 {
			line += fmt.Sprintf(" smem=%d", g.IntN(100_000))
		}
		g.line("%s", line)
	case kind == 6:
		g.line("%scopy queue=%s bytes=%d", head, []string{"h2d", "d2h", "d2d"}[g.IntN(3)], g.span(20_000_000))
	case kind == 7 || i == 0:
		g.line("%smark", head)
	default:
		g.line("%swait for=o%d", head, g.IntN(i))
	}
}
