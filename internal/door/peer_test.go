package door

import (
	"os/user"
	"slices"
	"testing"
)

// An account that is named is who it would be had it connected.
func TestPeerNamedIsTheAccount(t *testing.T) {
	root, err := user.LookupId("0")
	if err != nil {
		t.Skipf("this computer has no account of uid 0: %v", err)
	}
	for _, name := range []string{"uid:0", "user:" + root.Username} {
		p, err := PeerNamed(name)
		if err != nil || p.UID != 0 || p.User != root.Username || !slices.Contains(p.GIDs, p.GID) {
			t.Errorf("PeerNamed(%q) = %+v, %v", name, p, err)
		}
	}
	if p, err := PeerNamed("uid:4000000000"); err != nil || p.UID != 4000000000 || p.User != "" {
		t.Errorf("a uid without an account: %+v, %v", p, err)
	}
	for _, name := range []string{"", "group:root", "user:nobody-has-this-name", "user:", "root", "uid:-1"} {
		if p, err := PeerNamed(name); err == nil {
			t.Errorf("PeerNamed(%q) = %+v", name, p)
		}
	}
}
