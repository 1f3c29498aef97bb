package profiles

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

func figuresOf(parts map[Figure]float64) Figures {
	var f Figures
	for which, part := range parts {
		f.Set(which, part)
	}
	return f
}

func TestAnNsightTableIsRead(t *testing.T) {
	file, err := os.Open("testdata/nsight.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := ReadNsight("nsight.csv", file)
	if err != nil {
		t.Fatal(err)
	}
	want := []NsightKernel{
		{
			Name: "saxpy", Grid: [3]uint32{4096, 1, 1}, Block: [3]uint32{256, 1, 1}, Rows: 2,
			Figures: figuresOf(map[Figure]float64{DRAM: 0.85, L2: 0.4155, Issue: 0.13, FMA: 0.055, FP64: 0, Tensor: 0, SM: 0.21, L2Hit: 0.333}),
		},
		{
			Name: "_Z4gemmPKfS0_Pf", Grid: [3]uint32{60, 48, 1}, Block: [3]uint32{128, 1, 1}, DynamicShared: 49152, Rows: 1,
			Figures: figuresOf(map[Figure]float64{DRAM: 0.1423, L2: 0.298, Issue: 0.2656, FMA: 0.1, Tensor: 0.4845, SM: 0.484, L2Hit: 0.881}),
		},
		{
			Name: "reduce", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1024, 1, 1}, Rows: 1,
			Figures: figuresOf(map[Figure]float64{DRAM: 0.01, L2: 0.01, Issue: 1, FMA: 0.01, FP64: 0, Tensor: 0, SM: 0.02, L2Hit: 0.5}),
		},
	}
	short := cmp.Comparer(func(a, b float32) bool { return a-b < 1e-6 && b-a < 1e-6 })
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Figures{}), short); diff != "" {
		t.Error(diff)
	}

	p := New(ID{"w", "d"})
	key := LaunchKey(NameKey("saxpy"), [3]uint32{4096, 1, 1}, [3]uint32{256, 1, 1}, 0)
	for range 10 {
		p.Observe(took(key, 100*us))
	}
	found, missing := p.AddNsight(got)
	if found != 1 || len(missing) != 2 || p.Kernel(key).Class(h100) != ClassMemory || p.Len() != 1 {
		t.Errorf("%d found, missing %+v, class %v", found, missing, p.Kernel(key).Class(h100))
	}
	if d := p.Demand(h100); !d.Vector.Known || d.Vector.Use[0] < 0.84 || d.DRAM < 0.84 {
		t.Errorf("demand %+v", d)
	}
}

func TestFiguresOfALaterTableReplaceEarlierOnes(t *testing.T) {
	p := New(ID{"w", "d"})
	p.Describe(Description{Key: 1, Name: "k", Shape: Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, DynamicShared: 1}})
	p.Describe(Description{Key: 2, Name: "k", Shape: Shape{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1}, DynamicShared: 1}})
	p.Describe(Description{Key: 3, Name: "k", Shape: Shape{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1}, DynamicShared: 2}})
	p.Kernel(1).Figures = figuresOf(map[Figure]float64{DRAM: 0.1, L2: 0.2})
	row := func(grid uint32) NsightKernel {
		return NsightKernel{
			Name: "k", Grid: [3]uint32{grid, 1, 1}, Block: [3]uint32{32, 1, 1}, DynamicShared: -1,
			Figures: figuresOf(map[Figure]float64{DRAM: 0.5}),
		}
	}
	found, missing := p.AddNsight([]NsightKernel{row(1), row(2), row(3)})
	if found != 1 || len(missing) != 2 {
		t.Errorf("%d found, missing %+v; two kernels fit the second row and none the third", found, missing)
	}
	dram, _ := p.Kernel(1).Figures.Get(DRAM)
	l2, _ := p.Kernel(1).Figures.Get(L2)
	if dram != 0.5 || !near(l2, float64(float32(0.2))) {
		t.Errorf("DRAM %g, L2 %g", dram, l2)
	}
}

const (
	nsightHead = `"ID","Kernel Name","Block Size","Grid Size","launch__shared_mem_per_block_dynamic","dram__throughput.avg.pct_of_peak_sustained_elapsed"` + "\n"
	nsightUnit = `"","","","","byte/block","%"` + "\n"
	nsightRow  = `"0","k","(32, 1, 1)","(4, 1, 1)","1,024","50"` + "\n"
)

func TestNsightTablesOfOtherForms(t *testing.T) {
	tests := []struct {
		name, table string
		dynamic     int64
		dram        float64
	}{
		{"thousands with commas", nsightHead + nsightUnit + nsightRow, 1024, 0.5},
		{"without units", nsightHead + nsightRow, 1024, 0.5},
		{"lines that end as on Windows", strings.ReplaceAll(nsightHead+nsightUnit+nsightRow, "\n", "\r\n"), 1024, 0.5},
		{"without a last line end", nsightHead + strings.TrimSuffix(nsightRow, "\n"), 1024, 0.5},
		{"without quotes", "ID,Kernel Name,Block Size,Grid Size,dram__throughput.avg.pct_of_peak_sustained_elapsed\n" + `0,k,"(32, 1, 1)","(4, 1, 1)",50`, -1, 0.5},
		{"shared memory was not measured", nsightHead + strings.Replace(nsightRow, "1,024", "n/a", 1), -1, 0.5},
		{"in thousands of bytes", nsightHead + strings.Replace(nsightUnit, "byte", "Kbyte", 1) + strings.Replace(nsightRow, "1,024", "1.024", 1), 1024, 0.5},
		{"a little more than the peak", nsightHead + strings.Replace(nsightRow, `"50"`, `"100.7"`, 1), 1024, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadNsight("t", strings.NewReader(tt.table))
			if err != nil || len(got) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			if dram, ok := got[0].Figures.Get(DRAM); got[0].DynamicShared != tt.dynamic || dram != tt.dram || !ok {
				t.Errorf("%+v", got[0])
			}
		})
	}
}

func TestNsightTablesThatMakeNoSenseAreRefused(t *testing.T) {
	with := func(old, text string) string {
		return nsightHead + nsightUnit + strings.Replace(nsightRow, old, text, 1)
	}
	tests := []struct{ name, table, want string }{
		{"nothing", "", `t: no header that begins with "ID"`},
		{"the details page", `"Section","Metric"` + "\n", `t: no header`},
		{"no launches", nsightHead + nsightUnit, "t: no launches"},
		{"no kernel names", `"ID","Block Size"` + "\n", "t:1: no column Kernel Name"},
		{"a column twice", `"ID","ID"` + "\n", "t:1: column ID twice"},
		{"no metric of ours", `"ID","Kernel Name","Block Size","Grid Size"` + "\n", "t:1: none of the metrics"},
		{"a quote that does not end", nsightHead + `"0` + "\n", "t:2: "},
		{"output between the rows", nsightHead + nsightUnit + "step 1\n" + nsightRow, "t:3: 1 fields, the header has 6"},
		{"a figure in bytes", nsightHead + strings.Replace(nsightUnit, `"%"`, `"byte"`, 1), `t:2: dram is in "byte", not in %`},
		{"shared memory in pages", nsightHead + strings.Replace(nsightUnit, "byte/block", "page", 1), `t:2: launch__shared_mem_per_block_dynamic is in "page"`},
		{"no name", with(`"k"`, `""`), "t:3: no Kernel Name"},
		{"a grid of two sides", with("(4, 1, 1)", "(4, 1)"), `t:3: Grid Size: "(4, 1)" is not (X, Y, Z)`},
		{"a block that is negative", with("(32, 1, 1)", "(-32, 1, 1)"), "t:3: Block Size: "},
		{"shared memory that is no number", with("1,024", "much"), `"much" is no number of bytes`},
		{"too much shared memory", with("1,024", "5e9"), `"5e9" is no number of bytes`},
		{"a figure beyond its peak", with(`"50"`, `"150"`), `t:3: dram: "150" is no percentage`},
		{"a negative figure", with(`"50"`, `"-1"`), `"-1" is no percentage`},
		{"a decimal comma", with(`"50"`, `"50,5"`), `"50,5" is no percentage`},
		{"a comma in the fraction", with(`"50"`, `"50.123,456"`), "is no percentage"},
		{"infinitely much", with(`"50"`, `"inf"`), `"inf" is no percentage`},
		{"a second row of units", nsightHead + nsightUnit + nsightRow + nsightUnit, "t:4: no Kernel Name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadNsight("t", strings.NewReader(tt.table))
			if !errors.Is(err, errdefs.ErrInvalid) || got != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %v, want %q", got, err, tt.want)
			}
		})
	}
	if _, err := ReadNsight("t", iotest.ErrReader(os.ErrClosed)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	if _, err := ReadNsight("t", strings.NewReader(strings.Repeat("x", nsightLine+1))); !errors.Is(err, errdefs.ErrInvalid) {
		t.Errorf("a line without end: %v", err)
	}
}

func FuzzReadNsight(f *testing.F) {
	data, err := os.ReadFile("testdata/nsight.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add(nsightHead + nsightUnit + nsightRow)
	f.Add(nsightHead + strings.ReplaceAll(nsightRow, "50", "nan"))
	f.Fuzz(func(t *testing.T, table string) {
		got, err := ReadNsight("t", strings.NewReader(table))
		if (err == nil) != (got != nil) {
			t.Fatal("error and value, or neither")
		}
		for _, k := range got {
			for which := range Figure(figureCount) {
				if part, _ := k.Figures.Get(which); !(part >= 0 && part <= 1) {
					t.Fatalf("%v of %s is %g", which, k.Name, part)
				}
			}
			if k.Name == "" || k.DynamicShared < -1 || k.Rows < 1 {
				t.Fatalf("%+v", k)
			}
		}
	})
}
