// Package peers finds the programs that tests measure ourselves against. A
// machine without one skips the test and says which package has it; with
// GSD_REQUIRE_PEERS=1 a missing peer is a failure, so CI cannot go quiet.
package peers

import (
	"os"
	"os/exec"
	"testing"
)

// Need returns the path of a program, or ends the test: skipped, or failed
// when GSD_REQUIRE_PEERS is 1. pkg is the Debian or npm package that has it.
func Need(t testing.TB, program, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	Missing(t, program, pkg)
	return ""
}

// Missing ends the test because a peer is not there; see Need.
func Missing(t testing.TB, program, pkg string) {
	t.Helper()
	if os.Getenv("GSD_REQUIRE_PEERS") == "1" {
		t.Fatalf("peer program %s is missing (package %s) and GSD_REQUIRE_PEERS=1", program, pkg)
	}
	t.Skipf("needs %s (package %s)", program, pkg)
}
