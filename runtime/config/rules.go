package config

import (
	"fmt"
	"strconv"
	"strings"
)

// itemEntry is an entry of a table of which there may be many, such as [[rule]].
type itemEntry[T any] struct {
	key string
	set func(*T, literal) error
	get func(*T) string // as TOML; empty = not set
}

func ruleSchema() []itemEntry[Rule] {
	return []itemEntry[Rule]{
		words("user", func(r *Rule) *[]string { return &r.Users }),
		words("group", func(r *Rule) *[]string { return &r.Groups }),
		words("cgroup", func(r *Rule) *[]string { return &r.Cgroups }),
		words("executable", func(r *Rule) *[]string { return &r.Executables }),
		{
			key: "tenant",
			set: func(r *Rule, l literal) error {
				r.Tenant = l.text
				return want(l, kindString)
			},
			get: func(r *Rule) string { return orEmpty(r.Tenant != "", quote(r.Tenant)) },
		},
		ruleClass("max_priority", func(r *Rule) *int { return &r.MaxPriority }),
		ruleClass("priority", func(r *Rule) *int { return &r.Priority }),
		{
			key: "weight",
			set: func(r *Rule, l literal) (err error) {
				r.Weight, err = integer(l)
				return err
			},
			get: func(r *Rule) string { return strconv.Itoa(r.Weight) },
		},
		{
			key: "slo",
			set: func(r *Rule, l literal) (err error) {
				r.SLO, err = objective(l)
				return err
			},
			get: func(r *Rule) string { return orEmpty(r.SLO != nil, r.SLO.toml()) },
		},
		{
			key: "isolation",
			set: func(r *Rule, l literal) (err error) {
				r.Isolation, err = oneOf(l, IsolationShared, IsolationStrict)
				return err
			},
			get: func(r *Rule) string { return quote(string(r.Isolation)) },
		},
		{
			key: "refuse",
			set: func(r *Rule, l literal) error {
				r.Refuse = l.text == "true"
				return want(l, kindBool)
			},
			get: func(r *Rule) string { return orEmpty(r.Refuse, "true") },
		},
	}
}

func orEmpty(ok bool, s string) string {
	if !ok {
		return ""
	}
	return s
}

func ruleClass(key string, at func(*Rule) *int) itemEntry[Rule] {
	return itemEntry[Rule]{
		key: key,
		set: func(r *Rule, l literal) (err error) {
			*at(r), err = classOf(l)
			return err
		},
		get: func(r *Rule) string { return classTOML(*at(r)) },
	}
}

// words reads one word or a list of them. Numbers are taken too, so that
// user = 1000 works.
func words[T any](key string, at func(*T) *[]string) itemEntry[T] {
	return itemEntry[T]{
		key: key,
		set: func(r *T, l literal) error {
			items := []literal{l}
			if l.kind == kindList {
				items = l.items
			}
			for _, item := range items {
				if item.kind != kindString && item.kind != kindInteger {
					return fmt.Errorf("want a string or a list of strings, have %v", item.kind)
				}
				*at(r) = append(*at(r), item.text)
			}
			return nil
		},
		get: func(r *T) string {
			quoted := make([]string, len(*at(r)))
			for i, s := range *at(r) {
				quoted[i] = quote(s)
			}
			return orEmpty(len(quoted) > 0, "["+strings.Join(quoted, ", ")+"]")
		},
	}
}

// notSet marks the numbers of a rule that its file left out, until they are
// filled from the defaults.
const notSet = -1

func newRule(origin string) Rule {
	return Rule{
		MaxPriority: notSet,
		Priority:    notSet,
		Weight:      notSet,
		Isolation:   IsolationShared,
		Origin:      origin,
	}
}

// fill completes a rule: the class without a hint is the general default, but
// never above what the rule grants; without max_priority the grant is the
// rule's own class, so that a hint can only lower it.
func (r *Rule) fill(s Scheduling) {
	switch {
	case r.Priority == notSet && r.MaxPriority == notSet:
		r.Priority, r.MaxPriority = s.Priority, s.Priority
	case r.Priority == notSet:
		r.Priority = max(s.Priority, r.MaxPriority)
	case r.MaxPriority == notSet:
		r.MaxPriority = r.Priority
	}
	if r.Weight == notSet {
		r.Weight = s.Weight
	}
}
