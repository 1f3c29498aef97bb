package config

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// GangMax is the most ranks that a gang can have.
	GangMax = 1024
	// gangNameMax is the length of the longest name of a gang.
	gangNameMax = 63
)

// ParseGang reads NAME:N as people write it: the name of a gang and the number of its ranks. The name
// decides who belongs together, so it has plain characters only.
func ParseGang(s string) (name string, size int, err error) {
	name, ranks, _ := strings.Cut(s, ":")
	if name == "" || len(name) > gangNameMax || strings.ContainsFunc(name, notPlain) {
		return "", 0, fmt.Errorf("not NAME:N with a name of 1 to %d letters, digits, '.', '_' and '-'", gangNameMax)
	}
	n, err := strconv.ParseUint(ranks, 10, 32)
	if err != nil || n < 1 || n > GangMax {
		return "", 0, fmt.Errorf("not NAME:N with N from 1 to %d", GangMax)
	}
	return name, int(n), nil
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}
