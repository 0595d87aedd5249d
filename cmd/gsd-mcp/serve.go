package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"reflect"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/config"
	"gsd-mcp/internal/door"
	"gsd-mcp/internal/state"
)

// placeFlags are where the station's files are.
type placeFlags struct{ config, stateDir, socket string }

func (p *placeFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.config, "config", "", "configuration `FILE` (environment GSD_CONFIG)")
	cmd.Flags().StringVar(&p.stateDir, "state-dir", "", "state `DIR` (environment GSD_STATE_DIR)")
	cmd.Flags().StringVar(&p.socket, "socket", "", "the station's socket (environment GSD_SOCKET)")
}

func (p *placeFlags) places() config.Locations {
	return config.Paths(os.Getenv, p.config, p.stateDir, p.socket)
}

// timeFlags make up the time of a simulated station.
type timeFlags struct {
	start, anchor string
	rate          float64
}

func (f *timeFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.start, "sim-start", "", "simulated station `TIME` at the anchor, RFC 3339")
	cmd.Flags().Float64Var(&f.rate, "sim-rate", 0, "simulated seconds per second, 1 to 20")
	cmd.Flags().StringVar(&f.anchor, "sim-anchor", "", "real `TIME` at which the simulated time is --sim-start (default: now)")
}

// apply puts the flags over [simulation].
func (f *timeFlags) apply(c *config.Simulation) error {
	parse := func(flag, s string, to *time.Time) error {
		if s == "" {
			return nil
		}
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return fail(exitUsage, fmt.Errorf("--%s %q is not a time", flag, s), "write it as 2026-11-30T03:14:00Z")
		}
		*to = t
		return nil
	}
	if err := parse("sim-start", f.start, &c.Start); err != nil {
		return err
	}
	if err := parse("sim-anchor", f.anchor, &c.Anchor); err != nil {
		return err
	}
	if f.rate != 0 {
		if !(1 <= f.rate && f.rate <= clock.MaxRate) {
			return fail(exitUsage, fmt.Errorf("--sim-rate %v is outside 1..%d", f.rate, clock.MaxRate), "")
		}
		c.Rate = f.rate
	}
	return nil
}

func serveCmd() *cobra.Command {
	var (
		place     placeFlags
		made      timeFlags
		simulated bool
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "The station daemon: devices, schedule, tracking, hub",
		Long: "The station daemon. It alone owns the hardware and listens on a Unix socket that speaks MCP; every other command\n" +
			"is a client of that socket. It ends on SIGTERM: sessions are told, the antenna is halted, state is written.",
		Example: "  gsd-mcp serve --config /etc/gsd-mcp/station.toml\n  gsd-mcp serve --sim --state-dir /tmp/gsd --socket /tmp/gsd.sock",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l := place.places()
			cfg := config.Simulated()
			if !simulated {
				c, err := config.Load(l.Config)
				if errors.Is(err, config.ErrNoConfig) {
					return fail(exitUsage, err, "write one: gsd-mcp config example > "+l.Config+", or try: gsd-mcp serve --sim")
				}
				if err != nil {
					return fail(exitUsage, err, "look at: gsd-mcp config check "+l.Config)
				}
				cfg = *c
			}
			if err := made.apply(&cfg.Simulation); err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, l, simulated)
		},
	}
	place.register(cmd)
	made.register(cmd)
	cmd.Flags().BoolVar(&simulated, "sim", false, "a simulated station, without a configuration")
	return cmd
}

// serve runs the daemon until ctx ends.
func serve(ctx context.Context, cfg config.Config, l config.Locations, simulated bool) error {
	ring := newLogRing(os.Stderr)
	defer ring.Close()
	log := newLogger(ring, cfg.Log.Level, cfg.Log.Format)
	h, err := openHouse(houseOptions{Config: cfg, StateDir: l.StateDir, Log: log})
	if errors.Is(err, state.ErrLocked) {
		return fail(exitFailed, err, "only one daemon may own the hardware; stop the other one first")
	}
	if err != nil {
		return fail(exitFailed, err, "")
	}
	defer h.close()
	for _, n := range h.notes {
		log.Warn("start", "note", n)
	}
	d, err := h.newDoor()
	if err != nil {
		return fail(exitUsage, err, "correct [access] in "+l.Config)
	}
	ln, err := door.Activated()
	if err == nil && ln == nil {
		ln, err = door.Listen(l.Socket)
	}
	if err != nil {
		return fail(exitFailed, err, "choose another --socket, or end what listens there")
	}
	doorDone := make(chan error, 1)
	go func() { doorDone <- d.Serve(ctx, ln) }()
	log.Info("serving", "station", cfg.Station.ID, "socket", ln.Addr().String(), "simulated", h.station.Simulated(), "version", version)
	notify(log.Warn, "READY=1")
	go watchdog(ctx, h)
	go reloads(ctx, h, d, l.Config, simulated)
	h.Run(ctx)
	notify(log.Warn, "STOPPING=1")
	if err := <-doorDone; err != nil {
		return fail(exitFailed, err, "")
	}
	return nil
}

// reloads reads the configuration again at every SIGHUP. Who may do what takes
// effect at once; everything else is said to need a restart, since devices and
// limits must not change under a moving antenna.
func reloads(ctx context.Context, h *house, d *door.Door, path string, simulated bool) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		}
		if simulated {
			h.log.Warn("SIGHUP: a simulated station has no configuration to read again")
			continue
		}
		c, err := config.Load(path)
		if err != nil {
			h.log.Error("SIGHUP: the configuration was not read again, the old one stays in force", "error", err)
			continue
		}
		p, err := newPolicy(c.Access)
		if err != nil {
			h.log.Error("SIGHUP: [access] was not changed", "error", err)
			continue
		}
		d.SetPolicy(p)
		h.rights.Store(p)
		if h.hub != nil {
			h.hub.Retry()
		}
		rest := *c
		rest.Access = h.cfg.Access
		h.log.Info("SIGHUP: [access] is in force", "other_changes_need_a_restart", !reflect.DeepEqual(rest, h.cfg))
	}
}

// notify tells systemd what we are doing (sd_notify(3)); without it nothing
// happens.
func notify(warn func(string, ...any), what string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	if name[0] == '@' {
		name = "\x00" + name[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(what))
		c.Close()
	}
	if err != nil {
		warn("systemd could not be told", "what", what, "error", err)
	}
}

// watchdog feeds systemd's watchdog as long as the owners of the devices turn
// their loops: a daemon that hangs is ended, and its devices stopped.
func watchdog(ctx context.Context, h *house) {
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || us <= 0 {
		return
	}
	every := time.Duration(us) * time.Microsecond / 3
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if err := h.station.Alive(); err != nil {
			h.log.Error("the watchdog is not fed", "why", err)
		} else {
			notify(h.log.Warn, "WATCHDOG=1")
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
