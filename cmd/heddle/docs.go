package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newDocsCmd writes the reference pages from the same texts that --help shows; make docs calls it.
func newDocsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "docs",
		Short:  "Write the reference pages",
		Hidden: true,
		Args:   noArgs,
		RunE:   showHelp,
	}
	cmd.AddCommand(
		docsCmd("markdown DIR", "Write the reference as Markdown", doc.GenMarkdownTree),
		docsCmd("man DIR", "Write the reference as man pages", func(root *cobra.Command, dir string) error {
			// No date: the pages must not change with the day.
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Heddle", Manual: "Heddle manual", Date: nil}, dir)
		}),
	)
	return cmd
}

func docsCmd(use, short string, write func(*cobra.Command, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("give one folder")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.InitDefaultCompletionCmd()
			if err := write(root, args[0]); err != nil {
				return fmt.Errorf("write pages to %s: %w", args[0], err)
			}
			return nil
		},
	}
}
