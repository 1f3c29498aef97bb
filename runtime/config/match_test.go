package config

import "testing"

func TestFirstMatchingRuleDecides(t *testing.T) {
	cfg, err := assemble(Source{}, "f", []byte(`version = 1
[[rule]]
user = "mallory"
refuse = true
[[rule]]
group = ["gpu", 44]
executable = "/usr/bin/python3*"
tenant = "science"
priority = "high"
[[rule]]
cgroup = "/kubepods.slice/**/cri-containerd-*.scope"
tenant = "pods"
max_priority = "realtime"
`))
	if err != nil {
		t.Fatal(err)
	}
	m := NewMatcher(&cfg.Config)
	yes, no := func() bool { return true }, func() bool { return false }
	tests := []struct {
		name string
		id   Identity
		want Grant
	}{
		{"a stranger gets the default", Identity{UID: 7, Cgroup: "/user.slice"},
			Grant{MaxPriority: 5, Priority: 5, Weight: 100, Isolation: IsolationShared}},
		{"a refused user is refused whatever else matches",
			Identity{User: "mallory", Groups: []string{"gpu"}, Executable: "/usr/bin/python3.11"},
			Grant{MaxPriority: 5, Priority: 5, Weight: 100, Isolation: IsolationShared, Refuse: true, Origin: "file:2"}},
		{"every field of a rule must match, a number is a group too",
			Identity{GIDs: []int{44}, Executable: "/usr/bin/python3.11", Genuine: yes},
			Grant{Tenant: "science", MaxPriority: 2, Priority: 2, Weight: 100, Isolation: IsolationShared, Origin: "file:5"}},
		{"another file at that path is another program", Identity{GIDs: []int{44}, Executable: "/usr/bin/python3.11", Genuine: no},
			Grant{MaxPriority: 5, Priority: 5, Weight: 100, Isolation: IsolationShared}},
		{"a file that cannot be seen is no program of a rule", Identity{GIDs: []int{44}, Executable: "/usr/bin/python3.11"},
			Grant{MaxPriority: 5, Priority: 5, Weight: 100, Isolation: IsolationShared}},
		{"one star stays inside one part of the path",
			Identity{GIDs: []int{44}, Executable: "/usr/bin/python3/evil", Genuine: yes},
			Grant{MaxPriority: 5, Priority: 5, Weight: 100, Isolation: IsolationShared}},
		{"two stars cross parts, and a grant above the default keeps the default class",
			Identity{Cgroup: "/kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope"},
			Grant{Tenant: "pods", MaxPriority: 0, Priority: 5, Weight: 100, Isolation: IsolationShared, Origin: "file:10"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := m.Match(&tt.id); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
