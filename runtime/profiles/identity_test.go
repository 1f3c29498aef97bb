package profiles

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAWorkloadIsNamedByTheBestThatIsKnown(t *testing.T) {
	whole := Identity{Name: "resnet", Image: "sha256:0123456789abcdef", Command: "python serve.py", Executable: "/usr/bin/python3"}
	without := func(change func(*Identity)) Identity {
		id := whole
		change(&id)
		return id
	}
	noName := without(func(id *Identity) { id.Name = "" })
	noImage := without(func(id *Identity) { id.Name, id.Image = "", "" })
	tests := []struct {
		name        string
		id          Identity
		kind, label string
	}{
		{"a name", whole, "name:", "resnet"},
		{"an image", noName, "image:", "0123456789ab python serve.py"},
		{"an executable", noImage, "exe:", "python serve.py"},
		{"an executable without a command", Identity{Executable: "/opt/bin/train"}, "exe:", "train"},
		{"a command that names no executable", Identity{Command: "python serve.py"}, "", "python serve.py"},
		{"nothing", Identity{}, "", ""},
		{"letters that cannot be shown", Identity{Name: "a\x1b[2Jb\xff"}, "name:", "a?[2Jb?"},
		{"a long name", Identity{Name: strings.Repeat("é", 200)}, "name:", strings.Repeat("é", labelMax/2)},
	}
	seen := map[string]string{}
	for _, tt := range tests {
		key := tt.id.Key()
		if (key == "") != (tt.kind == "") || !strings.HasPrefix(key, tt.kind) || len(key) > 40 {
			t.Errorf("%s: key %q", tt.name, key)
		}
		if label := tt.id.Label(); label != tt.label || !utf8.ValidString(label) {
			t.Errorf("%s: label %q, want %q", tt.name, label, tt.label)
		}
		if before, dup := seen[key]; dup && key != "" {
			t.Errorf("%s and %s have the same key", before, tt.name)
		}
		seen[key] = tt.name
	}
}

func TestEachPartOfAnIdentityThatCountsChangesTheKey(t *testing.T) {
	base := Identity{Tenant: "a", Image: "i", Command: "c", Executable: "e"}
	for name, tt := range map[string]struct {
		id   Identity
		same bool
	}{
		"itself":                           {base, true},
		"the executable inside an image":   {Identity{Tenant: "a", Image: "i", Command: "c", Executable: "other"}, true},
		"another tenant":                   {Identity{Tenant: "b", Image: "i", Command: "c"}, false},
		"another image":                    {Identity{Tenant: "a", Image: "j", Command: "c"}, false},
		"another command":                  {Identity{Tenant: "a", Image: "i", Command: "d"}, false},
		"parts that are the same together": {Identity{Tenant: "ai", Image: "c", Command: ""}, false},
		"a name that looks like an image":  {Identity{Tenant: "a", Name: "i"}, false},
	} {
		if got := tt.id.Key() == base.Key(); got != tt.same {
			t.Errorf("%s: same key %t", name, got)
		}
	}
	// Profiles are kept under their keys.
	const kept = "name:af9a9e79ce56326afafef4638af661f0"
	if got := (&Identity{Tenant: "a", Name: "resnet"}).Key(); got != kept {
		t.Errorf("the key was %s and is %s", kept, got)
	}
}
