package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// parse reads the package's own files; generated ones only on request, because their shape is their generator's.
func parse(t *testing.T, p pkg, wantGenerated bool) (*token.FileSet, []*ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("parse %s: %v", name, err)
		}
		if wantGenerated || !ast.IsGenerated(f) {
			files = append(files, f)
		}
	}
	return fset, files
}

// generated reports whether only generated files of the package import path.
func generated(t *testing.T, p pkg, path string) bool {
	t.Helper()
	_, files := parse(t, p, false)
	for _, f := range files {
		for _, imp := range f.Imports {
			if imp.Path.Value == strconv.Quote(path) {
				return false
			}
		}
	}
	return true
}

func TestNoPackageRunsCodeBeforeMain(t *testing.T) {
	for _, p := range production(t) {
		fset, files := parse(t, p, false)
		for _, f := range files {
			for _, decl := range f.Decls {
				fn, isFunc := decl.(*ast.FuncDecl)
				if isFunc && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: init function; construct it in main or in New", fset.Position(fn.Pos()))
				}
			}
		}
	}
}

// TestNoPackageKeepsMutableState fails for a package-level variable that is assigned, changed through an index or
// field, or has its address taken anywhere in its package, and for one whose type exists to be changed. Tables and
// sentinel errors, which nothing writes, pass. Main packages may keep what the linker sets.
func TestNoPackageKeepsMutableState(t *testing.T) {
	for _, p := range production(t) {
		if p.Name == "main" {
			continue
		}
		fset, files := parse(t, p, false)
		vars := packageVars(files)
		for name, spec := range vars {
			if mutableType(spec.Type) {
				t.Errorf("%s: package-level %s exists to be changed; make it a field", fset.Position(spec.Pos()), name)
			}
		}
		for _, f := range files {
			for _, pos := range writes(f, vars) {
				t.Errorf("%s: writes a package-level variable; make it a field or a parameter", fset.Position(pos))
			}
		}
	}
}

func packageVars(files []*ast.File) map[string]*ast.ValueSpec {
	vars := make(map[string]*ast.ValueSpec)
	for _, f := range files {
		for _, decl := range f.Decls {
			gen, isGen := decl.(*ast.GenDecl)
			if !isGen || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				value, isValue := spec.(*ast.ValueSpec)
				if !isValue {
					continue
				}
				for _, name := range value.Names {
					if name.Name != "_" {
						vars[name.Name] = value
					}
				}
			}
		}
	}
	return vars
}

func mutableType(expr ast.Expr) bool {
	sel, isSel := expr.(*ast.SelectorExpr)
	if !isSel {
		return false
	}
	from, isIdent := sel.X.(*ast.Ident)
	return isIdent && (from.Name == "sync" || from.Name == "atomic")
}

// writes finds statements in functions that change one of vars. A local of the same name hides the variable for the
// whole function, which can only make the test miss a write, never invent one.
func writes(f *ast.File, vars map[string]*ast.ValueSpec) []token.Pos {
	var found []token.Pos
	for _, decl := range f.Decls {
		fn, isFunc := decl.(*ast.FuncDecl)
		if !isFunc || fn.Body == nil {
			continue
		}
		hidden := locals(fn)
		check := func(target ast.Expr) {
			name := rootName(target)
			if _, isVar := vars[name]; isVar && !hidden[name] {
				found = append(found, target.Pos())
			}
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, lhs := range n.Lhs {
						check(lhs)
					}
				}
			case *ast.IncDecStmt:
				check(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					check(n.X)
				}
			}
			return true
		})
	}
	return found
}

func locals(fn *ast.FuncDecl) map[string]bool {
	names := make(map[string]bool)
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				names[name.Name] = true
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, lhs := range n.Lhs {
					names[rootName(lhs)] = true
				}
			}
		case *ast.RangeStmt:
			names[rootName(n.Key)] = true
			names[rootName(n.Value)] = true
		case *ast.ValueSpec:
			for _, name := range n.Names {
				names[name.Name] = true
			}
		}
		return true
	})
	return names
}

// rootName is the variable that x, x.f, x[i] or *x begins with, or nothing.
func rootName(expr ast.Expr) string {
	for {
		switch e := expr.(type) {
		case *ast.Ident:
			return e.Name
		case *ast.SelectorExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		default:
			return ""
		}
	}
}

func TestWritesFindsWhatItShould(t *testing.T) {
	const src = `package p
var table = map[string]int{"a": 1}
var count int
var ready struct{ on bool }
func reads() int { return table["a"] + count }
func hides(count int) { count = 3 }
func assigns() { count = 1 }
func increments() { count++ }
func indexes() { table["b"] = 2 }
func fields() { ready.on = true }
func leaks() *int { return &count }
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	for _, pos := range writes(f, packageVars([]*ast.File{f})) {
		lines = append(lines, strings.Count(src[:pos-1], "\n")+1)
	}
	if want := []int{7, 8, 9, 10, 11}; !slices.Equal(lines, want) {
		t.Errorf("writes found in lines %v, want %v", lines, want)
	}
}
