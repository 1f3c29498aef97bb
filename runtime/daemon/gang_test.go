package daemon

import (
	"testing"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/wire"
)

// What the command line lets through, a client must be able to say, and nothing else.
func TestGangsAreNamedAlikeEverywhere(t *testing.T) {
	if config.GangMax != abi.GangMax {
		t.Errorf("a gang has up to %d ranks on the command line and %d in the contract", config.GangMax, abi.GangMax)
	}
	for r := range rune(0x180) {
		if r == ':' || r == 0 {
			continue // the one divides, the other ends
		}
		name := "a" + string(r)
		_, _, err := config.ParseGang(name + ":2")
		hello := wire.Hello{ABIVersion: 1, ABIOldest: 1, PriorityHint: abi.HintNone, Gang: name, GangSize: 2}
		_, said := wire.Decode(wire.Encode(nil, hello))
		if (err == nil) != (said == nil) {
			t.Errorf("%q: the command line says %v, the protocol %v", name, err, said)
		}
	}
}
