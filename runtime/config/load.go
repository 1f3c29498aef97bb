package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Flag is a value given on the command line for a key of the file.
type Flag struct {
	Name  string // without dashes
	Key   string
	Value string
}

// Source is everything that a configuration is made of.
type Source struct {
	System
	// File to read; empty = DefaultFile, which need not exist.
	File  string
	Flags []Flag
}

// Loaded is a configuration with the origin of each value.
type Loaded struct {
	Config
	File string // empty if no file was read

	origins map[string]string
}

// fileVariable names the configuration file from the environment.
const fileVariable = "HEDDLED_CONFIG"

// fileMax bounds what is read as a configuration file: far above any real one,
// and far below what would hurt.
const fileMax = 1 << 20

// Load reads the file, the environment and the flags, and validates the
// result. The error is Problems if the content is at fault.
func Load(src Source) (*Loaded, error) {
	path := src.File
	if path == "" {
		path = src.getenv(fileVariable)
	}
	explicit := path != ""
	if !explicit {
		path = DefaultFile(src.System)
	}
	data, err := readFile(path)
	switch {
	case err == nil:
	case !explicit && errors.Is(err, fs.ErrNotExist):
		path, data = "", nil
	default:
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return assemble(src, path, data)
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > fileMax {
		return nil, errdefs.Errorf(errdefs.Invalid, "%s: not a regular file of at most %d bytes", path, fileMax)
	}
	return os.ReadFile(path)
}

// assemble applies all sources in the order of their precedence. It goes on
// after a problem, so that a person sees all of them at once.
func assemble(src Source, path string, data []byte) (*Loaded, error) {
	l := &Loaded{Config: Default(src.System), File: path, origins: map[string]string{}}
	var problems Problems
	if path != "" {
		problems = append(problems, l.applyFile(data)...)
	}
	problems = append(problems, l.applyEnviron(src.Environ)...)
	problems = append(problems, l.applyFlags(src.Flags)...)
	for i := range l.Rules {
		l.Rules[i].fill(l.Scheduling)
	}
	// A key that could not be read keeps its default, which is valid: no
	// problem is reported twice.
	for _, p := range validate(&l.Config) {
		problems = append(problems, l.locate(p))
	}
	problems.byLine()
	if err := problems.orNil(); err != nil {
		return nil, err
	}
	return l, nil
}

// locate adds the place of the value that a problem speaks of.
func (l *Loaded) locate(p Problem) Problem {
	origin, ok := l.origins[p.Key]
	if !ok {
		// Something about a whole rule stands where the rule begins.
		if parts := strings.Split(p.Key, "."); len(parts) > 2 {
			origin, ok = l.origins[strings.Join(parts[:2], ".")]
		}
	}
	if !ok {
		p.Origin = "default"
		return p
	}
	if line, ok := strings.CutPrefix(origin, "file:"); ok {
		p.File = l.File
		p.Line, _ = strconv.Atoi(line)
		return p
	}
	p.Origin = origin
	return p
}

func (l *Loaded) applyFile(data []byte) Problems {
	statements, problems := parse(data)
	if len(problems) == 0 {
		statements, problems = migrate(statements)
	}
	if len(problems) == 0 {
		entries := map[string]entry{}
		for _, e := range schema() {
			entries[e.path] = e
		}
		for _, s := range statements {
			if p := l.applyStatement(entries, s); p != nil {
				problems = append(problems, *p)
			}
		}
	}
	for i := range problems {
		problems[i].File = l.File
	}
	return problems
}

func (l *Loaded) applyStatement(entries map[string]entry, s statement) *Problem {
	fail := func(text string) *Problem {
		return &Problem{Line: s.line, Key: s.path, Text: text}
	}
	path := canonical(s.path)
	var err error
	switch table, rest, _ := strings.Cut(path, "."); table {
	case "rule":
		err = applyItem(l, &l.Rules, "rule", rest, s, ruleSchema(), newRule)
	case "device":
		err = applyItem(l, &l.Devices, "device", rest, s, deviceSchema(), func(origin string) DeviceRule {
			return DeviceRule{Origin: origin}
		})
	default:
		return l.applyValue(entries, path, s, fail)
	}
	if err != nil {
		return fail(err.Error())
	}
	return nil
}

func (l *Loaded) applyValue(entries map[string]entry, path string, s statement, fail func(string) *Problem) *Problem {
	e, ok := entries[path]
	if !ok {
		return fail(unknownKey(path, entries))
	}
	// The document has no key twice, but class.2 and class.high are the same.
	if first, ok := l.origins[path]; ok {
		return fail("already set at line " + strings.TrimPrefix(first, "file:"))
	}
	if err := e.set(&l.Config, s.value); err != nil {
		return fail(err.Error())
	}
	l.origins[path] = "file:" + strconv.Itoa(s.line)
	return nil
}

func unknownKey(path string, entries map[string]entry) string {
	best, distance := "", 3 // further away than two typing errors is no help
	for known := range entries {
		if d := editDistance(path, known); d < distance || d == distance && d < 3 && known < best {
			best, distance = known, d
		}
	}
	if best == "" {
		return "unknown key"
	}
	return "unknown key; did you mean " + best + "?"
}

// applyItem sets what follows "rule." or "device.": an index, and a key unless the statement only
// opens the item.
func applyItem[T any](l *Loaded, items *[]T, table, rest string, s statement, schema []itemEntry[T], fresh func(origin string) T) error {
	index, key, hasKey := strings.Cut(rest, ".")
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 || n > len(*items) {
		return fmt.Errorf("%ss are written as [[%s]]", table, table)
	}
	origin := "file:" + strconv.Itoa(s.line)
	if n == len(*items) {
		*items = append(*items, fresh(origin))
	}
	l.origins[s.path] = origin
	if !hasKey {
		return nil
	}
	for _, e := range schema {
		if e.key == key {
			return e.set(&(*items)[n], s.value)
		}
	}
	return errors.New("unknown key")
}

func (l *Loaded) applyEnviron(environ []string) Problems {
	var problems Problems
	byName := map[string]entry{}
	for _, e := range schema() {
		byName[envName(e.path)] = e
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "HEDDLED_") || name == fileVariable {
			continue
		}
		origin := "env:" + name
		e, ok := byName[name]
		if !ok {
			problems = append(problems, Problem{Origin: origin, Text: "no setting has this variable"})
			continue
		}
		if err := e.set(&l.Config, literal{kind: e.kind, text: value}); err != nil {
			problems = append(problems, Problem{Origin: origin, Key: e.path, Text: err.Error()})
			continue
		}
		l.origins[e.path] = origin
	}
	return problems
}

func (l *Loaded) applyFlags(flags []Flag) Problems {
	var problems Problems
	entries := map[string]entry{}
	for _, e := range schema() {
		entries[e.path] = e
	}
	for _, f := range flags {
		origin := "flag:" + f.Name
		e, ok := entries[f.Key]
		if !ok {
			problems = append(problems, Problem{Origin: origin, Key: f.Key, Text: "unknown key"})
			continue
		}
		if err := e.set(&l.Config, literal{kind: e.kind, text: f.Value}); err != nil {
			problems = append(problems, Problem{Origin: origin, Key: e.path, Text: err.Error()})
			continue
		}
		l.origins[e.path] = origin
	}
	return problems
}
