package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

const doctorLong = `Check this node step by step and say how to mend what is wrong.

The steps go from the bottom up: the OS kernel, the driver's libraries, heddled and its sockets, the
interposer, a child that is started as heddle run starts programs, and MPS. A step is skipped when
one that it stands on has failed. Nothing is changed.

Exit code 1 when a step fails; warnings do not count.

JSON: {"checks": [{id, title, status, found, mend}], "failed": n, "warnings": n}; status is ok,
warn, fail or skip.`

func newDoctorCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "doctor",
		Short:             "Check this node, step by step",
		Long:              doctorLong,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.doctor(ctx, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// grade is how a check ended.
type grade string

const (
	gradeOK   grade = "ok"
	gradeWarn grade = "warn"
	gradeFail grade = "fail"
	gradeSkip grade = "skip"
)

// finding is the result of one check.
type finding struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status grade  `json:"status"`
	Found  string `json:"found"`
	Mend   string `json:"mend,omitempty"`
}

func ok(format string, args ...any) finding {
	return finding{Status: gradeOK, Found: fmt.Sprintf(format, args...)}
}

func skip(format string, args ...any) finding {
	return finding{Status: gradeSkip, Found: fmt.Sprintf(format, args...)}
}

func warn(mend, format string, args ...any) finding {
	return finding{Status: gradeWarn, Found: fmt.Sprintf(format, args...), Mend: mend}
}

func fail(mend, format string, args ...any) finding {
	return finding{Status: gradeFail, Found: fmt.Sprintf(format, args...), Mend: mend}
}

// check is one step of the examination. Later steps use what earlier ones found.
type check struct {
	id, title string
	look      func(context.Context, *examination) finding
}

// checks are the steps from the bottom up.
func checks() []check {
	return []check{
		{"os-kernel", "OS kernel", checkKernel},
		{"driver", "driver library", checkDriver},
		{"device-nodes", "device nodes", checkDeviceNodes},
		{"api-socket", "API socket", checkAPISocket},
		{"heddled", "heddled", checkDaemon},
		{"nvml", "NVML library", checkNVML},
		{"devices", "devices", checkDevices},
		{"attach-socket", "attach socket", checkAttachSocket},
		{"rights", "rights", checkRights},
		{"fail-mode", "fail mode", checkFailMode},
		{"environment", "environment", checkEnvironment},
		{"interposer", "interposer", checkInterposerFile},
		{"loader", "interposer in a child", checkLoader},
		{"attach", "child attaches", checkAttach},
		{"mps", "MPS", checkMPS},
	}
}

func (a *app) doctor(ctx context.Context, asJSON bool) error {
	x := &examination{app: a}
	defer x.close()
	colors := a.palette()
	var findings []finding
	failed, warnings := 0, 0
	for _, c := range checks() {
		f := c.look(ctx, x)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		f.ID, f.Title, f.Found = c.id, c.title, printable(f.Found)
		findings = append(findings, f)
		switch f.Status {
		case gradeFail:
			failed++
		case gradeWarn:
			warnings++
		case gradeOK, gradeSkip:
		}
		if !asJSON {
			if err := a.printFinding(f, colors); err != nil {
				return err
			}
		}
	}
	if asJSON {
		if err := a.printJSON(map[string]any{"checks": findings, "failed": failed, "warnings": warnings}); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(a.stdout, summary(failed, warnings))
	}
	if failed > 0 {
		return errReported
	}
	return nil
}

func (a *app) printFinding(f finding, colors palette) error {
	tones := map[grade]tone{gradeOK: toneGood, gradeWarn: toneWarn, gradeFail: toneBad, gradeSkip: toneDim}
	mark := colors.paint(tones[f.Status], string(f.Status)) + strings.Repeat(" ", 4-len(f.Status))
	width := a.width(false)
	_, err := fmt.Fprintf(a.stdout, "%s  %-*s  %s\n", mark, findingIndent-8, f.Title, wrap(f.Found, width, findingIndent))
	if err == nil && f.Mend != "" {
		const arrow = "-> "
		_, err = fmt.Fprintf(a.stdout, "%s%s%s\n", strings.Repeat(" ", findingIndent), arrow,
			wrap(f.Mend, width, findingIndent+len(arrow)))
	}
	return err
}

// findingIndent is the column in which what was found begins.
const findingIndent = 29

// wrap breaks a text at blanks so that it fits between an indent and the width of the terminal,
// 0 being no limit. A word that is too long stays whole: it is a path to be copied.
func wrap(text string, width, indent int) string {
	const least = 20 // narrower is no help to a reader
	room := max(width-indent, least)
	if width == 0 {
		return text
	}
	var out strings.Builder
	used := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
		case used+1+n > room:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			used = 0
		default:
			out.WriteByte(' ')
			used++
		}
		out.WriteString(word)
		used += n
	}
	return out.String()
}

func summary(failed, warnings int) string {
	switch {
	case failed > 0:
		return fmt.Sprintf("%s failed, %s", plural(failed, "check"), plural(warnings, "warning"))
	case warnings > 0:
		return plural(warnings, "warning") + ", nothing failed"
	default:
		return "all is well"
	}
}
