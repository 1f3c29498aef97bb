package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

var root = System{}

// load reads text as the file of root, with an environment and flags.
func load(t *testing.T, text string, environ []string, flags ...Flag) (*Loaded, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "heddled.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(Source{System: System{Environ: environ}, File: path, Flags: flags})
	if err == nil {
		return l, nil
	}
	// The folder differs from run to run; the file's name is what matters.
	return nil, errors.New(strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", ""))
}

func TestLoadReportsEveryProblemWithItsPlace(t *testing.T) {
	tests := []struct {
		name    string
		text    string
		environ []string
		flags   []Flag
		want    []string
	}{
		{
			name: "a syntax error has its line",
			text: "version = 1\n[log\n",
			want: []string{"heddled.toml:2: "},
		},
		{
			name: "a file must have a version",
			text: "admin_group = \"gpu\"\n",
			want: []string{"heddled.toml:1: version: missing; the file must say version = 1"},
		},
		{
			name: "a version from the future is refused",
			text: "\nversion = 7\n",
			want: []string{"heddled.toml:2: version: 7 is newer than this heddled, which reads up to 1"},
		},
		{
			name: "unknown keys, wrong types and bad values come together",
			text: `version = 1
admin_gruop = "gpu"
[log]
level = "loud"
[clients]
max = "many"
max_per_user = 0
[scheduling]
priority = 11
[class.low]
window = 5
[[rule]]
user = 1.5
priority = "high"
max_priority = "low"
colour = "red"
`,
			want: []string{
				"heddled.toml:2: admin_gruop: unknown key; did you mean admin_group?",
				`heddled.toml:4: log.level: "loud" is not one of "debug", "info", "warn", "error"`,
				"heddled.toml:6: clients.max: want an integer, have a string",
				"heddled.toml:7: clients.max_per_user: 0 is not between 1 and 65536",
				`heddled.toml:9: scheduling.priority: "11" is not a class: want 0 to 9, realtime, high, normal, low or idle`,
				`heddled.toml:11: class.low.window: want a duration with its unit, such as "200us" or "1s"`,
				"heddled.toml:13: rule.0.user: want a string or a list of strings, have a number",
				"heddled.toml:14: rule.0.priority: high is more urgent than max_priority, low",
				"heddled.toml:16: rule.0.colour: unknown key",
			},
		},
		{
			name: "a bad default is told where it stands, not again by the rules that take it",
			text: `version = 1
[scheduling]
weight = 0
[[rule]]
user = "alice"
[[rule]]
user = "bob"
weight = -7
`,
			want: []string{
				"heddled.toml:3: scheduling.weight: 0 is not between 1 and 10000",
				"heddled.toml:8: rule.1.weight: -7 is not between 1 and 10000",
			},
		},
		{
			name: "a class has one name only",
			text: "version = 1\n[class.2]\nquiet = \"1ms\"\n[class.high]\nquiet = \"2ms\"\n",
			want: []string{"heddled.toml:5: class.high.quiet: already set at line 3"},
		},
		{
			name: "a rule behind one that matches everything is never reached",
			text: "version = 1\n[[rule]]\ntenant = \"all\"\n[[rule]]\nuser = \"alice\"\n",
			want: []string{"heddled.toml:4: rule.1.tenant: never reached: rule.0 matches every client"},
		},
		{
			name:    "variables and flags are as strict as the file",
			text:    "version = 1\n",
			environ: []string{"HEDDLED_LOG_LEVLE=debug", "HEDDLED_CLIENTS_MAX=x"},
			flags:   []Flag{{Name: "state-dir", Key: "state_dir", Value: "var"}},
			want: []string{
				"env:HEDDLED_LOG_LEVLE: no setting has this variable",
				"env:HEDDLED_CLIENTS_MAX: clients.max: x is out of range",
				`flag:state-dir: state_dir: "var" is not an absolute path`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.text, tt.environ, tt.flags...)
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.Split(err.Error(), "\n")
			if len(got) != len(tt.want) {
				t.Fatalf("problems: %s", cmp.Diff(tt.want, got))
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tt.want[i]) {
					t.Errorf("problem %d: got %q, want %q", i, got[i], tt.want[i])
				}
			}
		})
	}
}

func TestProblemsAreInvalidAndMissingFilesAreNot(t *testing.T) {
	_, err := assemble(Source{}, "f", []byte("version = 1\nx = 1\n"))
	if !errors.Is(err, errdefs.ErrInvalid) {
		t.Errorf("content at fault: %v is not invalid", err)
	}
	_, err = Load(Source{File: filepath.Join(t.TempDir(), "none.toml")})
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, errdefs.ErrInvalid) {
		t.Errorf("missing file: %v", err)
	}
}

func TestPrecedenceIsFlagsEnvironmentFileDefault(t *testing.T) {
	text := `version = 1
admin_group = "file"
state_dir = "/file"
nvml_library = "/file"
`
	l, err := load(t, text,
		[]string{"HEDDLED_STATE_DIR=/env", "HEDDLED_NVML_LIBRARY=/env", "HEDDLED_CLASS_LOW_MARGIN=0.25"},
		Flag{Name: "nvml", Key: "nvml_library", Value: "/flag"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Origin{}
	for _, o := range l.Origins() {
		got[o.Key] = o
	}
	for _, want := range []Origin{
		{"api_socket", `"/run/heddle/heddled.sock"`, "default"},
		{"admin_group", `"file"`, "file:2"},
		{"state_dir", `"/env"`, "env:HEDDLED_STATE_DIR"},
		{"nvml_library", `"/flag"`, "flag:nvml"},
		{"class.low.margin", "0.25", "env:HEDDLED_CLASS_LOW_MARGIN"},
	} {
		if got[want.Key] != want {
			t.Errorf("got %v, want %v", got[want.Key], want)
		}
	}
}

const everyKind = `version = 1
api_socket = "/a b/\"quoted\".sock"
clients = { max = 1_000, max_per_user = 0x10 }
scheduling.fail = "closed"
[class.idle]
margin = 1
quiet = "1ms500us"
[class.4]
window = "0s"
[[rule]]
user = ["alice", 1000]
cgroup = "/kubepods/**"
tenant = "team-a"
max_priority = "high"
weight = 300
isolation = "strict"
[[rule]]
refuse = true
`

func TestDumpReadsBackToTheSameConfiguration(t *testing.T) {
	first, err := load(t, everyKind, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := load(t, first.TOML(), nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, first.TOML())
	}
	for i := range second.Rules {
		first.Rules[i].Origin, second.Rules[i].Origin = "", ""
	}
	if diff := cmp.Diff(first.Config, second.Config); diff != "" {
		t.Error(diff)
	}
	if c := second.Config; c.Clients.Max != 1000 || c.Clients.MaxPerUser != 16 ||
		c.Classes[9].Quiet != 1500*time.Microsecond || c.Classes[4].Window != 0 ||
		c.Scheduling.Fail != FailClosed {
		t.Errorf("values were not read: %+v", c)
	}
	want := Rule{
		Users: []string{"alice", "1000"}, Cgroups: []string{"/kubepods/**"}, Tenant: "team-a",
		MaxPriority: 2, Priority: 5, Weight: 300, Isolation: IsolationStrict,
	}
	if diff := cmp.Diff(want, second.Rules[0]); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultsAreValidForRootAndForAUser(t *testing.T) {
	user := System{EffectiveUID: 1000, Environ: []string{"XDG_RUNTIME_DIR=/run/user/1000", "HOME=/home/a"}}
	for _, sys := range []System{root, user} {
		cfg := Default(sys)
		if err := cfg.Validate(); err != nil {
			t.Errorf("uid %d: %v", sys.EffectiveUID, err)
		}
	}
	if got := Default(user).APISocket; got != "/run/user/1000/heddle/heddled.sock" {
		t.Errorf("api_socket of a user: %s", got)
	}
	if got := Default(user).StateDir; got != "/home/a/.local/state/heddle" {
		t.Errorf("state_dir of a user: %s", got)
	}
	bare := Default(System{EffectiveUID: 1000})
	err := bare.Validate()
	if err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("user without XDG_RUNTIME_DIR: %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(everyKind))
	f.Add([]byte("version = 1\n[[rule]]\n[[rule]]\n"))
	f.Add([]byte("version = 1\nrule = [{ user = \"a\" }]\n[a.b.c]\nd.e = [[1],[2]]\n"))
	f.Add([]byte("version = 1979-05-27T07:32:00Z\n\"\" = 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := assemble(Source{}, "f", data)
		if (err == nil) == (first == nil) {
			t.Fatalf("value %v and error %v", first, err)
		}
		if err != nil {
			return
		}
		second, err := assemble(Source{}, "f", []byte(first.TOML()))
		if err != nil {
			t.Fatalf("dump is not valid: %v\n%s", err, first.TOML())
		}
		if first.TOML() != second.TOML() {
			t.Fatalf("dump changes: %s", cmp.Diff(first.TOML(), second.TOML()))
		}
		NewMatcher(&first.Config).Match(&Identity{Cgroup: "/a/b", Executable: "/bin/x"})
	})
}
