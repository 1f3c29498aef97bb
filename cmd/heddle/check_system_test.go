package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/tests/oldkernel"
)

func TestDoctorSaysWhatAKernelLacks(t *testing.T) {
	tests := []struct {
		name         string
		seals, pidfd error
		want         grade
		found        string
	}{
		{"nothing", nil, nil, gradeOK, "Linux 4.19.0: sealed memory files, pidfd"},
		{"seals", unix.EINVAL, nil, gradeFail, "Linux 4.19.0 lacks sealed memory files (invalid argument)"},
		{"pidfd", nil, unix.ENOSYS, gradeFail, "Linux 4.19.0 lacks pidfd (function not implemented)"},
		{"both", unix.EPERM, unix.EPERM, gradeFail,
			"Linux 4.19.0 lacks sealed memory files (operation not permitted), pidfd (operation not permitted)"},
	}
	for _, tt := range tests {
		f := kernelFinding("4.19.0", tt.seals, tt.pidfd)
		if f.Status != tt.want || f.Found != tt.found || (f.Mend == "") != (tt.want == gradeOK) {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
}

func TestDoctorOnAnOldKernel(t *testing.T) {
	for lack, says := range map[oldkernel.Lack]string{
		oldkernel.Memfd:           "lacks sealed memory files (function not implemented)",
		oldkernel.FutureWriteSeal: "lacks sealed memory files (invalid argument)",
		oldkernel.Pidfd:           "lacks pidfd (function not implemented)",
	} {
		t.Run(string(lack), func(t *testing.T) {
			env := []string{lackVariable + "=" + string(lack), "HEDDLE_API=/nonexistent/api.sock", "GORACE=atexit_sleep_ms=0"}
			got := finish(t, heddleProcess(t, env, "doctor"))
			if got.code == lackFailed {
				t.Skip(got.stderr)
			}
			if got.code != exitFailure || !strings.HasPrefix(got.stdout, "fail  OS kernel ") || !strings.Contains(got.stdout, says) ||
				!strings.Contains(got.stdout, "-> use Linux 5.4 or newer") {
				t.Errorf("%+v", got)
			}
		})
	}
}
