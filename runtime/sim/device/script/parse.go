package script

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/heddle-project/heddle/runtime/sim/device"
)

// ErrSyntax is what every complaint about a script wraps.
var ErrSyntax = errors.New("script")

// Bounds of what a script may ask for. Times stay far from the end of the clock and exact in a float64.
const (
	maxLine = 1 << 16
	maxTime = 1e15 // ns: eleven days
)

// Parse reads a script. A complaint names the line.
func Parse(r io.Reader) (*Script, error) {
	p := parser{contexts: map[string]int{}, streams: map[string]int{}, labels: map[string]int{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := p.line(words); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrSyntax, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrSyntax, n+1, err)
	}
	if p.script.GPU.SMs == 0 {
		return nil, fmt.Errorf("%w: no device", ErrSyntax)
	}
	return &p.script, nil
}

type parser struct {
	script                    Script
	contexts, streams, labels map[string]int
}

func (p *parser) line(words []string) error {
	if words[0] == "device" {
		return p.device(words[1:])
	}
	if p.script.GPU.SMs == 0 {
		return errors.New("the first line is: device MODEL")
	}
	switch words[0] {
	case "context":
		return p.context(words[1:])
	case "stream":
		return p.stream(words[1:])
	default:
		return p.item(words)
	}
}

func (p *parser) device(words []string) error {
	if p.script.GPU.SMs != 0 {
		return errors.New("a second device")
	}
	if len(words) != 1 {
		return errors.New("want: device MODEL")
	}
	gpu, ok := device.Lookup(words[0])
	if !ok {
		return fmt.Errorf("no model %q", words[0])
	}
	p.script.GPU = gpu
	return nil
}

func (p *parser) context(words []string) error {
	if len(words) == 0 {
		return errors.New("want: context NAME [mps=PERCENT]")
	}
	if err := fresh(p.contexts, "context", words[0]); err != nil {
		return err
	}
	c := Context{Name: words[0], Percent: device.Own}
	err := keys(words[1:], map[string]func(string) error{
		"mps": func(v string) error {
			percent, err := number(v, 1, 100)
			c.Percent = int(percent)
			return err
		},
	})
	p.script.Contexts = append(p.script.Contexts, c)
	return err
}

func (p *parser) stream(words []string) error {
	if len(words) < 2 {
		return errors.New("want: stream NAME CONTEXT [priority=P] [default=0|1]")
	}
	if err := fresh(p.streams, "stream", words[0]); err != nil {
		return err
	}
	context, ok := p.contexts[words[1]]
	if !ok {
		return fmt.Errorf("no context %q", words[1])
	}
	s := Stream{Name: words[0], Context: context}
	err := keys(words[2:], map[string]func(string) error{
		"priority": func(v string) error {
			priority, err := number(v, math.MinInt32, math.MaxInt32)
			s.Priority = int32(priority)
			return err
		},
		"default": func(v string) error {
			switch v {
			case "0":
				s.Kind = device.Blocking
			case "1":
				s.Kind = device.Legacy
			default:
				return fmt.Errorf("%q is neither 0 nor 1", v)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	for _, other := range p.script.Streams {
		if s.Kind == device.Legacy && other.Kind == device.Legacy && other.Context == context {
			return fmt.Errorf("a second legacy stream in context %q", words[1])
		}
	}
	p.script.Streams = append(p.script.Streams, s)
	return nil
}

func (p *parser) item(words []string) error {
	if len(words) < 4 {
		return errors.New("want: TIME STREAM LABEL KIND, then key=value")
	}
	at, err := number(words[0], 0, maxTime)
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	stream, ok := p.streams[words[1]]
	if !ok {
		return fmt.Errorf("no stream %q", words[1])
	}
	it := Item{At: int64(at), Stream: stream, Label: words[2]}
	switch rest := words[4:]; words[3] {
	case "kernel":
		err = kernel(&it, rest)
	case "copy":
		err = copying(&it, rest)
	case "mark":
		it.Kind = Mark
		err = keys(rest, nil)
	case "wait":
		err = p.wait(&it, rest)
	default:
		err = fmt.Errorf("no kind %q", words[3])
	}
	if err != nil {
		return err
	}
	if err := fresh(p.labels, "label", words[2]); err != nil {
		return err
	}
	p.script.Items = append(p.script.Items, it)
	return nil
}

func kernel(it *Item, words []string) error {
	k := device.Kernel{Grid: 1, Block: 32}
	whole := func(to *uint32, least float64) func(string) error {
		return func(v string) error {
			n, err := number(v, least, math.MaxUint32)
			*to = uint32(n)
			return err
		}
	}
	real := func(to *float64, most float64) func(string) error {
		return func(v string) (err error) {
			*to, err = number(v, 0, most)
			return err
		}
	}
	err := keys(words, map[string]func(string) error{
		"grid": func(v string) error {
			n, err := number(v, 1, 1<<53)
			k.Grid = uint64(n)
			return err
		},
		"block": whole(&k.Block, 1),
		"regs":  whole(&k.Registers, 0),
		"smem":  whole(&k.SharedMemory, 0),
		"time":  real(&k.Time, maxTime),
		"dram":  real(&k.DRAM, 1),
	})
	it.Kind, it.Kernel = Kernel, k
	return err
}

func copying(it *Item, words []string) error {
	known := false
	err := keys(words, map[string]func(string) error{
		"queue": func(v string) error {
			it.Queue, known = queueNamed(v)
			if !known {
				return fmt.Errorf("%q is none of h2d, d2h and d2d", v)
			}
			return nil
		},
		"bytes": func(v string) error {
			n, err := number(v, 0, 1<<53)
			it.Bytes = uint64(n)
			return err
		},
	})
	if err == nil && !known {
		err = errors.New("a copy needs queue=h2d, d2h or d2d")
	}
	it.Kind = Copy
	return err
}

func queueNamed(name string) (device.Queue, bool) {
	switch name {
	case "h2d":
		return device.HostToDevice, true
	case "d2h":
		return device.DeviceToHost, true
	case "d2d":
		return device.WithinDevice, true
	default:
		return 0, false
	}
}

func (p *parser) wait(it *Item, words []string) error {
	known := false
	err := keys(words, map[string]func(string) error{
		"for": func(v string) error {
			it.For, known = p.labels[v]
			switch {
			case !known:
				return fmt.Errorf("no operation %q above", v)
			case p.script.Items[it.For].At > it.At:
				return fmt.Errorf("%q is submitted later", v)
			}
			return nil
		},
	})
	if err == nil && !known {
		err = errors.New("a wait needs for=LABEL")
	}
	it.Kind = Wait
	return err
}

// fresh notes a name that must not be taken yet; its index is its turn.
func fresh(names map[string]int, what, name string) error {
	if _, taken := names[name]; taken {
		return fmt.Errorf("a second %s %q", what, name)
	}
	names[name] = len(names)
	return nil
}

// keys hands each key=value to the reader of that key.
func keys(words []string, readers map[string]func(string) error) error {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		read, ok := readers[key]
		if !ok {
			return fmt.Errorf("%q means nothing here", w)
		}
		if err := read(value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func number(text string, least, most float64) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", text)
	}
	if !(n >= least && n <= most) {
		return 0, fmt.Errorf("%s is not between %g and %g", text, least, most)
	}
	return n, nil
}
