package script

import (
	"errors"
	"strings"
	"testing"
)

func TestParseRefuses(t *testing.T) {
	const head = "device H100\ncontext c\nstream s c\n"
	tests := []struct{ name, script, want string }{
		{"an empty script", "# nothing\n", "no device"},
		{"a script without a device", "context c\n", "line 1: the first line is"},
		{"a second device", head + "device A30\n", "line 4: a second device"},
		{"an unknown model", "device K80\n", `line 1: no model "K80"`},
		{"a context twice", head + "context c\n", `line 4: a second context "c"`},
		{"a percentage of 0", "device H100\ncontext c mps=0\n", "line 2: mps: 0 is not between 1 and 100"},
		{"a stream of no context", head + "stream x y\n", `line 4: no context "y"`},
		{"a stream without a context", head + "stream x\n", "line 4: want: stream NAME CONTEXT"},
		{"two legacy streams", head + "stream l c default=1\nstream k c default=1\n", "line 5: a second legacy stream"},
		{"a default of neither kind", head + "stream l c default=2\n", `line 4: default: "2" is neither`},
		{"a time before 0", head + "-1 s a mark\n", "line 4: time: -1 is not between"},
		{"a time that is no number", head + "soon s a mark\n", `line 4: time: "soon" is no number`},
		{"a time of NaN", head + "NaN s a mark\n", "line 4: time: NaN is not between"},
		{"an unknown stream", head + "0 x a mark\n", `line 4: no stream "x"`},
		{"an unknown kind", head + "0 s a jump\n", `line 4: no kind "jump"`},
		{"an unknown key", head + "0 s a kernel gird=1\n", `line 4: "gird=1" means nothing here`},
		{"a label twice", head + "0 s a mark\n0 s a mark\n", `line 5: a second label "a"`},
		{"too much bandwidth", head + "0 s a kernel dram=1.1\n", "line 4: dram: 1.1 is not between 0 and 1"},
		{"a copy without a queue", head + "0 s a copy bytes=1\n", "line 4: a copy needs queue="},
		{"a copy in no queue", head + "0 s a copy queue=h2h\n", `line 4: queue: "h2h" is none of`},
		{"a wait for nothing", head + "0 s a wait\n", "line 4: a wait needs for=LABEL"},
		{"a wait for a later line", head + "0 s a wait for=b\n0 s b mark\n", `line 4: for: no operation "b" above`},
		{"a wait for a later time", head + "5 s b mark\n0 s a wait for=b\n", `line 5: for: "b" is submitted later`},
		{"a line too long", head + strings.Repeat("x", maxLine+1), "line 4: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(strings.NewReader(tt.script))
			if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestLinesOfAnyOrderAreSubmittedByTime(t *testing.T) {
	s, err := Parse(strings.NewReader("device H100 # a comment\ncontext c\nstream s c\n" +
		"500 s late kernel time=100\n0 s early kernel time=1000\n"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := s.Write(&b, s.Play()); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "late 1000 1100\nearly 0 1000\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatNeverEndsHasDashes(t *testing.T) {
	s, err := Parse(strings.NewReader(oneContext + "0 s1 k mark\n0 s1 w mark\n0 s1 m mark\n"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := s.Write(&b, make([]Result, len(s.Items))); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "k - -\nw - -\nm - -\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzParse also plays what it accepts: no accepted script may hang or crash the model, and no operation ends before
// it starts.
func FuzzParse(f *testing.F) {
	f.Add(oneContext + "0 s1 a kernel grid=264 block=1024 time=1e5 dram=0.9 regs=32 smem=1024\n10 high b kernel grid=9999\n")
	f.Add(twoContexts + "0 s1 a kernel time=3000000\n0 s2 b copy queue=d2d bytes=1e6\n7 s1 c wait for=b\n")
	f.Add("device a30\ncontext c mps=30\nstream l c default=1\nstream b c default=0 priority=-1\n0 l m mark\n0 b n mark\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(strings.NewReader(text))
		if err != nil {
			if s != nil {
				t.Error("an error and a script")
			}
			return
		}
		for _, it := range s.Items {
			if it.Kernel.Time > 1e9 || it.Kernel.Grid > 1e6 {
				return // right, but with more quanta or waves than there is time for
			}
		}
		for i, r := range s.Play() {
			if r.Done && (r.Start < s.Items[i].At || r.End < r.Start) {
				t.Errorf("%s, submitted at %d: %+v", s.Items[i].Label, s.Items[i].At, r)
			}
		}
	})
}
