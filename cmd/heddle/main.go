// Command heddle is the command line of Heddle: it starts programs under the interposer, shows
// who uses the GPUs of this node and who is held, changes priorities, and checks the node.
//
// Everything but run talks to heddled over its API socket only; see docs/cli for every command.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(newApp(os.Stdin, os.Stdout, os.Stderr, os.Environ()).execute(context.Background(), os.Args[1:]))
}
