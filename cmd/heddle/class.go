package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/config"
)

const (
	weightMin = 1
	weightMax = 10000
)

// classNames are the scheduling classes that have a name, the most urgent first; 0 to 9 are
// accepted as numbers.
func classNames() []string { return []string{"realtime", "high", "normal", "low", "idle"} }

func className(number uint32) string { return config.ClassName(int(number)) }

func parseClass(s string) (uint32, error) {
	n, err := config.ParseClass(strings.ToLower(s))
	if err != nil {
		return 0, fmt.Errorf("not a class: realtime, high, normal, low, idle, or 0 (most urgent) to %d", config.Classes-1)
	}
	return uint32(n), nil
}

// classFlag is a --priority flag: a class by name or number.
type classFlag struct {
	set    bool
	number uint32
}

func (f *classFlag) String() string {
	if !f.set {
		return ""
	}
	return className(f.number)
}

func (f *classFlag) Type() string { return "class" }

func (f *classFlag) Set(s string) (err error) {
	if f.number, err = parseClass(s); err != nil {
		return err
	}
	f.set = true
	return nil
}

// value is what the API takes: absent when the flag was not given.
func (f *classFlag) value() *uint32 {
	if !f.set {
		return nil
	}
	return &f.number
}

// weightFlag is a --weight flag.
type weightFlag struct {
	set    bool
	number uint32
}

func (f *weightFlag) String() string {
	if !f.set {
		return ""
	}
	return strconv.FormatUint(uint64(f.number), 10)
}

func (f *weightFlag) Type() string { return "weight" }

func (f *weightFlag) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n < weightMin || n > weightMax {
		return fmt.Errorf("not a weight from %d to %d", weightMin, weightMax)
	}
	f.set, f.number = true, uint32(n)
	return nil
}

func (f *weightFlag) value() *uint32 {
	if !f.set {
		return nil
	}
	return &f.number
}

// sloFlag is a --slo flag.
type sloFlag struct {
	set  bool
	text string
}

func (f *sloFlag) String() string { return f.text }

func (f *sloFlag) Type() string { return "objective" }

func (f *sloFlag) Set(s string) error {
	o, err := config.ParseObjective(s)
	if err != nil {
		return err
	}
	f.set, f.text = true, o.String()
	return nil
}

func (f *sloFlag) value() *string {
	if !f.set {
		return nil
	}
	return &f.text
}

// sloName is an objective for people.
func sloName(slo string) string {
	if slo == "" {
		return "as the node's"
	}
	return slo
}

// addShareFlags gives a command --priority and --weight.
func addShareFlags(cmd *cobra.Command, class *classFlag, weight *weightFlag) {
	cmd.Flags().VarP(class, "priority", "p", "class: realtime, high, normal, low, idle, or 0 (most urgent) to 9")
	cmd.Flags().VarP(weight, "weight", "w", "share inside the class, 1 to 10000")
	mustComplete(cmd, "priority", completeClasses)
	completeWithNothing(cmd, "weight")
}
