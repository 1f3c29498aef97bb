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

// Kept returns what part of its device's time each client with yield points is to keep, in parts per
// million: that of its class, by weight among the clients of the class. It is nothing for one that
// yields to nobody, or to a client of class 0: what was promised to that one holds.
func Kept(verdicts []Verdict) []uint32 {
	total := map[group]uint64{}
	realtime := map[flowKey]bool{}
	for i := range verdicts {
		v := &verdicts[i]
		total[group{v.Device, v.Class}] += weightOf(v)
		realtime[flowKey{v.Device, v.Client}] = v.Class == 0
	}
	kept := make([]uint32, len(verdicts))
	for i := range verdicts {
		// The most urgent one comes first.
		if v := &verdicts[i]; len(v.Yields) != 0 && !realtime[flowKey{v.Device, v.Yields[0]}] {
			kept[i] = uint32(uint64(v.Parameters.KeepPPM) * weightOf(v) / total[group{v.Device, v.Class}])
		}
	}
	return kept
}

func weightOf(v *Verdict) uint64 { return uint64(max(1, v.Weight)) }
