package clients

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/heddle-project/heddle/runtime/abi"
)

func TestRegrantChangesLivingClients(t *testing.T) {
	s := serve(t)
	grant := func(name string, g Grant) {
		s.policy.mu.Lock()
		defer s.policy.mu.Unlock()
		s.policy.grants[name] = g
	}
	all := func(*Info) bool { return true }
	a := attach(t, s.path, hello("a"))
	a.open(0, gpu0)
	b := attach(t, s.path, hello("b"))
	b.open(0, gpu0)
	seven := 7
	grant("a", Grant{Tenant: "t", Priority: 5, Weight: 100, Override: Override{Priority: &seven}})
	infos := s.Regrant(t.Context(), func(i *Info) bool { return i.ID == a.welcome.ClientID })
	if len(infos) != 1 || infos[0].Priority != 7 {
		t.Fatalf("%+v", infos)
	}
	eventually(t, "a yields to b", func() bool { return a.gate(0) == abi.GateYield && b.gate(0) == abi.GatePublish })
	grant("b", Grant{Tenant: "t", Priority: 2, Weight: 30})
	if infos := s.Regrant(t.Context(), all); len(infos) != 2 {
		t.Fatalf("%+v", infos)
	}
	for _, c := range s.List() {
		if want := map[string]int{"a": 7, "b": 2}[c.Name]; c.Priority != want {
			t.Errorf("%s: class %d, want %d", c.Name, c.Priority, want)
		}
	}
	// Undone: both are what they were, and yield to nobody.
	grant("a", Grant{Tenant: "somebody else's", Priority: 5, Weight: 100})
	grant("b", Grant{Tenant: "t", Priority: 5, Weight: 100})
	for _, i := range s.Regrant(t.Context(), all) {
		if i.Priority != 5 || i.Weight != 100 || i.Tenant != "t" {
			t.Errorf("%s of %s: class %d weight %d after the reset", i.Name, i.Tenant, i.Priority, i.Weight)
		}
	}
	eventually(t, "nobody yields", func() bool { return a.gate(0) == 0 && b.gate(0) == 0 })
	if infos := s.Regrant(t.Context(), func(i *Info) bool { return i.ID == 99 }); len(infos) != 0 {
		t.Errorf("a client that is not there was granted %+v", infos)
	}
}

func TestARefusedRegrantLeavesWhatWasGranted(t *testing.T) {
	s := serve(t)
	s.policy.grants["a"] = Grant{Tenant: "t", Priority: 3, Weight: 70}
	attach(t, s.path, hello("a"))
	s.policy.mu.Lock()
	s.policy.refuse["a"] = true
	s.policy.mu.Unlock()
	if infos := s.Regrant(t.Context(), func(*Info) bool { return true }); len(infos) != 0 {
		t.Errorf("granted anew: %+v", infos)
	}
	if list := s.List(); len(list) != 1 || list[0].Priority != 3 || list[0].Weight != 70 {
		t.Errorf("%+v", list)
	}
}

// A client is let in under the grant that was just replaced, in the moment
// between its answer and its place in the list.
func TestAClientThatAttachesDuringARegrantHasTheNewGrant(t *testing.T) {
	var s *server
	admission := &changingAdmission{between: func() { s.Regrant(t.Context(), func(*Info) bool { return true }) }}
	s = serve(t, func(o *Options) { o.Admission = admission })
	attach(t, s.path, hello("a"))
	eventually(t, "the client has the grant that came last", func() bool {
		list := s.List()
		return len(list) == 1 && list[0].Priority == 7
	})
}

// changingAdmission grants class 5, and class 7 from its first answer on: between runs before that
// answer is given.
type changingAdmission struct {
	between func()
	changed atomic.Bool
}

func (a *changingAdmission) Admit(context.Context, *Applicant) (Grant, error) {
	if !a.changed.CompareAndSwap(false, true) {
		return Grant{Tenant: "t", Priority: 7, Weight: 100}, nil
	}
	a.between()
	return Grant{Tenant: "t", Priority: 5, Weight: 100}, nil
}
