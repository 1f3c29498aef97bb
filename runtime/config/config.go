// Package config holds everything that can be set about heddled: one struct,
// read from a TOML file, the environment and flags, every problem reported at
// once with its place.
//
// The precedence is flags > environment > file > defaults. Each value
// remembers where it came from, so that `heddle config dump` can show it.
package config

import (
	"errors"
	"strconv"
	"time"
)

// Version is the configuration format that this build writes. Older versions
// are migrated on reading, newer ones refused.
const Version = 1

// Classes is the number of scheduling classes; 0 is the most urgent.
const Classes = 10

// Config is the configuration in force.
type Config struct {
	APISocket   string // control API: Connect, gRPC and JSON
	AttachDir   string // directory of the attach socket, mounted into containers
	StateDir    string // what must survive a restart of heddled
	AdminGroup  string // members may change things through the API
	NVMLLibrary string // path of libnvidia-ml.so.1; empty = the loader's search

	Log        Log
	Clients    Clients
	Scheduling Scheduling
	Classes    [Classes]Class
	Devices    []DeviceRule
	Rules      []Rule
}

// Log says what heddled logs and how.
type Log struct {
	Level  string // debug, info, warn, error
	Format string // text, json
}

// Clients bounds what attached processes may take of heddled.
type Clients struct {
	Max              int
	MaxPerUser       int
	HandshakeTimeout time.Duration
}

// Scheduling holds what is not particular to one class.
type Scheduling struct {
	Policy   string
	Fail     FailMode // what clients do when heddled is gone
	Priority int      // class of a client that no rule names
	Weight   int      // share inside that class

	Interval time.Duration // how often policies that adapt plan anew
	Measure  int           // launches to one that is measured, of a workload that is known; 0 = nothing is learnt
	Quantum  time.Duration // turn of a client under the policy timeslice
	SLO      float64       // slowdown that clients accept, 0.02 = 2 %; 0 = no objective
}

// Policies are the names that Scheduling.Policy may have.
func Policies() []string {
	return []string{"heddle", "priority", "orion", "fikit", "fair", "timeslice", "rate", "none"}
}

// FailMode is what a closed gate does when heddled is gone.
type FailMode string

// The fail modes.
const (
	FailOpen   FailMode = "open"
	FailClosed FailMode = "closed"
)

// Class holds the gate's parameters for one scheduling class.
type Class struct {
	Window   time.Duration // bound on predicted outstanding work
	Estimate time.Duration // device time of a kernel that has no profile
	Quiet    time.Duration // how long a higher class must have been idle
	MaxHold  time.Duration // a held launch opens after this
	Margin   float64       // safety margin on predictions, 0.1 = 10 %

	MinGap   time.Duration // shorter predicted gaps are not filled
	Beside   time.Duration // bound on own work beside a higher class, 0 = never beside
	Token    time.Duration // how long the turn at a gap may be kept, 0 = fills none
	MaxBlock time.Duration // launches predicted longer are held for good, 0 = none are
	Keep     float64       // share of the device's time that clients with yield points keep together
}

// Isolation is how much a client may see of its neighbours.
type Isolation string

// The isolation levels.
const (
	// IsolationShared clients read the segments of the clients they yield to.
	IsolationShared Isolation = "shared"
	// IsolationStrict clients see no peer; heddled opens and closes their gate.
	IsolationStrict Isolation = "strict"
)

// Rule grants something to the clients that match it; the first rule that
// matches decides. Every match field that is set must match; a list matches
// if one of its entries does.
type Rule struct {
	Users       []string // names or numbers
	Groups      []string // names or numbers, primary or supplementary
	Cgroups     []string // globs on the cgroup path
	Executables []string // globs on the path of the executable

	Tenant      string
	MaxPriority int // the most urgent class that hints may ask for
	Priority    int // class without a hint
	Weight      int
	SLO         *Objective // nil = that of scheduling
	Isolation   Isolation
	Refuse      bool

	Origin string // where the rule stands
}

// classNames are the classes with names, in the order of their numbers.
func classNames() []struct {
	Name  string
	Class int
} {
	return []struct {
		Name  string
		Class int
	}{{"realtime", 0}, {"high", 2}, {"normal", 5}, {"low", 7}, {"idle", 9}}
}

// ParseClass reads a class by its number or its name.
func ParseClass(text string) (int, error) {
	for _, c := range classNames() {
		if text == c.Name {
			return c.Class, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= Classes {
		return 0, errors.New("want 0 to 9, realtime, high, normal, low or idle")
	}
	return n, nil
}

// ClassName is the name of a class, or its number if it has none.
func ClassName(class int) string {
	for _, c := range classNames() {
		if c.Class == class {
			return c.Name
		}
	}
	return strconv.Itoa(class)
}
