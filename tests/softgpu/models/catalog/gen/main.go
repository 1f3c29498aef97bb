// Command gen writes tests/softgpu/models/models.c; go generate runs it in that folder.
package main

import (
	"fmt"
	"os"

	"github.com/heddle-project/heddle/tests/softgpu/models/catalog"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	source, err := catalog.CSource()
	if err != nil {
		return err
	}
	return os.WriteFile("../models.c", source, 0o644)
}
