package daemon

import (
	"errors"
	"testing"

	"github.com/heddle-project/heddle/runtime/abi"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/wire"
)

func TestAResetUndoesWhatWasSetForGood(t *testing.T) {
	l := load(t, shortDir(t), "[[rule]]\ntenant = \"t\"\nmax_priority = \"high\"\nweight = 40\n")
	first := start(t, options(l))
	_, welcome := attach(t, l, wire.Hello{PriorityHint: abi.ClassHigh})
	_, other := attach(t, l, wire.Hello{PriorityHint: abi.HintNone})
	target := &heddlev1.SetClientRequest_Id{Id: welcome.ClientID}
	expect := func(r *running, what string, want, wantOther [2]uint32) {
		t.Helper()
		clients, err := r.Clients(t.Context(), nil)
		if err != nil || len(clients) != 2 {
			t.Fatalf("%s: %v, %v", what, clients, err)
		}
		for _, c := range clients {
			w := want
			if c.GetId() == other.ClientID {
				w = wantOther
			}
			if got := [2]uint32{c.GetPriority(), c.GetWeight()}; got != w {
				t.Errorf("%s: client %d has class and weight %v, want %v", what, c.GetId(), got, w)
			}
		}
	}
	setClient := func(r *running, req *heddlev1.SetClientRequest) {
		t.Helper()
		req.Target = target
		if _, err := r.SetClient(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	setTenant := func(r *running, req *heddlev1.SetTenantRequest) {
		t.Helper()
		req.Tenant = "t"
		if n, err := r.SetTenant(t.Context(), req); err != nil || n != 2 {
			t.Fatalf("%d clients, %v", n, err)
		}
	}
	// The tests run as root, or as heddled's own user: such a client may ask for any class.
	configured, plain := [2]uint32{abi.ClassHigh, 40}, [2]uint32{abi.ClassNormal, 40}
	expect(first, "at first", configured, plain)

	setTenant(first, &heddlev1.SetTenantRequest{Priority: new(uint32(abi.ClassLow)), Weight: new(uint32(7))})
	setClient(first, &heddlev1.SetClientRequest{Weight: new(uint32(300))})
	expect(first, "both set", [2]uint32{abi.ClassLow, 300}, [2]uint32{abi.ClassLow, 7})
	setClient(first, &heddlev1.SetClientRequest{Reset_: true})
	expect(first, "the client reset: it is its tenant's again", [2]uint32{abi.ClassLow, 7}, [2]uint32{abi.ClassLow, 7})
	setTenant(first, &heddlev1.SetTenantRequest{Reset_: true})
	expect(first, "the tenant reset", configured, plain)
	setTenant(first, &heddlev1.SetTenantRequest{Reset_: true})
	setClient(first, &heddlev1.SetClientRequest{Reset_: true})
	expect(first, "a reset of nothing", configured, plain)
	setTenant(first, &heddlev1.SetTenantRequest{Weight: new(uint32(9))})
	expect(first, "set anew: what was undone does not come back", [2]uint32{abi.ClassHigh, 9}, [2]uint32{abi.ClassNormal, 9})
	setTenant(first, &heddlev1.SetTenantRequest{Reset_: true})
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}

	second := start(t, options(l))
	attach(t, l, wire.Hello{PriorityHint: abi.ClassHigh, Token: welcome.Token})
	attach(t, l, wire.Hello{PriorityHint: abi.HintNone, Token: other.Token})
	expect(second, "after a restart", configured, plain)
}

func TestAResetStandsAlone(t *testing.T) {
	r := start(t, options(load(t, shortDir(t), "")))
	for _, req := range []*heddlev1.SetTenantRequest{
		{Tenant: "t", Reset_: true, Weight: new(uint32(3))},
		{Tenant: "t", Reset_: true, Priority: new(uint32(3))},
		{Tenant: "t"},
		{Reset_: true},
	} {
		if _, err := r.SetTenant(t.Context(), req); !errors.Is(err, errdefs.ErrInvalid) {
			t.Errorf("%v: %v", req, err)
		}
	}
}
