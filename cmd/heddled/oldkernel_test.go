package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/tests/oldkernel"
)

// lackVariable names what heddled's process shall do without; lackFailed says that this cannot be
// arranged here.
const (
	lackVariable = "HEDDLE_TEST_LACK"
	lackFailed   = 77
)

func TestAnOldKernelIsToldInOneLine(t *testing.T) {
	for lack, says := range map[oldkernel.Lack]string{
		oldkernel.Memfd:           "create memfd heddle-verdict: function not implemented",
		oldkernel.MemfdRight:      "create memfd heddle-verdict: operation not permitted",
		oldkernel.FutureWriteSeal: "seal: invalid argument (needs Linux 5.1)",
		oldkernel.Pidfd:           "open pidfd: function not implemented",
	} {
		t.Run(string(lack), func(t *testing.T) {
			p := startProcess(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, lackVariable+"="+string(lack)) })
			_ = bounded(t, p)
			code, text := p.ProcessState.ExitCode(), p.stderr.String()
			if code == lackFailed {
				t.Skip(text)
			}
			if code != exitFailure || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "heddled: check the OS kernel: Linux ") ||
				!strings.Contains(text, says) || !strings.Contains(text, "use Linux 5.4 or newer") {
				t.Errorf("code %d: %s", code, text)
			}
		})
	}
}
