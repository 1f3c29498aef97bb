package profiles

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Bounds of a table: beyond them it is a mistake, or an attack on the reader's memory.
const (
	nsightRows  = 1 << 16
	nsightLine  = 4 << 20
	nsightSlack = 110 // percent of a peak: counters of several passes do not fit together exactly
)

// Columns of the table that say which launch a row is of.
const (
	columnID      = "ID"
	columnName    = "Kernel Name"
	columnBlock   = "Block Size"
	columnGrid    = "Grid Size"
	columnDynamic = "launch__shared_mem_per_block_dynamic"
)

// nsightFigures are the metrics that a figure is read from; the first one that a table has counts.
var nsightFigures = [figureCount][]string{
	DRAM:   {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed"},
	L2:     {"lts__throughput.avg.pct_of_peak_sustained_elapsed"},
	Issue:  {"sm__inst_issued.avg.pct_of_peak_sustained_active", "smsp__issue_active.avg.pct_of_peak_sustained_active"},
	FMA:    {"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"},
	FP64:   {"sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"},
	Tensor: {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"},
	SM:     {"sm__throughput.avg.pct_of_peak_sustained_elapsed"},
	L2Hit:  {"lts__t_sector_hit_rate.pct"},
}

// NsightKernel is what a table says of the launches of one kernel in one shape.
type NsightKernel struct {
	Name        string
	Grid, Block [3]uint32
	// DynamicShared is -1 if the table does not say it.
	DynamicShared int64
	Rows          int
	Figures       Figures // the means over the rows
}

// ReadNsight reads what Nsight Compute prints with --csv --page raw: a header, a row of units, and a
// row for each launch. What the program itself prints before the header and the tool's own lines are
// passed over. Kernels come in the order of their first rows. name is for messages.
func ReadNsight(name string, from io.Reader) ([]NsightKernel, error) {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(make([]byte, 0, 64<<10), nsightLine)
	var t nsightTable
	line := 0
	for scanner.Scan() {
		line++
		if err := t.line(strings.TrimSuffix(scanner.Text(), "\r")); err != nil {
			return nil, errdefs.Errorf(errdefs.Invalid, "%s:%d: %w", name, line, err)
		}
	}
	if err := scanner.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, errdefs.Errorf(errdefs.Invalid, "%s:%d: a line of more than %d bytes", name, line+1, nsightLine)
		}
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	switch {
	case t.columns == nil:
		return nil, errdefs.Errorf(errdefs.Invalid, "%s: no header that begins with %q: is it of --csv --page raw?", name, columnID)
	case t.rows == 0:
		return nil, errdefs.Errorf(errdefs.Invalid, "%s: no launches", name)
	}
	return t.kernels(), nil
}

// nsightTable is a table while it is read.
type nsightTable struct {
	columns map[string]int
	width   int
	figures [figureCount]int // columns, -1 = none
	dynamic float64          // bytes in a unit of that column
	rows    int
	order   []nsightLaunch
	sums    map[nsightLaunch]*nsightSum
}

type nsightLaunch struct {
	name        string
	grid, block [3]uint32
	dynamic     int64
}

type nsightSum struct {
	rows  int
	parts [figureCount]float64
	count [figureCount]int
}

func (t *nsightTable) line(text string) error {
	if t.columns == nil {
		if !strings.HasPrefix(text, `"ID",`) && !strings.HasPrefix(text, "ID,") {
			return nil // what came before
		}
		fields, err := csv.NewReader(strings.NewReader(text)).Read()
		if err != nil {
			return err
		}
		return t.header(fields)
	}
	if text == "" || strings.HasPrefix(text, "==") {
		return nil
	}
	fields, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return err
	}
	if len(fields) != t.width {
		return fmt.Errorf("%d fields, the header has %d", len(fields), t.width)
	}
	if fields[t.columns[columnID]] == "" && t.rows == 0 {
		return t.units(fields)
	}
	return t.row(fields)
}

func (t *nsightTable) header(fields []string) error {
	t.columns, t.width = make(map[string]int, len(fields)), len(fields)
	for i, f := range fields {
		if _, dup := t.columns[f]; dup && f != "" {
			return fmt.Errorf("column %s twice", f)
		}
		t.columns[f] = i
	}
	for _, want := range []string{columnID, columnName, columnBlock, columnGrid} {
		if _, ok := t.columns[want]; !ok {
			return fmt.Errorf("no column %s", want)
		}
	}
	any := false
	for f, names := range nsightFigures {
		t.figures[f] = -1
		for _, name := range slices.Backward(names) {
			if at, ok := t.columns[name]; ok {
				t.figures[f], any = at, true
			}
		}
	}
	if !any {
		return errors.New("none of the metrics that profiles use")
	}
	t.dynamic = 1
	t.sums = map[nsightLaunch]*nsightSum{}
	return nil
}

func (t *nsightTable) units(fields []string) error {
	for f, at := range t.figures {
		if at >= 0 && fields[at] != "%" && fields[at] != "" {
			return fmt.Errorf("%v is in %q, not in %%", Figure(f), fields[at])
		}
	}
	at, ok := t.columns[columnDynamic]
	if !ok {
		return nil
	}
	switch strings.TrimSuffix(fields[at], "/block") {
	case "byte", "":
	case "Kbyte":
		t.dynamic = 1e3
	case "Mbyte":
		t.dynamic = 1e6
	default:
		return fmt.Errorf("%s is in %q", columnDynamic, fields[at])
	}
	return nil
}

func (t *nsightTable) row(fields []string) error {
	if t.rows++; t.rows > nsightRows {
		return fmt.Errorf("more than %d launches", nsightRows)
	}
	l := nsightLaunch{name: fields[t.columns[columnName]], dynamic: -1}
	if l.name == "" {
		return fmt.Errorf("no %s", columnName)
	}
	var err error
	if l.grid, err = nsightSides(fields[t.columns[columnGrid]]); err != nil {
		return fmt.Errorf("%s: %w", columnGrid, err)
	}
	if l.block, err = nsightSides(fields[t.columns[columnBlock]]); err != nil {
		return fmt.Errorf("%s: %w", columnBlock, err)
	}
	if at, ok := t.columns[columnDynamic]; ok {
		bytes, known, err := nsightNumber(fields[at])
		if err != nil || bytes*t.dynamic > math.MaxUint32 {
			return fmt.Errorf("%s: %q is no number of bytes", columnDynamic, fields[at])
		}
		if known {
			l.dynamic = int64(math.Round(bytes * t.dynamic))
		}
	}
	sum := t.sums[l]
	if sum == nil {
		sum = &nsightSum{}
		t.sums[l] = sum
		t.order = append(t.order, l)
	}
	sum.rows++
	for f, at := range t.figures {
		if at < 0 {
			continue
		}
		percent, known, err := nsightNumber(fields[at])
		if err != nil || percent > nsightSlack {
			return fmt.Errorf("%v: %q is no percentage", Figure(f), fields[at])
		}
		if known {
			sum.parts[f] += min(percent, 100) / 100
			sum.count[f]++
		}
	}
	return nil
}

func (t *nsightTable) kernels() []NsightKernel {
	kernels := make([]NsightKernel, 0, len(t.order))
	for _, l := range t.order {
		sum := t.sums[l]
		k := NsightKernel{Name: l.name, Grid: l.grid, Block: l.block, DynamicShared: l.dynamic, Rows: sum.rows}
		for f, n := range sum.count {
			if n > 0 {
				k.Figures.Set(Figure(f), sum.parts[f]/float64(n))
			}
		}
		kernels = append(kernels, k)
	}
	return kernels
}

// nsightSides reads "(128, 1, 1)".
func nsightSides(text string) (sides [3]uint32, err error) {
	inner, ok := strings.CutPrefix(text, "(")
	inner, ok2 := strings.CutSuffix(inner, ")")
	parts := strings.Split(inner, ",")
	if !ok || !ok2 || len(parts) != len(sides) {
		return sides, fmt.Errorf("%q is not (X, Y, Z)", text)
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 32)
		if err != nil {
			return sides, fmt.Errorf("%q is not (X, Y, Z)", text)
		}
		sides[i] = uint32(n)
	}
	return sides, nil
}

// nsightNumber reads a number that is not negative, with commas between thousands or without. One
// that the tool could not measure is not known.
func nsightNumber(text string) (n float64, known bool, err error) {
	text = strings.TrimSpace(text)
	switch text {
	case "", "n/a", "(!) n/a", "nan", "-nan":
		return 0, false, nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	groups := strings.Split(whole, ",")
	for i, group := range groups {
		if len(groups) > 1 && (i > 0 && len(group) != 3 || i == 0 && (len(group) < 1 || len(group) > 3)) {
			return 0, false, fmt.Errorf("%q is no number", text)
		}
	}
	if strings.Contains(fraction, ",") {
		return 0, false, fmt.Errorf("%q is no number", text)
	}
	n, err = strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil || !(n >= 0) || math.IsInf(n, 0) {
		return 0, false, fmt.Errorf("%q is no number", text)
	}
	return n, true, nil
}

// AddNsight gives kernels of the profile the figures of a table, in place of those they had. A kernel
// is found by its key, which needs the mangled name and the dynamic shared memory; without the latter
// by the rest, if only one fits. It returns how many were found and those that were not.
func (p *Profile) AddNsight(table []NsightKernel) (found int, missing []NsightKernel) {
	for i := range table {
		t := &table[i]
		var k *Kernel
		if t.DynamicShared >= 0 {
			k = p.kernels.peek(LaunchKey(NameKey(t.Name), t.Grid, t.Block, uint32(t.DynamicShared)))
		} else {
			k = p.onlyOne(t)
		}
		if k == nil {
			missing = append(missing, *t)
			continue
		}
		found++
		merged := t.Figures
		merged.Merge(&k.Figures)
		k.Figures = merged
	}
	return found, missing
}

// onlyOne returns the one kernel with a name, grid and block, nil if there is none or are several.
func (p *Profile) onlyOne(t *NsightKernel) *Kernel {
	var only *Kernel
	for _, k := range p.kernels.all() {
		if k.Name != t.Name || k.Shape.Grid != t.Grid || k.Shape.Block != t.Block {
			continue
		}
		if only != nil {
			return nil
		}
		only = k
	}
	return only
}
