package integration

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/tests/node"
)

// Small programs that open the driver in every way there is; see
// interpose/test/snippets. Each runs bare and behind the interposer, and the
// two must see the same driver.

// A snippet is one run of such a program.
type snippet struct {
	name  string
	args  []string
	stdin string
	env   []string // added last
}

// drivers are the software GPU and the drivers that it can play.
var drivers = []struct{ name, folder string }{
	{"plain", "softgpu"},
	{"calling itself through the dynamic linker", "softgpu-plt"},
	{"older, without newer names", "softgpu-old"},
	{"newer, with names and addresses of its own", "softgpu-new"},
}

func snippetPath(t *testing.T, n *node.Node, name string) string {
	t.Helper()
	path := filepath.Join(buildDir(n), "test", "interpose", "snippets", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("not built: %v; run make interpose-snippets", err)
	}
	return path
}

func buildDir(n *node.Node) string {
	return filepath.Dir(filepath.Dir(filepath.Dir(n.Interposer())))
}

// output runs a snippet in this environment; it must end well.
func (s snippet) output(t *testing.T, n *node.Node, env []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), snippetPath(t, n, s.name), s.args...)
	cmd.Env = slices.Concat(os.Environ(), env, s.env)
	cmd.Stdin = strings.NewReader(s.stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", s.name, s.args, err, out, stderr.Bytes())
	}
	return string(out)
}

// sameBothWays runs a snippet bare and behind the interposer and compares what
// it printed, but for the lines that name the library.
func (s snippet) sameBothWays(t *testing.T, n *node.Node) {
	t.Helper()
	bare := withoutPaths(s.output(t, n, n.ClientEnv(node.Hints{Bare: true})))
	behind := withoutPaths(s.output(t, n, n.ClientEnv(node.Hints{})))
	if len(bare) == 0 {
		t.Fatalf("%s printed nothing", s.name)
	}
	differ := 0
	for i := range max(len(bare), len(behind)) {
		if line(bare, i) == line(behind, i) {
			continue
		}
		if differ++; differ <= 10 {
			t.Errorf("line %d\n bare: %s\nbehind: %s", i+1, line(bare, i), line(behind, i))
		}
	}
	if differ > 10 {
		t.Errorf("%d of %d lines differ", differ, len(bare))
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(none)"
}

// withoutPaths drops the lines that say where a function was found.
func withoutPaths(out string) []string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "/") })
}

// symbolNames is the interposer's list.
func symbolNames(t *testing.T, n *node.Node) []string {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(filepath.Dir(buildDir(n)), "interpose", "symbols.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for l := range strings.Lines(string(list)) {
		if fields := strings.Fields(l); len(fields) > 0 && fields[0] != "#" {
			names = append(names, fields[0])
		}
	}
	return names
}

func eachDriver(t *testing.T, run func(t *testing.T, n *node.Node, folder string)) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			n := node.New(t, node.Options{Driver: filepath.Join(repository(t), "build", d.folder)})
			run(t, n, d.folder)
		})
	}
}

func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestGroup01EveryAnswerOfGetProcAddressHasTheSameName(t *testing.T) {
	eachDriver(t, func(t *testing.T, n *node.Node, folder string) {
		s := snippet{name: "names", stdin: strings.Join(symbolNames(t, n), "\n")}
		if folder == "softgpu-old" {
			s.args = []string{"old"}
		}
		s.sameBothWays(t, n)
	})
}

func TestGroup02CornersOfGetProcAddress(t *testing.T) {
	for _, folder := range []string{"softgpu", "softgpu-plt", "softgpu-new"} {
		t.Run(folder, func(t *testing.T) {
			n := node.New(t, node.Options{Driver: filepath.Join(repository(t), "build", folder)})
			snippet{name: "asked"}.sameBothWays(t, n)
		})
	}
}

// Which ways of opening the driver meet the interposer depends on where it
// stands. The expectations are the facts of the dynamic linker; that the file
// at the driver's own path meets them all is why containers get it there.
func TestGroup03EveryWayOfOpeningTheDriver(t *testing.T) {
	n := node.New(t, node.Options{})
	soft := filepath.Join(buildDir(n), "softgpu")
	placed := placedFolder(t, n)
	settings := []struct {
		name string
		env  []string
		path string // of the driver, as a program would know it
	}{
		{"in LD_LIBRARY_PATH", []string{"LD_LIBRARY_PATH=" + filepath.Dir(n.Interposer()) + ":" + soft}, soft},
		{"in LD_PRELOAD", []string{"LD_LIBRARY_PATH=" + soft, "LD_PRELOAD=" + n.Interposer()}, soft},
		{"at the driver's path", []string{"LD_LIBRARY_PATH=" + placed, "HEDDLE_REAL_LIBCUDA=" + filepath.Join(placed, "libcuda.so.610.43.02")}, placed},
	}
	ways := []struct {
		name    string
		snippet string
		arg     string
		meets   [3]bool // by the settings above
	}{
		{"linked", "linked", "", [3]bool{true, true, true}},
		{"linked with an RPATH", "linked-rpath", "", [3]bool{false, true, false}},
		{"dlopen of the SONAME", "open", "libcuda.so.1", [3]bool{true, true, true}},
		{"dlopen of the development name", "open", "libcuda.so", [3]bool{false, false, true}},
		{"dlopen of an absolute path", "open", "ABSOLUTE", [3]bool{false, false, true}},
		{"a static runtime", "runtime", "", [3]bool{true, true, true}},
		{"from a constructor", "constructor", "", [3]bool{true, true, true}},
		{"32 threads at once", "threads", "", [3]bool{true, true, true}},
	}
	for i, at := range settings {
		for _, way := range ways {
			t.Run(at.name+"/"+way.name, func(t *testing.T) {
				s := snippet{name: way.snippet}
				switch way.arg {
				case "":
				case "ABSOLUTE":
					s.args = []string{filepath.Join(at.path, "libcuda.so.1")}
				default:
					s.args = []string{way.arg}
				}
				out := strings.Fields(s.output(t, n, append(n.DeviceEnv(), at.env...)))
				if len(out) != 2 || out[1] != "0" {
					t.Fatalf("the program said %q", out)
				}
				if got := isInterposer(t, out[0]); got != way.meets[i] {
					t.Errorf("opened %s: interposed is %v, want %v", out[0], got, way.meets[i])
				}
			})
		}
	}
}

// placedFolder is a driver folder as a container gets it: the interposer under
// the driver's name, the driver under its full one, the links as installed.
func placedFolder(t *testing.T, n *node.Node) string {
	t.Helper()
	dir := t.TempDir()
	copyFile(t, n.Interposer(), filepath.Join(dir, "libcuda.so.1"))
	copyFile(t, filepath.Join(buildDir(n), "softgpu", "libcuda.so.1"), filepath.Join(dir, "libcuda.so.610.43.02"))
	if err := os.Symlink("libcuda.so.1", filepath.Join(dir, "libcuda.so")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

// isInterposer looks for the note that every build of the interposer carries.
func isInterposer(t *testing.T, path string) bool {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(content, []byte(".note.heddle"))
}

func TestGroup03ThirdLibraryGoesOnWithRTLDNext(t *testing.T) {
	n := node.New(t, node.Options{})
	third := snippetPath(t, n, "libthird.so")
	s := snippet{name: "linked", env: []string{"LD_PRELOAD=" + third}}
	out := s.output(t, n, n.ClientEnv(node.Hints{}))
	if want := "next " + n.Interposer(); !strings.Contains(out, want) {
		t.Errorf("the program said %q, want %q in it", out, want)
	}
}

func TestGroup04EveryKindOfLaunch(t *testing.T) {
	eachDriver(t, func(t *testing.T, n *node.Node, _ string) {
		snippet{name: "launches"}.sameBothWays(t, n)
	})
}

func TestGroup12CreateWithHostAndNUMALocations(t *testing.T) {
	n := node.New(t, node.Options{})
	snippet{name: "create"}.sameBothWays(t, n)
}

func TestGroup13NamesThatTheDriverLacks(t *testing.T) {
	n := node.New(t, node.Options{Driver: filepath.Join(repository(t), "build", "softgpu-old")})
	missing := absentIn(t, n)
	if len(missing) < 50 {
		t.Fatalf("the older driver lacks only %d names", len(missing))
	}
	s := snippet{name: "missing", stdin: strings.Join(missing, "\n")}
	for l := range strings.Lines(s.output(t, n, n.ClientEnv(node.Hints{}))) {
		if !strings.HasSuffix(strings.TrimSpace(l), " 801") {
			t.Errorf("a name that the driver lacks: %s", l)
		}
	}
}

// absentIn asks the bare driver which of the listed names it does not have.
func absentIn(t *testing.T, n *node.Node) []string {
	t.Helper()
	exported := make(map[string]bool)
	cmd := exec.CommandContext(t.Context(), "nm", "-D", "--defined-only", "--format=posix",
		filepath.Join(repository(t), "build", "softgpu-old", "libcuda.so.1"))
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("nm: %v", err)
	}
	for l := range strings.Lines(string(out)) {
		exported[strings.Fields(l)[0]] = true
	}
	return slices.DeleteFunc(symbolNames(t, n), func(name string) bool { return exported[name] })
}

// The exports are the list and the yield points, for both machines: no name
// forgotten, nothing else of ours let out.
func TestExportsEqualTheList(t *testing.T) {
	n := node.New(t, node.Options{})
	want := append(symbolNames(t, n), "heddle_wanted_v1", "heddle_yield_v1")
	for _, folder := range []string{"heddle", "heddle-aarch64"} {
		t.Run(folder, func(t *testing.T) {
			path := filepath.Join(buildDir(n), "lib", folder, "libcuda.so.1")
			if _, err := os.Stat(path); err != nil {
				t.Skipf("not built: %v; run make interpose-arm64", err)
			}
			out, err := exec.CommandContext(t.Context(), "nm", "-D", "--defined-only", "--format=posix", path).Output()
			if err != nil {
				t.Fatalf("nm: %v", err)
			}
			var got []string
			for l := range strings.Lines(string(out)) {
				got = append(got, strings.Fields(l)[0])
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%d exports, want the %d of the list", len(got), len(want))
			}
		})
	}
}

func TestGroup17MuslProgram(t *testing.T) {
	n := node.New(t, node.Options{})
	musl := filepath.Join(buildDir(n), "test", "interpose", "musl")
	open := filepath.Join(musl, "open")
	if _, err := os.Stat(open); err != nil {
		t.Skipf("not built: %v; run make interpose-snippets", err)
	}
	cmd := exec.CommandContext(t.Context(), open, "libcuda.so.1")
	cmd.Env = append(n.ClientEnv(node.Hints{}), "LD_PRELOAD=",
		"LD_LIBRARY_PATH="+filepath.Join(musl, "heddle"),
		"HEDDLE_REAL_LIBCUDA="+filepath.Join(musl, "fake", "libcuda.so.1"))
	out, err := cmd.CombinedOutput()
	if want := filepath.Join(musl, "heddle", "libcuda.so.1") + " 0\n"; err != nil || string(out) != want {
		t.Errorf("the program said %q (%v), want %q", out, err, want)
	}
}

// A driver may make one launch out of another through the dynamic linker, and
// come back to a preloaded interposer. The program made one launch.
func TestGroup04ALaunchIsCountedOnceWhateverTheDriverCalls(t *testing.T) {
	for _, folder := range []string{"softgpu", "softgpu-plt"} {
		t.Run(folder, func(t *testing.T) {
			n := node.New(t, node.Options{})
			n.StartDaemon()
			cmd := exec.CommandContext(t.Context(), snippetPath(t, n, "cooperative"))
			driver := filepath.Join(buildDir(n), folder, "libcuda.so.1")
			cmd.Env = append(os.Environ(), n.ClientEnv(node.Hints{Env: []string{"HEDDLE_REAL_LIBCUDA=" + driver}})...)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			n.Eventually("1000 launches are counted", func() bool { return n.Attached(cmd.Process.Pid).GetLaunches() >= 1000 })
			if got := n.Attached(cmd.Process.Pid).GetLaunches(); got != 1000 {
				t.Errorf("%d launches counted, want 1000", got)
			}
			if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The arm64 build, run by an emulator of the processor alone. The emulator keeps
// books of all address space that a program reserves, and the software GPU
// reserves what it gets: -R leaves it 128 GiB.
func TestArm64ActsAsOnTheBareDriver(t *testing.T) {
	n := node.New(t, node.Options{})
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skipf("no emulator: %v", err)
	}
	soft := filepath.Join(buildDir(n), "arm64", "softgpu")
	interposer := filepath.Join(buildDir(n), "lib", "heddle-aarch64")
	for _, part := range []string{soft, interposer} {
		if _, err := os.Stat(filepath.Join(part, "libcuda.so.1")); err != nil {
			t.Skipf("not built: %v; run make interpose-snippets-arm64", err)
		}
	}
	names := strings.Join(symbolNames(t, n), "\n")
	for _, name := range []string{"names", "asked", "threads", "launches"} {
		t.Run(name, func(t *testing.T) {
			run := func(path string) []string {
				cmd := exec.CommandContext(t.Context(), emulator, "-R", "0x2000000000", "-L", "/usr/aarch64-linux-gnu",
					"-E", "LD_LIBRARY_PATH="+path,
					filepath.Join(buildDir(n), "test", "interpose", "snippets-arm64", name))
				cmd.Env = append(os.Environ(), n.DeviceEnv()...)
				cmd.Stdin = strings.NewReader(names)
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%s with %s: %v\n%s", name, path, err, out)
				}
				where := filepath.Join(strings.SplitN(path, ":", 2)[0], "libcuda.so.1 0")
				if name == "threads" && !strings.Contains(string(out), where) {
					t.Errorf("the program said %q, want %q", out, where)
				}
				return withoutPaths(string(out))
			}
			bare, behind := run(soft), run(interposer+":"+soft)
			if !slices.Equal(bare, behind) {
				t.Errorf("bare:\n%s\nbehind:\n%s", head(bare), head(behind))
			}
		})
	}
}

func head(lines []string) string {
	return strings.Join(lines[:min(len(lines), 50)], "\n")
}
