package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Origin is one value in force and where it came from: "default",
// "file:LINE", "env:NAME" or "flag:NAME".
type Origin struct {
	Key    string
	Value  string // as TOML
	Origin string
}

// Origins lists every key in the order of the dump.
func (l *Loaded) Origins() []Origin {
	list := []Origin{{Key: "version", Value: strconv.Itoa(Version), Origin: "default"}}
	for _, e := range schema() {
		list = append(list, Origin{Key: e.path, Value: e.get(&l.Config), Origin: l.origin(e.path, "default")})
	}
	list = appendItems(list, l, "device", l.Devices, deviceSchema())
	return appendItems(list, l, "rule", l.Rules, ruleSchema())
}

func appendItems[T any](list []Origin, l *Loaded, table string, items []T, schema []itemEntry[T]) []Origin {
	for i := range items {
		for _, e := range schema {
			value := e.get(&items[i])
			if value == "" {
				continue
			}
			key := fmt.Sprintf("%s.%d.%s", table, i, e.key)
			list = append(list, Origin{Key: key, Value: value, Origin: l.origin(key, "default")})
		}
	}
	return list
}

func (l *Loaded) origin(key, otherwise string) string {
	if o, ok := l.origins[key]; ok {
		return o
	}
	return otherwise
}

// TOML writes the configuration in force with every default filled in. Load
// reads it back to the same values.
func (l *Loaded) TOML() string {
	var b strings.Builder
	table := ""
	for _, o := range l.Origins() {
		key := o.Key
		if i := strings.LastIndexByte(key, '.'); i >= 0 {
			if key[:i] != table {
				table = key[:i]
				fmt.Fprintf(&b, "\n%s\n", tableHeader(table))
			}
			key = key[i+1:]
		}
		fmt.Fprintf(&b, "%s = %s\n", key, o.Value)
	}
	return b.String()
}

func tableHeader(table string) string {
	for _, many := range []string{"rule", "device"} {
		if strings.HasPrefix(table, many+".") {
			return "[[" + many + "]]"
		}
	}
	return "[" + table + "]"
}
