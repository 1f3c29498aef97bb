package timeline

import (
	"bufio"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// encoder writes the document event by event: a trace can be longer than memory.
type encoder struct {
	w     *bufio.Writer
	buf   []byte
	count int
	err   error
}

// argument is a value with its name, as JSON.
type argument struct {
	name  string
	value []byte
}

type arguments []argument

func number(name string, value uint64) argument {
	return argument{name, strconv.AppendUint(nil, value, 10)}
}

func text(name, value string) argument { return argument{name, quoted(value)} }

func flag(name string, value bool) argument { return argument{name, strconv.AppendBool(nil, value)} }

// micros is a length in µs, the unit of the format, to the ns.
func micros(name string, ns uint64) argument { return argument{name, appendMicros(nil, ns)} }

func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`) // a string can always be encoded
	}
	return b
}

func appendMicros(b []byte, ns uint64) []byte {
	b = strconv.AppendUint(b, ns/1000, 10)
	if rest := ns % 1000; rest != 0 {
		b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
	return b
}

func (e *encoder) begin() { e.put([]byte("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")) }

func (e *encoder) end(notes map[string]string) {
	e.buf = append(e.buf[:0], "\n],\"otherData\":{"...)
	for i, name := range slices.Sorted(maps.Keys(notes)) {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = append(append(append(e.buf, quoted(name)...), ':'), quoted(notes[name])...)
	}
	e.put(append(e.buf, "}}\n"...))
	if err := e.w.Flush(); e.err == nil {
		e.err = err
	}
}

func (e *encoder) put(b []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(b)
	}
}

// open begins an event on a track, 0 = on none; close ends it.
func (e *encoder) open(phase byte, pid uint64, tid int) {
	e.buf = e.buf[:0]
	if e.count++; e.count > 1 {
		e.buf = append(e.buf, ',')
	}
	e.buf = append(e.buf, "\n{\"ph\":\""...)
	e.buf = append(e.buf, phase)
	e.buf = append(e.buf, "\",\"pid\":"...)
	e.buf = strconv.AppendUint(e.buf, pid, 10)
	if tid != 0 {
		e.buf = append(e.buf, ",\"tid\":"...)
		e.buf = strconv.AppendInt(e.buf, int64(tid), 10)
	}
}

func (e *encoder) close(args arguments) {
	for i, a := range args {
		if i == 0 {
			e.buf = append(e.buf, ",\"args\":{"...)
		} else {
			e.buf = append(e.buf, ',')
		}
		e.buf = append(append(e.buf, quoted(a.name)...), ':')
		e.buf = append(e.buf, a.value...)
	}
	if len(args) > 0 {
		e.buf = append(e.buf, '}')
	}
	e.put(append(e.buf, '}'))
}

// slice is something with a beginning and an end on a track. name is JSON already.
func (e *encoder) slice(pid uint64, tid int, from, to int64, category string, name []byte, args arguments) {
	e.open('X', pid, tid)
	e.buf = append(e.buf, ",\"ts\":"...)
	e.buf = appendMicros(e.buf, uint64(from)) //nolint:gosec // from 0 on
	e.buf = append(e.buf, ",\"dur\":"...)
	e.buf = appendMicros(e.buf, uint64(to-from)) //nolint:gosec // to is not before from
	e.buf = append(e.buf, ",\"cat\":\""...)
	e.buf = append(e.buf, category...)
	e.buf = append(e.buf, "\",\"name\":"...)
	e.buf = append(e.buf, name...)
	e.close(args)
}

// instant is a mark on a process.
func (e *encoder) instant(pid uint64, tid int, at int64, name string, args arguments) {
	e.open('i', pid, tid)
	e.buf = append(e.buf, ",\"s\":\"p\",\"ts\":"...)
	e.buf = appendMicros(e.buf, uint64(at)) //nolint:gosec // from 0 on
	e.buf = append(e.buf, ",\"name\":"...)
	e.buf = append(e.buf, quoted(name)...)
	e.close(args)
}

// meta says something about a track, or about a process, where tid is 0.
func (e *encoder) meta(pid uint64, tid int, what string, arg argument) {
	e.open('M', pid, tid)
	e.buf = append(e.buf, ",\"name\":"...)
	e.buf = append(e.buf, quoted(what)...)
	e.close(arguments{arg})
}
