package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// A unit is a set of headers that becomes one Go file and one golden layout.
type unit struct {
	name     string
	headers  []string // relative to the root, in the order in which they appear in the output
	include  string   // folder for the compiler's -I
	prefixes []string // C name prefixes that the Go names drop
	pkg      string   // name of the Go package
	goFile   string
	testFile string // layout test beside goFile
	golden   string
	document string // Markdown file with marked tables, or empty
	strict   bool   // members must have fixed-width types; nothing opaque
}

var units = []unit{
	{
		name: "heddle",
		headers: []string{
			"interpose/include/heddle/abi.h",
			"interpose/include/heddle/attach.h",
			"interpose/include/heddle/gate.h",
		},
		include:  "interpose/include",
		prefixes: []string{"heddle_"},
		pkg:      "abi",
		goFile:   "runtime/abi/zabi.go",
		testFile: "runtime/abi/zabi_test.go",
		golden:   "tests/testdata/abi-v1.layout",
		document: "docs/protocol.md",
		strict:   true,
	},
	{
		name:     "softgpu",
		headers:  []string{"tests/softgpu/include/softgpu.h"},
		include:  "tests/softgpu/include",
		prefixes: []string{"softgpu_", "sg_"},
		pkg:      "softgpu",
		goFile:   "tests/softgpu/zstate.go",
		testFile: "tests/softgpu/zstate_test.go",
		golden:   "tests/testdata/softgpu.layout",
	},
}

func unitNames() []string {
	var names []string
	for _, u := range units {
		names = append(names, u.name)
	}
	return names
}

// A file is one output, its path relative to the root.
type file struct {
	path    string
	content []byte
}

func (u unit) generate(root, cc, object string) ([]file, error) {
	headers, err := u.readHeaders(root)
	if err != nil {
		return nil, err
	}
	if object == "" {
		dir, err := os.MkdirTemp("", "genabi")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if object, err = compile(cc, filepath.Join(root, u.include), root, headers, dir); err != nil {
			return nil, err
		}
	}
	l, err := readLayout(object, headers, u.strict)
	if err != nil {
		return nil, err
	}
	names, err := newNaming(u.prefixes, l)
	if err != nil {
		return nil, err
	}
	goText, err := goSource(u, l, names)
	if err != nil {
		return nil, err
	}
	testText, err := goTest(u, l, names)
	if err != nil {
		return nil, err
	}
	files := []file{
		{u.goFile, goText},
		{u.testFile, testText},
		{u.golden, goldenText(u, l)},
	}
	if u.document != "" {
		old, err := os.ReadFile(filepath.Join(root, u.document))
		if err != nil {
			return nil, err
		}
		text, err := fillTables(string(old), l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u.document, err)
		}
		files = append(files, file{u.document, []byte(text)})
	}
	return files, nil
}

func (u unit) readHeaders(root string) ([]header, error) {
	var headers []header
	for _, path := range u.headers {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		h, err := parseHeader(path, string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		headers = append(headers, h)
	}
	return headers, nil
}
