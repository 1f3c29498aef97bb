// Command gen writes tests/softgpu/models/models.c and the table of runtime/sim/device; go generate runs it in the
// folder of the catalog.
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
	if err := os.WriteFile("../models.c", source, 0o644); err != nil {
		return err
	}
	if source, err = catalog.GoSource(); err != nil {
		return err
	}
	return os.WriteFile("../../../../runtime/sim/device/models.go", source, 0o644)
}
