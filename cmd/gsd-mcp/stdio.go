package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"gsd-mcp/internal/config"
	"gsd-mcp/internal/door"
	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/tools"
)

// unitFile is there where gsd-mcp was installed as a service: then a missing
// daemon is a fault and never a reason to pretend.
const unitFile = "/usr/lib/systemd/system/gsd-mcp.service"

type stdioFlags struct {
	place     placeFlags
	made      timeFlags
	simulated bool
	role      string
	readOnly  bool
}

func (f *stdioFlags) register(cmd *cobra.Command) {
	f.place.register(cmd)
	f.made.register(cmd)
	cmd.Flags().BoolVar(&f.simulated, "sim", false, "a simulated station in this process")
	cmd.Flags().StringVar(&f.role, "role", "", "give up rights: observer, operator or supervisor at most")
	cmd.Flags().BoolVar(&f.readOnly, "read-only", false, "give up every right to change something")
}

func stdioCmd() *cobra.Command {
	var f stdioFlags
	cmd := &cobra.Command{
		Use:   "stdio",
		Short: "What an MCP host starts: carries stdin and stdout to the station and back",
		Long: "The bridge that an MCP host starts, locally or through ssh. It owns no hardware: it carries lines to the daemon's\n" +
			"socket and back. Without a daemon, a configuration and an installed service it runs a simulated station instead.",
		Example: "  gsd-mcp stdio --read-only\n  ssh -T station gsd-mcp",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return stdio(cmd.Context(), f, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f.register(cmd)
	return cmd
}

func stdio(ctx context.Context, f stdioFlags, in io.Reader, out io.Writer) error {
	l := f.place.places()
	if _, err := station.ParseRole(f.role); f.role != "" && err != nil {
		return fail(exitUsage, fmt.Errorf("--role: %w", err), "")
	}
	if f.simulated {
		return simulatedStdio(ctx, f, l, in, out)
	}
	err := door.Bridge(ctx, in, out, door.BridgeOptions{Socket: l.Socket, Build: version, Role: f.role, ReadOnly: f.readOnly,
		Note: func(text string) { fmt.Fprintln(os.Stderr, "gsd-mcp:", text) }})
	if errors.Is(err, door.ErrUnreachable) && mayPretend(l) {
		fmt.Fprintln(os.Stderr, "gsd-mcp: no daemon, no configuration: this is a SIMULATED station")
		return simulatedStdio(ctx, f, l, in, out)
	}
	switch {
	case errors.Is(err, door.ErrUnreachable):
		return fail(exitUnreachable, err, "start the daemon: sudo systemctl start gsd-mcp, or try a simulated station: gsd-mcp --sim")
	case err != nil:
		return fail(exitFailed, err, "")
	}
	return nil
}

// mayPretend reports whether nothing at all points to a real station here.
func mayPretend(l config.Locations) bool {
	if l.ConfigSet || l.SocketSet || os.Getenv("SSH_CONNECTION") != "" {
		return false
	}
	for _, name := range []string{l.Config, unitFile} {
		if _, err := os.Stat(name); err == nil {
			return false
		}
	}
	return true
}

// simulatedStdio runs a simulated station in this process, with one session.
func simulatedStdio(ctx context.Context, f stdioFlags, l config.Locations, in io.Reader, out io.Writer) error {
	cfg := config.Simulated()
	if err := f.made.apply(&cfg.Simulation); err != nil {
		return err
	}
	ring := newLogRing(os.Stderr)
	defer ring.Close()
	h, cleanup, err := simulatedHouse(cfg, l, newLogger(ring, "warn", "text"))
	if err != nil {
		return err
	}
	defer cleanup()
	hctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); h.Run(hctx) }()
	w := simulatedCaller(f)
	err = h.server.Serve(ctx, in, out, mcp.SessionOptions{Caller: w, ID: "stdio", Denied: func(c any, tool string) *mcp.Result { return tools.Denied(c, tool) }})
	stop()
	<-done
	if err != nil {
		return fail(exitFailed, err, "")
	}
	return nil
}

// simulatedHouse opens a simulated station: in GSD_STATE_DIR when that is set,
// else in a private directory that cleanup removes.
func simulatedHouse(cfg config.Config, l config.Locations, log hclog.Logger) (h *house, cleanup func(), err error) {
	dir, remove := l.StateDir, func() {}
	if !l.StateDirSet {
		if dir, err = os.MkdirTemp("", "gsd-mcp-"); err != nil {
			return nil, nil, fail(exitFailed, err, "set TMPDIR to a directory that can be written")
		}
		remove = func() { os.RemoveAll(dir) }
	}
	if h, err = openHouse(houseOptions{Config: cfg, StateDir: dir, Log: log}); err != nil {
		remove()
		return nil, nil, fail(exitFailed, err, "")
	}
	return h, func() { h.close(); remove() }, nil
}

// simulatedCaller is who uses a simulated station in this process: an operator,
// or less if the flags say so.
func simulatedCaller(f stdioFlags) tools.Who {
	w := tools.Who{Caller: station.Caller{Role: station.Operator, UID: os.Getuid()}, MayStop: true, ReadOnly: f.readOnly}
	if r, err := station.ParseRole(f.role); err == nil && f.role != "" {
		w.Role = min(w.Role, r)
	}
	if u, err := user.Current(); err == nil {
		w.User = u.Username
	}
	return w
}
