package main

import (
	"github.com/spf13/cobra"
)

// noArgs refuses arguments in one line; a group of commands suggests the nearest one.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasAvailableSubCommands() {
		return usagef("unexpected argument %q (see %s --help)", args[0], cmd.CommandPath())
	}
	if near := nearest(args[0], commandNames(cmd)); near != "" {
		return usagef("unknown command %q, did you mean %s?", args[0], near)
	}
	return usagef("unknown command %q (see %s --help)", args[0], cmd.CommandPath())
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
			names = append(names, sub.Aliases...)
		}
	}
	return names
}

// refuseArgs gives the commands that the library made the manners of ours.
func refuseArgs(cmd *cobra.Command) {
	cmd.Args = noArgs
	if !cmd.Runnable() {
		cmd.RunE = showHelp
	}
	for _, sub := range cmd.Commands() {
		refuseArgs(sub)
	}
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// newHelpCmd replaces the library's, which calls an unknown topic a success.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Show the help of a command",
		Args:  cobra.ArbitraryArgs,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			target, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return commandNames(target), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usagef("%w", err)
			}
			if err := noArgs(target, rest); err != nil {
				return err
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}
