package sched

import (
	"fmt"
	"strings"
)

// PolicyNames lists the policies, the fullest first.
func PolicyNames() []string {
	return []string{"heddle", "priority", "orion", "fikit", "fair", "timeslice", "rate", "none"}
}

// NewPolicy makes the policy of that name.
func NewPolicy(name string, s Settings) (Policy, error) {
	switch name {
	case "heddle":
		return NewHeddle(s), nil
	case "priority":
		return Priority{Classes: s.Classes}, nil
	case "orion":
		return Orion{s}, nil
	case "fikit":
		return FIKIT{s}, nil
	case "fair":
		return NewFair(s), nil
	case "timeslice":
		return NewTimeSlice(s), nil
	case "rate":
		return NewRate(s), nil
	case "none":
		return None{}, nil
	}
	return nil, fmt.Errorf("no policy is named %q; there are %s", name, strings.Join(PolicyNames(), ", "))
}
