package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestListsPrintWhatTheyAlwaysPrinted(t *testing.T) {
	d := startFake(t, true)
	piped := screen{}
	tty := func(width int) screen { return screen{tty: true, width: width} }
	tests := []struct {
		golden string
		screen screen
		args   []string
	}{
		{"ps-piped.txt", piped, []string{"ps"}},
		{"ps-wide.txt", tty(200), []string{"ps"}},
		{"ps-100.txt", tty(100), []string{"ps"}},
		{"ps-80.txt", tty(80), []string{"ps"}},
		{"ps-40.txt", tty(40), []string{"ps"}},
		{"ps-color.txt", screen{tty: true, width: 80, color: true}, []string{"ps"}},
		{"ps-no-trunc.txt", tty(40), []string{"ps", "--no-trunc"}},
		{"ps-tenant.txt", piped, []string{"ps", "--tenant", "web"}},
		{"ps.json", piped, []string{"ps", "--json"}},
		{"gpus-piped.txt", piped, []string{"gpus"}},
		{"gpus-80.txt", tty(80), []string{"gpus"}},
		{"gpus.json", piped, []string{"gpus", "--json"}},
		{"config-dump.txt", piped, []string{"config", "dump"}},
		{"config-origins.txt", piped, []string{"config", "dump", "--origins"}},
		{"config-dump.json", piped, []string{"config", "dump", "--json"}},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			got := invoke(t, d.env(), tt.screen, tt.args...)
			if got.code != exitOK || got.stderr != "" {
				t.Fatalf("exit %d, stderr %q", got.code, got.stderr)
			}
			wantGolden(t, tt.golden, got.stdout)
		})
	}
}

func TestTablesNeverExceedTheTerminal(t *testing.T) {
	d := startFake(t, true)
	// The columns that always stay need 43 columns here; below that a terminal wraps.
	for width := 43; width < 220; width++ {
		got := invoke(t, d.env(), screen{tty: true, width: width}, "ps")
		for line := range strings.Lines(got.stdout) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Fatalf("width %d: line of %d: %q", width, n, line)
			}
		}
	}
}

func TestTextsOfOthersCannotControlTheTerminal(t *testing.T) {
	d := startFake(t, true)
	for _, args := range [][]string{{"ps"}, {"ps", "--json"}, {"set", "--client", "9", "--weight", "2"}, {"__complete", "set", "--client", ""}} {
		got := invoke(t, d.env(), screen{}, args...)
		if strings.Contains(got.stdout, "\x1b") {
			t.Errorf("heddle %v lets an escape through: %q", args, got.stdout)
		}
	}
}

func TestNoColorMeansNone(t *testing.T) {
	d := startFake(t, true)
	show := screen{tty: true, width: 100, color: true}
	tests := []struct {
		name string
		env  []string
		args []string
		want bool
	}{
		{"a terminal gets colour", nil, []string{"ps"}, true},
		{"the flag turns it off", nil, []string{"ps", "--no-color"}, false},
		{"NO_COLOR turns it off", []string{"NO_COLOR=1"}, []string{"ps"}, false},
		{"a dumb terminal has none", []string{"TERM=dumb"}, []string{"ps"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := invoke(t, d.env(tt.env...), show, tt.args...)
			if has := strings.Contains(got.stdout, "\x1b["); has != tt.want {
				t.Errorf("colour %v, want %v:\n%q", has, tt.want, got.stdout)
			}
		})
	}
}

func TestEmptyNodeSaysSo(t *testing.T) {
	d := startFake(t, true)
	d.clients, d.devices = nil, nil
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"ps"}, "no clients (start one with: heddle run -- COMMAND)\n"},
		{[]string{"ps", "--tenant", "web"}, "no clients of tenant web\n"},
		{[]string{"gpus"}, "no GPUs\n"},
		{[]string{"ps", "--json"}, "{\n  \"clients\": []\n}\n"},
		{[]string{"gpus", "--json"}, "{\n  \"devices\": []\n}\n"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			want := result{stdout: tt.want}
			if diff := cmp.Diff(want, invoke(t, d.env(), screen{}, tt.args...), cmp.AllowUnexported(result{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatusAndVersion(t *testing.T) {
	d := startFake(t, true)
	var out strings.Builder
	a := &app{stdout: &out, socket: "/run/heddle/heddled.sock"}
	view := a.viewStatus(d.status)
	view.Version, view.AttachSocket = "v1.2.3", "/run/heddle/attach/attach.sock"
	if err := a.printStatus(&view, view.Started.Add(26*time.Hour+5*time.Minute)); err != nil {
		t.Fatal(err)
	}
	wantGolden(t, "status.txt", out.String())

	var status statusView
	got := invoke(t, d.env(), screen{}, "status", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &status); err != nil || status.Generation != 4 || status.APISocket != d.socket {
		t.Errorf("status --json: %v, %+v", err, status)
	}
	got = invoke(t, d.env(), screen{}, "version")
	want := fmt.Sprintf("heddled %s\n", d.status.GetVersion())
	if !strings.HasPrefix(got.stdout, "heddle ") || !strings.HasSuffix(got.stdout, want) {
		t.Errorf("version: %q", got.stdout)
	}
	got = invoke(t, []string{"HEDDLE_API=/nonexistent/api.sock"}, screen{}, "version", "--json")
	var version versionView
	if err := json.Unmarshal([]byte(got.stdout), &version); err != nil || version.Heddled != "" || got.code != exitOK {
		t.Errorf("version without heddled: %v, %+v, exit %d", err, version, got.code)
	}
}

func TestCompletionAsksTheDaemon(t *testing.T) {
	d := startFake(t, true)
	tests := []struct {
		args []string
		want []string
	}{
		{[]string{"set", "--client", ""}, []string{"1\tpid 4242, resnet /usr/bin/serve --port 8000", "3\tpid 4711, train python3 train.py --epochs 90"}},
		{[]string{"set", "--tenant", ""}, []string{"research", "web"}},
		{[]string{"ps", "--tenant", ""}, []string{"research", "web"}},
		{[]string{"run", "--device", ""}, []string{"0\tNVIDIA H100 80GB HBM3", uuidA, uuidMIG + "\t1g.10gb"}},
		{[]string{"run", "--priority", ""}, classNames()},
		{[]string{"set", "--re"}, []string{"--reset\tundo what was set: back to the configuration and the client's own wish"}},
		{[]string{"s"}, []string{"set\tChange the priority, weight or objective of a client or tenant"}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			got := invoke(t, d.env(), screen{}, append([]string{"__complete"}, tt.args...)...)
			lines := strings.Split(got.stdout, "\n")
			for _, want := range tt.want {
				found := false
				for _, line := range lines {
					found = found || line == want
				}
				if !found {
					t.Errorf("%q is not offered in:\n%s", want, got.stdout)
				}
			}
		})
	}
	t.Run("nothing is said without a daemon", func(t *testing.T) {
		got := invoke(t, []string{"HEDDLE_API=/nonexistent/api.sock"}, screen{}, "__completeNoDesc", "set", "--client", "")
		if got.stdout != ":36\n" {
			t.Errorf("stdout %q", got.stdout)
		}
	})
}

func TestPsTellsWhatAGangWaitsFor(t *testing.T) {
	device := &clientDeviceView{Device: "0", Gate: "closed", Held: true}
	for _, tt := range []struct {
		name string
		view clientView
		want string
	}{
		{"a rank of a gang that is not complete", clientView{Gang: "job", GangSize: 4, GangRanks: 2}, "waiting for gang 2/4"},
		{"a rank of a complete gang", clientView{Gang: "job", GangSize: 4, GangRanks: 4}, "held"},
		{"more ranks than asked for", clientView{Gang: "job", GangSize: 4, GangRanks: 5}, "held"},
		{"no gang", clientView{}, "held"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := gateCell(&tt.view, device).text; got != tt.want {
				t.Errorf("shown as %q, want %q", got, tt.want)
			}
		})
	}
	waiting := clientsTable([]clientView{{Gang: "job", GangSize: 4, GangRanks: 2, Devices: []clientDeviceView{*device}}})
	var out strings.Builder
	if err := waiting.write(&out, 0, palette{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GANG", "job", "waiting for gang 2/4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the list lacks %q:\n%s", want, out.String())
		}
	}
}
