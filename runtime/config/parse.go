package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// kind is the TOML type of a literal.
type kind int

const (
	kindString kind = iota
	kindInteger
	kindFloat
	kindBool
	kindList
	kindOther
)

func (k kind) String() string {
	return [...]string{"a string", "an integer", "a number", "true or false", "a list", "a value"}[k]
}

// literal is a value as it stands in the file, in the environment or in a
// flag.
type literal struct {
	kind  kind
	text  string
	items []literal
	line  int
}

// statement is one assignment of the file with its full path. Elements of
// [[rule]] carry their index: rule.0.tenant.
type statement struct {
	path  string
	value literal
	line  int
}

// parse splits a TOML document into its assignments. The document is first
// decoded as a whole, which finds what a walk over single expressions cannot.
func parse(data []byte) ([]statement, []Problem) {
	var whole map[string]any
	if err := toml.Unmarshal(data, &whole); err != nil {
		return nil, []Problem{syntaxProblem(err)}
	}
	w := walker{tables: map[string]int{}}
	w.parser.Reset(data)
	for w.parser.NextExpression() {
		w.expression(w.parser.Expression())
	}
	if err := w.parser.Error(); err != nil {
		return nil, []Problem{syntaxProblem(err)}
	}
	return w.statements, nil
}

func syntaxProblem(err error) Problem {
	p := Problem{Text: strings.TrimPrefix(err.Error(), "toml: ")}
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		p.Line, _ = decode.Position()
	}
	return p
}

// walker gathers statements; prefix is the table that the next key values
// belong to.
type walker struct {
	parser     unstable.Parser
	prefix     string
	tables     map[string]int // elements of each [[table]] so far
	statements []statement
}

func (w *walker) expression(node *unstable.Node) {
	switch node.Kind {
	case unstable.Table:
		w.prefix, _ = w.key(node.Key())
	case unstable.ArrayTable:
		path, _ := w.key(node.Key())
		w.prefix = fmt.Sprintf("%s.%d", path, w.tables[path])
		w.tables[path]++
		// A [[rule]] without any key is still a rule.
		w.statements = append(w.statements, statement{path: w.prefix, line: w.line(node)})
	case unstable.KeyValue:
		w.keyValue(w.prefix, node)
	default:
	}
}

func (w *walker) keyValue(prefix string, node *unstable.Node) {
	path, line := w.key(node.Key())
	path = join(prefix, path)
	value := node.Value()
	if value.Kind == unstable.InlineTable {
		for it := value.Children(); it.Next(); {
			w.keyValue(path, it.Node())
		}
		return
	}
	w.statements = append(w.statements, statement{path: path, value: w.literal(value, line), line: line})
}

// key joins a dotted key and tells the line of its first part.
func (w *walker) key(it unstable.Iterator) (string, int) {
	var parts []string
	line := 0
	for it.Next() {
		if line == 0 {
			line = w.line(it.Node())
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), line
}

func (w *walker) line(node *unstable.Node) int {
	if node.Kind == unstable.ArrayTable {
		it := node.Key()
		if !it.Next() {
			return 0
		}
		node = it.Node()
	}
	return 1 + bytes.Count(w.parser.Data()[:node.Raw.Offset], []byte{'\n'})
}

func (w *walker) literal(node *unstable.Node, line int) literal {
	l := literal{text: string(node.Data), line: line}
	switch node.Kind {
	case unstable.String:
		l.kind = kindString
	case unstable.Integer:
		l.kind = kindInteger
	case unstable.Float:
		l.kind = kindFloat
	case unstable.Bool:
		l.kind = kindBool
	case unstable.Array:
		l.kind = kindList
		for it := node.Children(); it.Next(); {
			l.items = append(l.items, w.literal(it.Node(), line))
		}
	default:
		l.kind = kindOther
	}
	return l
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}
