package profiles

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"path"
	"strings"
	"unicode"
)

// Identity is what is known of a process from which its workload follows.
type Identity struct {
	// Tenant owns the profile; empty = profiles are shared by all. Where tenants do not trust each
	// other it must be set: names and arguments are whatever a process says.
	Tenant     string
	Name       string // given with --name
	Image      string // digest of its container's image
	Command    string // with its arguments
	Executable string // path
}

// labelMax is how many bytes a label has at most.
const labelMax = 96

// Key is the workload's key: of its name if it has one, else of the image's digest and the command,
// else of the executable and the command. It is empty if none is known: such a process keeps no
// profile. Two workloads that differ in any part have different keys.
func (id *Identity) Key() string {
	switch {
	case id.Name != "":
		return digest("name", id.Tenant, id.Name)
	case id.Image != "":
		return digest("image", id.Tenant, id.Image, id.Command)
	case id.Executable != "":
		return digest("exe", id.Tenant, id.Executable, id.Command)
	}
	return ""
}

// digest hashes the parts, each with its length before it, so that no two lists look the same.
func digest(kind string, parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return kind + ":" + hex.EncodeToString(h.Sum(nil)[:16])
}

// Label is what people see of the workload.
func (id *Identity) Label() string {
	text := id.Name
	switch {
	case id.Name != "":
	case id.Image != "":
		image := strings.TrimPrefix(id.Image, "sha256:")
		text = strings.TrimSpace(image[:min(len(image), 12)] + " " + id.Command)
	case id.Command != "":
		text = id.Command
	case id.Executable != "":
		text = path.Base(id.Executable)
	}
	return printable(text, labelMax)
}

// printable cuts a text to so many bytes of letters that can be shown.
func printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
