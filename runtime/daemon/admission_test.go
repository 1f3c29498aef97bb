package daemon

import (
	"testing"

	"github.com/heddle-project/heddle/runtime/clients"
)

func TestTheDefaultTenantIsNothingThatAUserCanChoose(t *testing.T) {
	const container = "0123456789ab"
	tests := []struct {
		name, cgroup, container, user, want string
	}{
		{"a container of the system", "/system.slice/docker-" + container + ".scope", container, "root", "container-" + container},
		{"a container of Kubernetes", "/kubepods.slice/cri-containerd-" + container + ".scope", container, "alice", "container-" + container},
		{"a group that a user named like a container", "/user.slice/user-1000.slice/user@1000.service/docker-" + container + ".scope",
			container, "alice", "alice"},
		{"the same by a user without a name", "/user.slice/user-1000.slice/user@1000.service/" + container, container, "", "uid-1000"},
		{"no container", "/user.slice/user-1000.slice/session-2.scope", "", "alice", "alice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			who := &clients.Applicant{Identity: clients.Identity{UID: 1000, Cgroup: tt.cgroup, Container: tt.container}}
			if got := defaultTenant(who, tt.user); got != tt.want {
				t.Errorf("tenant %q, want %q", got, tt.want)
			}
		})
	}
}
