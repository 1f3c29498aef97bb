// Package deps holds the import rules of CONTRIBUTING.md as tests. The linter enforces the same rules file by file
// while one types; these look at everything the go command finds, and fail when a rule has lost its subject.
package deps

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageImportsOnlyWhatItsTierAllows(t *testing.T) {
	for _, p := range production(t) {
		t.Run(p.short(), func(t *testing.T) {
			allowed, known := mayImport[p.short()]
			if !known {
				t.Fatalf("%s stands in no tier: give it a row in CONTRIBUTING.md, .golangci.yml and rules_test.go", p.short())
			}
			for _, imp := range p.Imports {
				short, isOurs := strings.CutPrefix(imp, module+"/")
				if isOurs && !slices.Contains(allowed, short) {
					t.Errorf("imports %s; its tier allows %v", short, allowed)
				}
			}
		})
	}
}

func TestEveryPackageOfARuleExists(t *testing.T) {
	exists := make(map[string]bool)
	for _, p := range production(t) {
		exists[p.short()] = true
	}
	named := slices.Collect(maps.Keys(mayImport))
	for _, allowed := range mayImport {
		named = append(named, allowed...)
	}
	named = append(append(append(named, pure...), unsafeIn...), cgoIn...)
	for _, rule := range neverReach {
		named = append(named, rule.from)
	}
	slices.Sort(named)
	for _, name := range slices.Compact(named) {
		if !exists[name] {
			t.Errorf("a rule names %s, which does not exist: a rename must take its rules along", name)
		}
	}

	foreign := slices.Clone(impure)
	for _, rule := range neverReach {
		if !strings.HasPrefix(rule.to, "runtime/") {
			foreign = append(foreign, rule.to)
		}
	}
	if _, err := goList(append([]string{"--"}, foreign...)...); err != nil {
		t.Errorf("a rule bans a package that does not exist: %v", err)
	}
}

func TestNobodyReachesWhatIsForbidden(t *testing.T) {
	byName := make(map[string]pkg)
	for _, p := range production(t) {
		byName[p.short()] = p
	}
	for _, rule := range neverReach {
		t.Run(rule.from+" never reaches "+rule.to, func(t *testing.T) {
			for _, dep := range byName[rule.from].Deps {
				if strings.TrimPrefix(dep, module+"/") == rule.to {
					t.Errorf("%s is reached: %s", rule.to, rule.because)
				}
			}
		})
	}
}

func TestProductionNeverReachesTests(t *testing.T) {
	for _, p := range production(t) {
		for _, dep := range p.Deps {
			short, isOurs := strings.CutPrefix(dep, module+"/")
			if isOurs && (pkg{ImportPath: dep}).test() {
				t.Errorf("%s reaches %s: a fake is never reachable from production", p.short(), short)
			}
		}
	}
}

func TestOnlyTheDaemonsMainBuildsADaemon(t *testing.T) {
	for _, p := range production(t) {
		if p.short() != "cmd/heddled" && slices.Contains(p.Imports, module+"/runtime/daemon") {
			t.Errorf("%s imports runtime/daemon", p.short())
		}
	}
}

func TestPurePackagesTouchNoMachine(t *testing.T) {
	for _, p := range production(t) {
		if !slices.Contains(pure, p.short()) {
			continue
		}
		for _, imp := range p.Imports {
			if slices.Contains(impure, imp) {
				t.Errorf("%s imports %s: pass in what it needs", p.short(), imp)
			}
		}
	}
}

func TestUnsafeAndCgoStayWhereTheyAreNamed(t *testing.T) {
	for _, p := range production(t) {
		if slices.Contains(p.Imports, "unsafe") && !slices.Contains(unsafeIn, p.short()) && !generated(t, p, "unsafe") {
			t.Errorf("%s imports unsafe; only %v may", p.short(), unsafeIn)
		}
		if len(p.CgoFiles) > 0 && !slices.Contains(cgoIn, p.short()) {
			t.Errorf("%s uses cgo in %v; only %v may", p.short(), p.CgoFiles, cgoIn)
		}
	}
}
