package sched

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShares(t *testing.T) {
	for _, test := range []struct {
		name    string
		weights []int
		want    []uint32
	}{
		{"nobody", nil, []uint32{}},
		{"one client is worth all of the device", []int{7}, []uint32{1_000_000}},
		{"weights are shares", []int{1, 2, 1}, []uint32{250_000, 500_000, 250_000}},
		{"shares are rounded down", []int{1, 1, 1}, []uint32{333_333, 333_333, 333_333}},
		{"a weight below the least counts as the least", []int{0, -5, 2}, []uint32{250_000, 250_000, 500_000}},
		{"the extremes", []int{10000, 1}, []uint32{999_900, 99}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var verdicts []Verdict
			for i, w := range test.weights {
				verdicts = append(verdicts, Verdict{Client: ClientID(i + 1), Device: "gpu", Class: i % Classes, Weight: w})
			}
			if diff := cmp.Diff(test.want, Shares(verdicts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKept(t *testing.T) {
	verdict := func(class, weight int, keep uint32, yields ...ClientID) Verdict {
		return Verdict{Device: "gpu", Class: class, Weight: weight, Parameters: Parameters{KeepPPM: keep}, Yields: yields}
	}
	realtime := verdict(0, 1, 0)
	realtime.Client = 9
	got := Kept([]Verdict{
		realtime,
		verdict(5, 100, 300_000, 9, 1),
		verdict(2, 100, 500_000),    // yields to nobody
		verdict(7, 100, 200_000, 1), // shares what the class keeps
		verdict(7, 300, 200_000, 1),
		verdict(9, 1, 0, 1, 2, 3),
	})
	if diff := cmp.Diff([]uint32{0, 0, 0, 50_000, 150_000, 0}, got); diff != "" {
		t.Error(diff)
	}
}

// What one device's clients are worth says nothing about another's, and nobody is promised what
// somebody else is.
func TestSharesOfADeviceAreNeverMoreThanAllOfIt(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		verdicts := make([]Verdict, 1+r.IntN(40))
		for i := range verdicts {
			verdicts[i] = Verdict{Client: ClientID(i + 1), Device: DeviceID(rune('a' + r.IntN(3))), Weight: r.IntN(10001)}
		}
		sum := map[DeviceID]int{}
		for i, share := range Shares(verdicts) {
			sum[verdicts[i].Device] += int(share)
		}
		for device, s := range sum {
			if s > 1_000_000 || s < 1_000_000-len(verdicts) {
				t.Fatalf("the clients of %s are worth %d parts per million together: %v", device, s, verdicts)
			}
		}
	}
}
