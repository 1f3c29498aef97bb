package daemon

import (
	"context"
	"os/user"
	"strconv"
	"strings"
	"sync"

	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/store"
)

// admission answers from the rules of the configuration and from what
// administrators have set.
type admission struct {
	matcher *config.Matcher
	ownUID  int
	// realtime says whether a process has a reservation; nil = none has.
	realtime func(pid int) bool
	names    names

	mu      sync.Mutex
	tenants map[string]store.Override
	clients map[uint64]store.Override
}

var _ clients.Admission = (*admission)(nil)

func newAdmission(cfg *config.Config, ownUID int, s *store.Store) (*admission, error) {
	a := &admission{matcher: config.NewMatcher(cfg), ownUID: ownUID, names: names{users: map[int]string{}, groups: map[int]string{}}}
	var err error
	if a.tenants, err = s.Tenants(); err != nil {
		return nil, err
	}
	if a.clients, err = s.Clients(); err != nil {
		return nil, err
	}
	return a, nil
}

// Admit implements clients.Admission.
func (a *admission) Admit(_ context.Context, who *clients.Applicant) (clients.Grant, error) {
	id := config.Identity{
		UID: who.UID, User: a.names.user(who.UID), Cgroup: who.Cgroup, Executable: who.Executable, Genuine: who.Genuine,
		GIDs: append([]int{who.GID}, who.Groups...),
	}
	for _, gid := range id.GIDs {
		if name := a.names.group(gid); name != "" {
			id.Groups = append(id.Groups, name)
		}
	}
	granted := a.matcher.Match(&id)
	if granted.Refuse {
		return clients.Grant{}, errdefs.Errorf(errdefs.PermissionDenied, "refused by the rule at %s", granted.Origin)
	}
	g := clients.Grant{
		Tenant:      granted.Tenant,
		User:        id.User,
		MaxPriority: granted.MaxPriority,
		Priority:    granted.Priority,
		MaxWeight:   granted.Weight,
		Weight:      granted.Weight,
		Strict:      granted.Isolation == config.IsolationStrict,
	}
	if o := granted.SLO; o != nil {
		g.Objective = objectiveOf(*o)
	}
	if g.Tenant == "" {
		g.Tenant = defaultTenant(who, id.User)
	}
	if who.UID == 0 || who.UID == a.ownUID {
		// They could change everything through the API anyway.
		g.MaxPriority, g.MaxWeight = 0, config.WeightMax
	}
	realtime := a.realtime != nil && a.realtime(who.PID)
	a.mu.Lock()
	defer a.mu.Unlock()
	g.Apply(override(a.tenants[g.Tenant]))
	g.Override = override(a.clients[who.ID])
	if realtime {
		g.Override.Priority = new(int) // the most urgent class
	}
	return g, nil
}

// usersOwn is where systemd gives each user a part of the cgroup tree to manage.
const usersOwn = "/user.slice/"

// defaultTenant names the tenant of a client that no rule names one for: its
// container, else its user. In their own part of the cgroup tree users give the
// names, and could give a group the name of anybody's container: what runs
// there is theirs.
func defaultTenant(who *clients.Applicant, user string) string {
	switch {
	case who.Container != "" && !strings.HasPrefix(who.Cgroup, usersOwn):
		return "container-" + who.Container
	case user != "":
		return user
	default:
		return "uid-" + strconv.Itoa(who.UID)
	}
}

func override(o store.Override) clients.Override {
	var out clients.Override
	if o.Priority != nil {
		p := int(*o.Priority)
		out.Priority = &p
	}
	if o.Weight != nil {
		w := int(*o.Weight)
		out.Weight = &w
	}
	if o.SLO != nil {
		if objective, err := config.ParseObjective(*o.SLO); err == nil { // else another version wrote it
			its := objectiveOf(objective)
			out.Objective = &its
		}
	}
	return out
}

func objectiveOf(o config.Objective) clients.Objective {
	return clients.Objective{Set: true, Slowdown: o.Slowdown, Latency: o.Latency}
}

// merge lays what is set in more over what was set before. More that sets
// nothing undoes it all.
func merge(before, more store.Override) store.Override {
	if more.IsZero() {
		return more
	}
	if more.Priority != nil {
		before.Priority = more.Priority
	}
	if more.Weight != nil {
		before.Weight = more.Weight
	}
	if more.SLO != nil {
		before.SLO = more.SLO
	}
	return before
}

// setTenant keeps an override on disk, and then for the clients to come; a zero
// one undoes what was set before.
func (a *admission) setTenant(s *store.Store, name string, o store.Override) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := merge(a.tenants[name], o)
	if err := s.SetTenant(name, all); err != nil {
		return err
	}
	keep(a.tenants, name, all)
	return nil
}

// setClient is setTenant for one client, which may come back with its token.
func (a *admission) setClient(s *store.Store, id uint64, o store.Override) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := merge(a.clients[id], o)
	if err := s.SetClient(id, all); err != nil {
		return err
	}
	keep(a.clients, id, all)
	return nil
}

// keep is for a map what the store does with its file.
func keep[K comparable](all map[K]store.Override, key K, o store.Override) {
	if o.IsZero() {
		delete(all, key)
		return
	}
	all[key] = o
}

// forget removes the overrides of clients that living does not know, and
// returns their ids.
func (a *admission) forget(living map[uint64]bool) []uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var gone []uint64
	for id := range a.clients {
		if !living[id] {
			gone = append(gone, id)
			delete(a.clients, id)
		}
	}
	return gone
}

// names remembers user and group names: looking one up can mean a question
// over the network, and an attach must not wait for many of them.
type names struct {
	mu     sync.Mutex
	users  map[int]string
	groups map[int]string
}

// namesMax bounds the memory; a node has fewer users.
const namesMax = 4096

func (n *names) user(uid int) string {
	return n.get(n.users, uid, func(id string) string {
		u, err := user.LookupId(id)
		if err != nil {
			return ""
		}
		return u.Username
	})
}

func (n *names) group(gid int) string {
	return n.get(n.groups, gid, func(id string) string {
		g, err := user.LookupGroupId(id)
		if err != nil {
			return ""
		}
		return g.Name
	})
}

func (n *names) get(known map[int]string, id int, look func(string) string) string {
	n.mu.Lock()
	name, ok := known[id]
	n.mu.Unlock()
	if ok {
		return name
	}
	name = look(strconv.Itoa(id))
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(known) >= namesMax {
		clear(known)
	}
	known[id] = name
	return name
}
