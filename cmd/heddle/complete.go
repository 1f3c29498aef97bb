package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// completionLimit is how long a person may be kept from typing on.
const completionLimit = 300 * time.Millisecond

// mustComplete registers a completion. It can only fail for a flag that does not exist.
func mustComplete(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// completeWithNothing keeps the shell from offering files where none is meant.
func completeWithNothing(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		mustComplete(cmd, flag, cobra.NoFileCompletions)
	}
}

// completeList offers what may follow in a list with commas: the names that it does not hold yet.
func completeList(typed string, names []string) (out []string) {
	head := typed[:strings.LastIndexByte(typed, ',')+1]
	for _, name := range names {
		if !slices.Contains(strings.Split(head, ","), name) {
			out = append(out, head+name)
		}
	}
	return out
}

func completeClasses(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return classNames(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func (a *app) completeClients(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeFromClients(cmd, func(c *heddlev1.Client) string {
		return fmt.Sprintf("%d\tpid %d, %s", c.GetId(), c.GetPid(), printable(c.GetName()+" "+cmp.Or(c.GetCommand(), c.GetProgram())))
	})
}

func (a *app) completePIDs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeFromClients(cmd, func(c *heddlev1.Client) string {
		return fmt.Sprintf("%d\t%s", c.GetPid(), printable(c.GetName()+" "+cmp.Or(c.GetCommand(), c.GetProgram())))
	})
}

func (a *app) completeTenants(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeFromClients(cmd, func(c *heddlev1.Client) string { return printable(c.GetTenant()) })
}

func (a *app) completeDevices(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var words []string
	a.completionCall(cmd, func(ctx context.Context, conn *api.Conn) error {
		devices, err := conn.Devices(ctx)
		for _, d := range devices {
			words = append(words, strconv.FormatUint(uint64(d.GetIndex()), 10)+"\t"+printable(d.GetName()), d.GetUuid())
			for _, m := range d.GetMigDevices() {
				words = append(words, m.GetUuid()+"\t"+printable(m.GetProfile()))
			}
		}
		return err
	})
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func (a *app) completeFromClients(cmd *cobra.Command, word func(*heddlev1.Client) string) ([]string, cobra.ShellCompDirective) {
	var words []string
	a.completionCall(cmd, func(ctx context.Context, conn *api.Conn) error {
		list, err := conn.Clients(ctx, nil)
		for _, c := range list {
			if w := word(c); w != "" {
				words = append(words, w)
			}
		}
		return err
	})
	slices.Sort(words)
	return slices.Compact(words), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completionCall asks heddled and says nothing if it does not answer: the shell is waiting.
func (a *app) completionCall(cmd *cobra.Command, do func(context.Context, *api.Conn) error) {
	if err := a.settle(); err != nil {
		return
	}
	_ = a.callWithin(cmd.Context(), completionLimit, do)
}
