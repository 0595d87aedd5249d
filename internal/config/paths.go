package config

import "cmp"

// Where things are unless a flag or the environment says otherwise.
const (
	DefaultConfig   = "/etc/gsd-mcp/station.toml"
	DefaultStateDir = "/var/lib/gsd-mcp"
	DefaultSocket   = "/run/gsd-mcp/gsd-mcp.sock"
)

// Locations is where a station keeps its things.
type Locations struct {
	Config   string // station.toml
	StateDir string
	Socket   string

	ConfigSet   bool // named by a flag or GSD_CONFIG: it must exist
	StateDirSet bool // named by a flag or GSD_STATE_DIR
	SocketSet   bool // named by a flag or GSD_SOCKET
}

// Paths finds a station's files: a flag wins over the environment (GSD_CONFIG,
// GSD_STATE_DIR, GSD_SOCKET), which wins over the default. flags are the values
// of --config, --state-dir and --socket in this order, "" where not given;
// missing ones count as not given.
func Paths(getenv func(string) string, flags ...string) Locations {
	flag := func(i int) string {
		if i < len(flags) {
			return flags[i]
		}
		return ""
	}
	var l Locations
	pick := func(i int, env, fallback string) (string, bool) {
		set := cmp.Or(flag(i), getenv(env))
		return cmp.Or(set, fallback), set != ""
	}
	l.Config, l.ConfigSet = pick(0, "GSD_CONFIG", DefaultConfig)
	l.StateDir, l.StateDirSet = pick(1, "GSD_STATE_DIR", DefaultStateDir)
	l.Socket, l.SocketSet = pick(2, "GSD_SOCKET", DefaultSocket)
	return l
}
