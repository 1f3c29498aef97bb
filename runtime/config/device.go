package config

import (
	"path"
	"strconv"
	"strings"
)

// DeviceRule sets how the devices that it matches are shared.
type DeviceRule struct {
	// Match has UUIDs, and globs on the names of models; empty = every device.
	Match  []string
	Policy string

	Origin string // where the rule stands
}

// PolicyFor is the policy for a device: of the first rule that matches it, else that of scheduling.
// uuid is in the form of NVML, name the driver's name of the model. origin is where the rule stands,
// empty if there is none.
func (c *Config) PolicyFor(uuid, name string) (policy, origin string) {
	for i := range c.Devices {
		if r := &c.Devices[i]; r.matches(uuid, name) {
			return r.Policy, r.Origin
		}
	}
	return c.Scheduling.Policy, ""
}

func (r *DeviceRule) matches(uuid, name string) bool {
	if len(r.Match) == 0 {
		return true
	}
	for _, pattern := range r.Match {
		if isUUID(pattern) {
			if strings.EqualFold(pattern, uuid) {
				return true
			}
			continue
		}
		if ok, err := path.Match(pattern, name); ok && err == nil { // validated
			return true
		}
	}
	return false
}

func isUUID(pattern string) bool {
	return strings.HasPrefix(pattern, "GPU-") || strings.HasPrefix(pattern, "MIG-")
}

func deviceSchema() []itemEntry[DeviceRule] {
	return []itemEntry[DeviceRule]{
		words("match", func(r *DeviceRule) *[]string { return &r.Match }),
		{
			key: "policy",
			set: func(r *DeviceRule, l literal) (err error) {
				r.Policy, err = oneOf(l, Policies()...)
				return err
			},
			get: func(r *DeviceRule) string { return quote(r.Policy) },
		},
	}
}

func (k *checker) devices(rules []DeviceRule) {
	everything := ""
	for i := range rules {
		r := &rules[i]
		at := "device." + strconv.Itoa(i) + "."
		if everything != "" {
			k.fail(at+"match", "never reached: %s matches every device", everything)
		}
		if len(r.Match) == 0 && everything == "" {
			everything = "device." + strconv.Itoa(i)
		}
		if r.Policy == "" {
			k.fail(at+"policy", "not set")
		}
		for _, pattern := range r.Match {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				k.fail(at+"match", "%q is neither a UUID nor a pattern of a model's name", pattern)
			}
		}
	}
}
