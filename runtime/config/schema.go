package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// entry binds one key of the file to the place in Config that holds it. The
// table of entries is all that reading, dumping and documenting need.
type entry struct {
	path string
	kind kind // of a value that comes without quotes, from a flag or a variable
	set  func(*Config, literal) error
	get  func(*Config) string // as TOML
}

// schema lists every key outside [[rule]], in the order in which they are
// dumped: keys without a table first.
func schema() []entry {
	entries := []entry{
		text("api_socket", func(c *Config) *string { return &c.APISocket }),
		text("attach_dir", func(c *Config) *string { return &c.AttachDir }),
		text("state_dir", func(c *Config) *string { return &c.StateDir }),
		text("admin_group", func(c *Config) *string { return &c.AdminGroup }),
		text("nvml_library", func(c *Config) *string { return &c.NVMLLibrary }),
		choice("log.level", func(c *Config) *string { return &c.Log.Level },
			"debug", "info", "warn", "error"),
		choice("log.format", func(c *Config) *string { return &c.Log.Format }, "text", "json"),
		number("clients.max", func(c *Config) *int { return &c.Clients.Max }),
		number("clients.max_per_user", func(c *Config) *int { return &c.Clients.MaxPerUser }),
		duration("clients.handshake_timeout",
			func(c *Config) *time.Duration { return &c.Clients.HandshakeTimeout }),
		choice("scheduling.policy", func(c *Config) *string { return &c.Scheduling.Policy }, Policies()...),
		choice("scheduling.fail", func(c *Config) *FailMode { return &c.Scheduling.Fail },
			FailOpen, FailClosed),
		class("scheduling.priority", func(c *Config) *int { return &c.Scheduling.Priority }),
		number("scheduling.weight", func(c *Config) *int { return &c.Scheduling.Weight }),
		duration("scheduling.interval", func(c *Config) *time.Duration { return &c.Scheduling.Interval }),
		number("scheduling.measure", func(c *Config) *int { return &c.Scheduling.Measure }),
		duration("scheduling.quantum", func(c *Config) *time.Duration { return &c.Scheduling.Quantum }),
		percent("scheduling.slo", func(c *Config) *float64 { return &c.Scheduling.SLO }),
	}
	for n := range Classes {
		path := "class." + ClassName(n) + "."
		of := func(c *Config) *Class { return &c.Classes[n] }
		entries = append(entries,
			duration(path+"window", func(c *Config) *time.Duration { return &of(c).Window }),
			duration(path+"estimate", func(c *Config) *time.Duration { return &of(c).Estimate }),
			duration(path+"quiet", func(c *Config) *time.Duration { return &of(c).Quiet }),
			duration(path+"max_hold", func(c *Config) *time.Duration { return &of(c).MaxHold }),
			fraction(path+"margin", func(c *Config) *float64 { return &of(c).Margin }),
			duration(path+"min_gap", func(c *Config) *time.Duration { return &of(c).MinGap }),
			duration(path+"beside", func(c *Config) *time.Duration { return &of(c).Beside }),
			duration(path+"token", func(c *Config) *time.Duration { return &of(c).Token }),
			duration(path+"max_block", func(c *Config) *time.Duration { return &of(c).MaxBlock }),
			percent(path+"keep", func(c *Config) *float64 { return &of(c).Keep }),
		)
	}
	return entries
}

// canonical turns class.2.window into class.high.window.
func canonical(path string) string {
	parts := strings.Split(path, ".")
	if len(parts) < 2 || parts[0] != "class" {
		return path
	}
	if n, err := ParseClass(parts[1]); err == nil {
		parts[1] = ClassName(n)
	}
	return strings.Join(parts, ".")
}

// envName is the variable that sets a key: HEDDLED_LOG_LEVEL for log.level.
func envName(path string) string {
	return "HEDDLED_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

func want(l literal, k kind) error {
	if l.kind != k {
		return fmt.Errorf("want %v, have %v", k, l.kind)
	}
	return nil
}

func text(path string, at func(*Config) *string) entry {
	return entry{
		path: path,
		set: func(c *Config, l literal) error {
			if err := want(l, kindString); err != nil {
				return err
			}
			*at(c) = l.text
			return nil
		},
		get: func(c *Config) string { return quote(*at(c)) },
	}
}

func choice[T ~string](path string, at func(*Config) *T, allowed ...T) entry {
	return entry{
		path: path,
		set: func(c *Config, l literal) error {
			v, err := oneOf(l, allowed...)
			if err != nil {
				return err
			}
			*at(c) = v
			return nil
		},
		get: func(c *Config) string { return quote(string(*at(c))) },
	}
}

func oneOf[T ~string](l literal, allowed ...T) (T, error) {
	if err := want(l, kindString); err != nil {
		return "", err
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		if l.text == string(a) {
			return a, nil
		}
		names[i] = quote(string(a))
	}
	return "", fmt.Errorf("%s is not one of %s", quote(l.text), strings.Join(names, ", "))
}

func number(path string, at func(*Config) *int) entry {
	return entry{
		path: path,
		kind: kindInteger,
		set: func(c *Config, l literal) error {
			n, err := integer(l)
			if err == nil {
				*at(c) = n
			}
			return err
		},
		get: func(c *Config) string { return strconv.Itoa(*at(c)) },
	}
}

func integer(l literal) (int, error) {
	if err := want(l, kindInteger); err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(l.text, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("%s is out of range", l.text)
	}
	return int(n), nil
}

func class(path string, at func(*Config) *int) entry {
	return entry{
		path: path,
		set: func(c *Config, l literal) error {
			n, err := classOf(l)
			if err == nil {
				*at(c) = n
			}
			return err
		},
		get: func(c *Config) string { return classTOML(*at(c)) },
	}
}

func classOf(l literal) (int, error) {
	if l.kind != kindString && l.kind != kindInteger {
		return 0, fmt.Errorf("want a class, have %v", l.kind)
	}
	n, err := ParseClass(l.text)
	if err != nil {
		return 0, fmt.Errorf("%s is not a class: %w", quote(l.text), err)
	}
	return n, nil
}

func classTOML(class int) string {
	name := ClassName(class)
	if name == strconv.Itoa(class) {
		return name
	}
	return quote(name)
}

func duration(path string, at func(*Config) *time.Duration) entry {
	return entry{
		path: path,
		set: func(c *Config, l literal) error {
			if l.kind != kindString {
				return errors.New(`want a duration with its unit, such as "200us" or "1s"`)
			}
			d, err := time.ParseDuration(l.text)
			if err != nil {
				return fmt.Errorf(`%s is not a duration such as "200us" or "1s"`, quote(l.text))
			}
			*at(c) = d
			return nil
		},
		// Go prints a Greek letter for microseconds; people type "us".
		get: func(c *Config) string { return quote(strings.Replace(at(c).String(), "µ", "u", 1)) },
	}
}

func fraction(path string, at func(*Config) *float64) entry {
	return entry{
		path: path,
		kind: kindFloat,
		set: func(c *Config, l literal) error {
			if l.kind != kindFloat && l.kind != kindInteger {
				return fmt.Errorf("want a number, have %v", l.kind)
			}
			f, err := strconv.ParseFloat(strings.ReplaceAll(l.text, "_", ""), 64)
			if err != nil {
				return fmt.Errorf("%s is not a number", l.text)
			}
			*at(c) = f
			return nil
		},
		get: func(c *Config) string { return tomlFloat(*at(c)) },
	}
}

func percent(path string, at func(*Config) *float64) entry {
	return entry{
		path: path,
		set: func(c *Config, l literal) error {
			if err := want(l, kindString); err != nil {
				return errors.New(`want a percentage, such as "2%"`)
			}
			f, err := parsePercent(l.text)
			if err == nil {
				*at(c) = f
			}
			return err
		},
		get: func(c *Config) string { return quote(percentage(*at(c))) },
	}
}

// tomlFloat prints a float so that TOML reads it back as one.
func tomlFloat(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.ContainsAny(s, ".nI") {
		s += ".0"
	}
	return strings.ToLower(strings.TrimPrefix(s, "+"))
}

// quote writes a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, "\\u%04X", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
