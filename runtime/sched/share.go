package sched

// million is the whole, for shares in parts per million.
const million = 1_000_000

// Shares returns what part of its device's time the weight of each client is worth, in parts per
// million. Classes do not matter here: a client that gives way at its yield points does so for the
// more urgent ones, and keeps this much.
func Shares(verdicts []Verdict) []uint32 {
	total := map[DeviceID]uint64{}
	for i := range verdicts {
		total[verdicts[i].Device] += weightOf(&verdicts[i])
	}
	shares := make([]uint32, len(verdicts))
	for i := range verdicts {
		v := &verdicts[i]
		shares[i] = uint32(million * weightOf(v) / total[v.Device]) // at most million
	}
	return shares
}

func weightOf(v *Verdict) uint64 { return uint64(max(1, v.Weight)) }
