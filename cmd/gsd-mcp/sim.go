package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

// truthPeriod is how often --truth writes a line, in station time.
const truthPeriod = 100 * time.Millisecond

func simCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Simulated devices on pseudo-terminals",
		Long: "Simulated devices on pseudo-terminals, for trying a station, or any other program that speaks to a\n" +
			"rotator or a radio, without hardware.",
	}
	cmd.AddCommand(simRotatorCmd(), simRadioCmd())
	return cmd
}

// simFlags are what all simulated devices share.
type simFlags struct {
	link, truth   string
	start, anchor string
	rate          float64
}

func (f *simFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.link, "link", "", "make `PATH` a link to the device's port")
	cmd.Flags().StringVar(&f.truth, "truth", "", "write the true state to `FILE`, one JSON object a line, ten a second of station time")
	cmd.Flags().StringVar(&f.start, "sim-start", "", "station `TIME` at the anchor, RFC 3339 (default: the newest epoch of the embedded elements)")
	cmd.Flags().Float64Var(&f.rate, "sim-rate", 1, "station seconds per second, 1 to 20")
	cmd.Flags().StringVar(&f.anchor, "sim-anchor", "", "real `TIME` at which station time is --sim-start (default: now)")
	if err := cmd.MarkFlagRequired("link"); err != nil {
		panic(err)
	}
}

// simClock makes the clock of a simulation. An empty start is the newest epoch
// of the embedded elements, an empty anchor is now; programs that are given the
// same three values agree on the time.
func simClock(start string, rate float64, anchor string) (*clock.Clock, error) {
	at, since := newestEpoch(), time.Now()
	var err error
	if start != "" {
		if at, err = time.Parse(time.RFC3339Nano, start); err != nil {
			return nil, fmt.Errorf("--sim-start %q is not a time: write 2026-11-30T03:14:00Z", unit.Printable(start, 40))
		}
	}
	if anchor != "" {
		if since, err = time.Parse(time.RFC3339Nano, anchor); err != nil {
			return nil, fmt.Errorf("--sim-anchor %q is not a time: write 2026-11-30T03:14:00Z", unit.Printable(anchor, 40))
		}
	}
	clk, err := clock.Simulated(at, since, rate)
	if err != nil {
		return nil, fmt.Errorf("--sim-rate: %w", err)
	}
	return clk, nil
}

// newestEpoch is when the embedded elements are as fresh as they get.
func newestEpoch() time.Time {
	var newest time.Time
	for _, s := range elements.Embedded() {
		if s.Epoch.After(newest) {
			newest = s.Epoch
		}
	}
	return newest
}

// serve runs a simulated device on a pseudo-terminal until ctx ends, and writes
// what is true of it where --truth says.
func (f *simFlags) serve(cmd *cobra.Command, clk *clock.Clock, dev sim.Device, unplug bool, truth func() any) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	written := make(chan error, 1)
	if f.truth == "" {
		written <- nil
	} else {
		file, err := os.Create(f.truth)
		if err != nil {
			return fail(exitFailed, fmt.Errorf("truth file: %w", err), "choose a file in a directory that can be written")
		}
		defer file.Close()
		go func() {
			err := writeTruth(ctx, clk, file, truth)
			if err != nil {
				cancel()
			}
			written <- err
		}()
	}
	err := sim.Serve(ctx, dev, f.link, unplug, func() { fmt.Fprintln(cmd.OutOrStdout(), "ready", f.link) })
	cancel()
	if truthErr := <-written; err == nil && truthErr != nil {
		err = fmt.Errorf("truth file: %w", truthErr)
	}
	if err != nil {
		return fail(exitFailed, err, "")
	}
	return nil
}

// writeTruth writes a line every truthPeriod until ctx ends.
func writeTruth(ctx context.Context, clk *clock.Clock, file *os.File, truth func() any) error {
	for next := clk.Now(); ; {
		line, err := json.Marshal(truth())
		if err != nil {
			return err
		}
		if _, err := file.Write(append(line, '\n')); err != nil {
			return err
		}
		now := clk.Now()
		for !next.After(now) { // late lines are dropped, not caught up
			next = next.Add(truthPeriod)
		}
		if clk.Sleep(ctx, next.Sub(now)) != nil {
			return nil
		}
	}
}

// stamp is a station time as JSON has it everywhere: UTC to the millisecond.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
