package main

import (
	"fmt"
	"strings"
)

// initialisms are the words that Go writes in capitals.
var initialisms = map[string]bool{
	"abi": true, "cpu": true, "cuda": true, "gpu": true, "id": true, "ipc": true,
	"mig": true, "mps": true, "nvml": true, "ok": true, "pci": true, "pid": true, "ptx": true, "sm": true,
	"uid": true, "uuid": true,
}

// naming maps C names to Go names.
type naming struct {
	prefixes []string
	types    map[string]string // struct tag -> Go type
	values   map[string]string // enumerator -> Go constant
}

// newNaming names everything in the layout. C has tags and enumerators in two name spaces, Go in
// one: where an enumerator would take the name of a struct, all enumerators of that enum get its last
// word as a suffix (HEDDLE_MSG_HELLO of enum heddle_msg_type becomes MsgHelloType).
func newNaming(prefixes []string, l layout) (naming, error) {
	n := naming{prefixes: prefixes, types: map[string]string{}, values: map[string]string{}}
	taken := map[string]string{}
	take := func(goName, cName string) error {
		if prior, dup := taken[goName]; dup {
			return fmt.Errorf("%s and %s would both be %s in Go", prior, cName, goName)
		}
		taken[goName] = cName
		return nil
	}
	for _, s := range l.structs {
		n.types[s.name] = camel(n.strip(s.name))
		if err := take(n.types[s.name], s.name); err != nil {
			return n, err
		}
		if err := take(sizeName(n.types[s.name]), s.name+"'s size"); err != nil {
			return n, err
		}
	}
	for _, e := range l.enums {
		suffix := ""
		for _, v := range e.values {
			if _, clash := taken[camel(n.strip(v.name))]; clash {
				suffix = camel(e.name[strings.LastIndexByte(e.name, '_')+1:])
			}
		}
		for _, v := range e.values {
			name := camel(n.strip(v.name)) + suffix
			if err := take(name, v.name); err != nil {
				return n, err
			}
			n.values[v.name] = name
		}
	}
	return n, nil
}

func sizeName(goType string) string { return "Sizeof" + goType }

func (n naming) strip(name string) string {
	for _, p := range n.prefixes {
		if len(name) > len(p) && strings.EqualFold(name[:len(p)], p) {
			return name[len(p):]
		}
	}
	return name
}

// camel turns snake_case or SNAKE_CASE into an exported Go name.
func camel(snake string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(strings.ToLower(snake), "_") {
		switch {
		case word == "":
		case initialisms[word]:
			b.WriteString(strings.ToUpper(word))
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
