package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/config"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/serialport"
	"gsd-mcp/internal/state"
	"gsd-mcp/internal/station"
)

// Bounds of a direct stop, real time: it runs after every end of the daemon.
const (
	directWait = 3 * time.Second // for a daemon to end and for its locks
	directHalt = 3 * time.Second // for one device
)

func safeStopCmd() *cobra.Command {
	var place placeFlags
	var direct bool
	cmd := &cobra.Command{
		Use:   "safe-stop",
		Short: "Stop the devices without the daemon; systemd runs it after every end of the daemon",
		Long: "With --direct it ends a daemon that still holds the state directory, opens the configured ports and sends stop to\n" +
			"each device. It starts nothing and needs no running daemon. It is not an emergency stop: that is a switch.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l := place.places()
			if !direct {
				return fail(exitUsage, errors.New("safe-stop without --direct"), "use: gsd-mcp stop, or: gsd-mcp safe-stop --direct")
			}
			cfg, err := config.Load(l.Config)
			if err != nil {
				return fail(exitUsage, err, "without the configuration the ports are not known: use the switch at the station")
			}
			if err := endDaemon(cmd.Context(), l.StateDir); err != nil {
				return fail(exitFailed, err, "use the switch at the station")
			}
			// A context of its own: this must go on when systemd is impatient.
			return stopDevices(context.WithoutCancel(cmd.Context()), cfg, func(format string, args ...any) {
				fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
			})
		},
	}
	place.register(cmd)
	cmd.Flags().BoolVar(&direct, "direct", false, "open the ports and send stop")
	return cmd
}

// endDaemon makes sure that no daemon owns the devices: asked first, then
// forced. Without a state directory there is none.
func endDaemon(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	signal := syscall.SIGTERM
	asked := 0
	for deadline := time.Now().Add(directWait); ; {
		d, err := state.Open(dir)
		if err == nil {
			return d.Close()
		}
		var locked *state.LockedError
		if !errors.As(err, &locked) {
			return nil // the directory is broken: the devices are to be stopped all the same
		}
		if locked.PID > 1 && asked != int(signal) {
			if kerr := syscall.Kill(locked.PID, signal); kerr != nil && !errors.Is(kerr, syscall.ESRCH) {
				return fmt.Errorf("end the daemon (process %d): %w", locked.PID, kerr)
			}
			asked = int(signal)
		}
		if time.Now().After(deadline) {
			if signal == syscall.SIGKILL {
				return err
			}
			signal, deadline = syscall.SIGKILL, time.Now().Add(directWait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stopDevices sends stop to every configured device that is real or a
// pseudo-terminal. One that fails does not keep the others from being stopped.
func stopDevices(ctx context.Context, cfg *config.Config, say func(string, ...any)) error {
	var failed []error
	one := func(name string, port serialport.Config, halt func(context.Context, *serialport.Port) error) {
		if port.Path == config.SimPort {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, directHalt)
		defer cancel()
		p, err := serialport.Open(ctx, port)
		if err == nil {
			err = halt(ctx, p)
			p.Close()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s at %s: %w", name, port.Path, err))
			return
		}
		say("%s at %s: stop sent", name, port.Path)
	}
	if cfg.HasRotator() {
		d, err := rotator.Lookup(cfg.Rotator.Driver)
		if err != nil {
			failed = append(failed, err)
		} else {
			one("rotator", serialport.Config{Path: cfg.Rotator.Port, Baud: orDefault(cfg.Rotator.Baud, d.Baud), Stop2: d.Stop2},
				func(ctx context.Context, p *serialport.Port) error { return d.New(p).Halt(ctx) })
		}
	}
	for _, r := range cfg.Radio {
		m, err := radio.Lookup(r.Driver)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		one("radio", serialport.Config{Path: r.Port, Baud: orDefault(r.Baud, m.Baud), Stop2: m.Stop2, HangUp: r.KeyingLine != "none"},
			func(ctx context.Context, p *serialport.Port) error { return m.New(p).Halt(ctx) })
	}
	if len(failed) > 0 {
		return fail(exitFailed, errors.Join(failed...), "use the switch at the station")
	}
	return nil
}

func orDefault(n, fallback int) int {
	if n == 0 {
		return fallback
	}
	return n
}

// holdOnDisk makes the next start hold until a person resumes, as a stop
// through the daemon would have.
func holdOnDisk(say io.Writer, dir string) {
	d, err := state.Open(dir)
	if err == nil {
		err = station.HoldOnDisk(d, "directly by root, without the daemon")
		d.Close()
	}
	if err != nil {
		fmt.Fprintf(say, "the hold could not be written, so the next start of the daemon may move again: %v\n", err)
	}
}
