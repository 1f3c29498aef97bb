package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEverySettingIsDocumented compares docs/configuration.md with the schema:
// every key with its default, every key of a rule, and an example that loads.
func TestEverySettingIsDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	cfg := Default(root)
	for _, e := range schema() {
		name := e.path
		if strings.HasPrefix(name, "class.") {
			name = name[strings.LastIndexByte(name, '.')+1:]
		}
		row := ""
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "| `"+name+"` |") {
				row = line
			}
		}
		if row == "" {
			t.Errorf("%s has no row", e.path)
		} else if value := e.get(&cfg); !strings.Contains(row, "`"+value+"`") {
			t.Errorf("%s: default %s is not in %s", e.path, value, row)
		}
	}
	for _, e := range ruleSchema() {
		if !strings.Contains(page, "\n| `"+e.key+"` |") {
			t.Errorf("rule key %s has no row", e.key)
		}
	}
	for _, e := range deviceSchema() {
		if !strings.Contains(page, "\n| `"+e.key+"` |") {
			t.Errorf("device key %s has no row", e.key)
		}
	}
	_, example, ok := strings.Cut(page, "\nAn example:\n")
	if !ok {
		t.Fatal("no example")
	}
	var text strings.Builder
	for line := range strings.Lines(example) {
		if code, isCode := strings.CutPrefix(line, "    "); isCode {
			text.WriteString(code)
		}
	}
	loaded, err := assemble(Source{}, "example", []byte(text.String()))
	if err != nil {
		t.Fatalf("the example: %v", err)
	}
	if len(loaded.Rules) != 3 {
		t.Errorf("the example has %d rules", len(loaded.Rules))
	}
}
