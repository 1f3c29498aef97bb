package deps

// module is the import path all rules below are relative to.
const module = "github.com/heddle-project/heddle"

// mayImport is the tier table of CONTRIBUTING.md: what of ours a production package may name in an import. A package
// that stands in no row fails the test, so that a new one gets its tier before it gets its users; a row without a
// package fails too, so that a rename cannot disable a rule.
var mayImport = map[string][]string{
	// Tier 0: leaves.
	"runtime/abi":     {},
	"runtime/errdefs": {},
	// Tier 1: words.
	"runtime/gpu":    {"runtime/errdefs"},
	"runtime/config": {"runtime/errdefs"},
	"runtime/clock":  {"runtime/abi"},
	// Tier 2: pure.
	"runtime/sched":             {"runtime/errdefs", "runtime/gpu", "runtime/config"},
	"runtime/profiles":          {"runtime/errdefs", "runtime/sched"},
	"partition":                 {"runtime/errdefs", "runtime/gpu"},
	"runtime/sim/device":        {},
	"runtime/sim/device/script": {"runtime/sim/device"},
	"runtime/sim":               {"runtime/profiles", "runtime/sched", "runtime/sim/device"},
	// Tier 3: mechanism. Sideways imports are the ones written here.
	"runtime/shm":       {"runtime/abi", "runtime/errdefs", "runtime/clock"},
	"runtime/wire":      {"runtime/abi", "runtime/errdefs"},
	"runtime/clients":   {"runtime/abi", "runtime/errdefs", "runtime/clock", "runtime/shm", "runtime/wire"},
	"runtime/store":     {"runtime/errdefs"},
	"partition/mig":     {"partition", "runtime/errdefs", "runtime/gpu"},
	"runtime/library":   {"runtime/errdefs", "runtime/sched", "runtime/profiles", "runtime/store"},
	"runtime/nvml":      {"runtime/errdefs", "runtime/gpu"},
	"runtime/telemetry": {"runtime/errdefs", "runtime/gpu"},
	"runtime/timeline":  {"runtime/api/heddle/v1"},
	"runtime/api":       {"runtime/errdefs", "runtime/api/heddle/v1", "runtime/api/heddle/v1/heddlev1connect"},
	// Generated from runtime/api/heddle/v1/heddle.proto.
	"runtime/api/heddle/v1":                 {},
	"runtime/api/heddle/v1/heddlev1connect": {"runtime/api/heddle/v1"},
	// Tier 4: wiring.
	"runtime/daemon": {
		"runtime/abi", "runtime/errdefs", "runtime/gpu", "runtime/config", "runtime/clock", "runtime/sched",
		"runtime/shm", "runtime/wire", "runtime/clients", "runtime/store", "runtime/nvml", "runtime/telemetry",
		"runtime/api", "runtime/api/heddle/v1", "runtime/profiles", "runtime/library",
	},
	// Tier 5: mains.
	"cmd/heddled": {"runtime/daemon", "runtime/config", "runtime/errdefs"},
	"cmd/heddle": {
		"runtime/api", "runtime/api/heddle/v1", "runtime/config", "runtime/errdefs",
		"runtime/timeline",
		"runtime/profiles", "runtime/sched", "runtime/sim", "runtime/sim/device", // heddle sim asks no daemon
	},
	"cmd/genabi":  {},
	"cmd/gensyms": {},
}

// neverReach names what a package must not reach by any chain of imports, with the reason.
var neverReach = []struct {
	from, to, because string
}{
	{"cmd/heddle", "runtime/daemon", "the command line is a guest of the API"},
	{"cmd/heddle", "runtime/shm", "the command line maps nobody's memory"},
	{"cmd/heddle", "runtime/nvml", "the command line builds with cgo off"},
	{"cmd/heddle", "github.com/NVIDIA/go-nvml/pkg/dl", "the command line builds with cgo off"},
	{"runtime/clients", "runtime/sched", "mechanism does not know policy"},
	{"runtime/store", "runtime/config", "the store keeps bytes and versions"},
	{"runtime/sched", "golang.org/x/sys/unix", "policy sees no machine"},
}

// pure lists the packages of tier 2, and impure what they must not import directly.
var (
	pure   = []string{"partition", "runtime/sched", "runtime/profiles", "runtime/sim/device", "runtime/sim/device/script"}
	impure = []string{
		"os", "net", "syscall", "unsafe", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "runtime",
	}
)

// unsafeIn and cgoIn are the only production packages that may import "unsafe" and "C".
var (
	unsafeIn = []string{"runtime/abi", "runtime/shm", "runtime/nvml"}
	cgoIn    = []string{"runtime/nvml"}
)

// topLevel is everything that may stand at the top of the repository beside dotfiles.
var topLevel = []string{
	"cmd", "docs", "interpose", "partition", "runtime", "shim", "tests",
	"ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "go.mod", "go.sum",
}

// bannedNames are folder names that say nothing about what is inside.
var bannedNames = []string{"util", "utils", "common", "helpers", "types", "misc", "pkg", "internal"}
