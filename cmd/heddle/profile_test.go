package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProfileCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	const h100 = "NVIDIA H100 80GB HBM3"
	tests := []struct {
		name  string
		args  []string
		want  result
		calls []string
	}{
		{
			"export by label", []string{"export", "resnet"},
			result{stdout: "{\"workload\": \"name:11aa22bb33cc44dd55ee66ff77008899\"}\n"}, nil,
		},
		{
			"export by the beginning of the digits", []string{"export", "11aa"},
			result{stdout: "{\"workload\": \"name:11aa22bb33cc44dd55ee66ff77008899\"}\n"}, nil,
		},
		{
			"of two devices", []string{"export", "exe:aa11"},
			result{code: 2, stderr: "heddle profile export: exe:aa11 is not unique, choose by key or --device: exe:aa11 on NVIDIA A100, exe:aa11 on " + h100 + "\n"}, nil,
		},
		{"of two devices, one of them", []string{"export", "exe:aa11", "--device", "NVIDIA A"}, result{stdout: "{\"workload\": \"exe:aa11\"}\n"}, nil},
		{"of none", []string{"show", "vgg"}, result{code: 1, stderr: "heddle profile show: no profile of vgg (heddle profile ls lists them)\n"}, nil},
		{"of nothing", []string{"show", ""}, result{code: 2, stderr: "heddle profile show: give one workload (heddle profile ls lists them)\n"}, nil},
		{"no workload", []string{"show"}, result{code: 2, stderr: "heddle profile show: give one workload (heddle profile ls lists them)\n"}, nil},
		{
			"import", []string{"import", file},
			result{stdout: "resnet on NVIDIA A100: 12 kernels\n"}, []string{"import KIND_PROFILE  false 2"},
		},
		{
			"import in its place", []string{"import", "--replace", file},
			result{stdout: "resnet on NVIDIA A100: 12 kernels\n"}, []string{"import KIND_PROFILE  true 2"},
		},
		{
			"figures", []string{"import", "--ncu", file, "resnet"},
			result{
				stdout: "resnet on NVIDIA A100: 12 kernels, 11 kernels got figures\n",
				stderr: "heddle profile import: warning: the profile lacks 1 kernel of the table, saxpy first; names must be mangled\n",
			},
			[]string{"import KIND_NSIGHT name:11aa22bb33cc44dd55ee66ff77008899 false 2"},
		},
		{"a file that is not there", []string{"import", "nowhere.json"}, result{code: 1, stderr: "heddle profile import: open nowhere.json: no such file or directory\n"}, nil},
		{"an empty file", []string{"import", os.DevNull}, result{code: 2, stderr: "heddle profile import: import profile: line 1: nothing there\n"}, nil},
		{
			"forget one", []string{"forget", "exe:aa11", "--device", h100},
			result{stdout: "1 profile forgotten\n"}, []string{"forget exe:aa11 on " + h100},
		},
		{
			"forget all of a device", []string{"forget", "--all", "--device", "NVIDIA H"},
			result{stdout: "2 profiles forgotten\n"}, []string{"forget name:11aa22bb33cc44dd55ee66ff77008899 on " + h100, "forget exe:aa11 on " + h100},
		},
		{"forget what", []string{"forget"}, result{code: 2, stderr: "heddle profile forget: give one workload (heddle profile ls lists them)\n"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := startFake(t, true)
			got := invoke(t, d.env(), screen{}, append([]string{"profile"}, tt.args...)...)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.calls, d.changes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProfileTables(t *testing.T) {
	d := startFake(t, true)
	for name, args := range map[string][]string{
		"profile-ls.txt":    {"profile", "ls"},
		"profile-ls.json":   {"profile", "ls", "--json"},
		"profile-show.txt":  {"profile", "show", "resnet"},
		"profile-show.json": {"profile", "show", "resnet", "--json"},
	} {
		got := invoke(t, d.env(), screen{}, args...)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("%v: %+v", args, got)
		}
		wantGolden(t, name, got.stdout)
	}
}

func TestProfilesAreForAdministrators(t *testing.T) {
	d := startFake(t, false)
	for _, args := range [][]string{{"ls"}, {"show", "resnet"}, {"export", "resnet"}, {"forget", "resnet"}} {
		if got := invoke(t, d.env(), screen{}, append([]string{"profile"}, args...)...); got.code != 1 || got.stdout != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
