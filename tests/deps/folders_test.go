package deps

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var include = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]`)

// TestCFoldersIncludeOnlyTheirOwn keeps the honest fake honest: the software GPU must be a driver that has never heard
// of us, and the interposer must not lean on test code. The player is a plain client and knows neither.
func TestCFoldersIncludeOnlyTheirOwn(t *testing.T) {
	tests := []struct {
		folder string
		banned *regexp.Regexp
	}{
		{"interpose/include", regexp.MustCompile(`softgpu|tests/|play`)},
		{"interpose/src", regexp.MustCompile(`softgpu|tests/|play`)},
		{"tests/softgpu", regexp.MustCompile(`heddle|interpose`)},
		{"tests/play", regexp.MustCompile(`heddle|interpose|softgpu`)},
	}
	for _, tt := range tests {
		t.Run(tt.folder, func(t *testing.T) {
			sources := 0
			for _, path := range files(t, filepath.Join(root(), tt.folder)) {
				if !slices.Contains([]string{".c", ".h", ".S", ".mk"}, filepath.Ext(path)) {
					continue
				}
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				sources++
				for _, m := range include.FindAllStringSubmatch(string(data), -1) {
					if tt.banned.MatchString(m[1]) {
						t.Errorf("%s includes %q", path, m[1])
					}
				}
				if filepath.Ext(path) == ".mk" && tt.folder == "tests/softgpu" && strings.Contains(string(data), "-Iinterpose") {
					t.Errorf("%s compiles the fake with the interposer's headers in reach", path)
				}
			}
			if sources == 0 {
				t.Errorf("no C in %s: a rename must take its rules along", tt.folder)
			}
		})
	}
}

func TestNothingElseStandsAtTheTop(t *testing.T) {
	entries, err := os.ReadDir(root())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, ".") && name != "build" && !slices.Contains(topLevel, name) {
			t.Errorf("%s stands at the top; CONTRIBUTING.md has no place for it", name)
		}
	}
}

func TestNoFolderHasANameThatSaysNothing(t *testing.T) {
	for _, path := range files(t, root()) {
		for part := range strings.SplitSeq(filepath.Dir(path), string(filepath.Separator)) {
			if slices.Contains(bannedNames, part) {
				t.Errorf("%s: no folder is named %s", path, part)
			}
		}
	}
}

// TestEveryFolderHasItsSentence reads the folder table of CONTRIBUTING.md in both directions.
func TestEveryFolderHasItsSentence(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root(), "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## Folders\n")
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .+ \\|$")
	var documented []string
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		name := strings.TrimSuffix(m[1], "/")
		documented = append(documented, name)
		if info, err := os.Stat(filepath.Join(root(), name)); err != nil || !info.IsDir() {
			t.Errorf("CONTRIBUTING.md has a sentence for %s, which is no folder", name)
		}
	}
	for _, parent := range []string{"cmd", "runtime", "tests"} {
		entries, err := os.ReadDir(filepath.Join(root(), parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := parent + "/" + e.Name(); e.IsDir() && !slices.Contains(documented, name) {
				t.Errorf("%s has no sentence in CONTRIBUTING.md", name)
			}
		}
	}
}

// files lists the regular files under dir that belong to the repository: no build output, no tool folders.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != dir && (d.Name() == "build" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			rel, err := filepath.Rel(root(), path)
			if err != nil {
				return err
			}
			out = append(out, filepath.Join(root(), rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
