package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/config"
	"gsd-mcp/internal/door"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/schedule"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/tools"
)

// A client command speaks to the daemon through its socket: the same tools, the
// same gate, the same audit as everyone.
type clientFlags struct {
	socket string
	json   bool
}

// clientCmd makes a command that needs the daemon.
func clientCmd(use, short, example string, args cobra.PositionalArgs, run func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error) *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: args}
	cmd.Flags().StringVar(&f.socket, "socket", "", "the station's socket (environment GSD_SOCKET)")
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON document on stdout")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		out := &counted{w: cmd.OutOrStdout()}
		cmd.SetOut(out)
		err := withClient(cmd, f, args, run)
		if err != nil && f.json && out.n == 0 {
			printFailure(out, err)
		}
		return err
	}
	return cmd
}

func withClient(cmd *cobra.Command, f clientFlags, args []string, run func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error) error {
	c, err := dial(cmd.Context(), f.socket)
	if err != nil {
		return err
	}
	defer c.Close()
	return run(cmd.Context(), c, cmd, args, f.json)
}

// counted counts what has gone to stdout: with --json there is one document,
// whatever happens.
type counted struct {
	w io.Writer
	n int
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += n
	return n, err
}

// printFailure prints the document of a command that has failed: a refusal in
// the form that tools have, or the error and the hint.
func printFailure(w io.Writer, err error) {
	var no refusedError
	if errors.As(err, &no) {
		if b, jerr := json.Marshal(no.Refusal); jerr == nil {
			fmt.Fprintln(w, string(b))
			return
		}
	}
	doc := struct {
		Refused bool   `json:"refused"`
		Error   string `json:"error"`
		Hint    string `json:"hint,omitempty"`
	}{Error: err.Error()}
	var e *exitError
	if errors.As(err, &e) {
		doc.Hint = e.hint
	}
	if b, jerr := json.Marshal(doc); jerr == nil {
		fmt.Fprintln(w, string(b))
	}
}

// A refusedError is a refusal as the error of a command.
type refusedError struct{ *safety.Refusal }

// Error is the reason; the way out is the hint.
func (r refusedError) Error() string { return fmt.Sprintf("refused (%s): %s", r.Code, r.Why) }

func dial(ctx context.Context, socket string) (*door.Client, error) {
	p := placeFlags{socket: socket}
	c, err := door.Dial(ctx, p.places().Socket, "gsd-mcp "+version)
	if err != nil {
		return nil, fail(exitUnreachable, err, "start the daemon: sudo systemctl start gsd-mcp, or: gsd-mcp serve --sim")
	}
	return c, nil
}

// callTool calls a tool and turns a refusal into the exit code of one.
func callTool(ctx context.Context, c *door.Client, tool string, args any) (*door.ToolResult, error) {
	r, err := c.CallTool(ctx, tool, args)
	if err != nil {
		return nil, clientError(err)
	}
	if r.IsError {
		return r, refusalError(r.Refusal, r.Text)
	}
	return r, nil
}

func clientError(err error) error {
	var ref *safety.Refusal
	var rpc *door.RPCError
	switch {
	case errors.As(err, &ref):
		return refusalError(ref, "")
	case errors.As(err, &rpc):
		if rpc.Code == -32602 {
			return fail(exitUsage, err, "see: gsd-mcp tools --json")
		}
		return fail(exitFailed, err, "")
	case errors.Is(err, door.ErrUnreachable):
		return fail(exitUnreachable, err, "look at: systemctl status gsd-mcp")
	}
	return fail(exitFailed, err, "")
}

func refusalError(ref *safety.Refusal, text string) error {
	if ref == nil {
		return fail(exitFailed, errors.New(text), "")
	}
	code := exitRefused
	if ref.Code == safety.NotPermitted || ref.Code == safety.ReadOnly {
		code = exitNotAllowed
	}
	hint := ref.Fix
	if ref.Nearest != nil {
		hint += fmt.Sprintf("; nearest allowed: azimuth %.1f°, elevation %.1f°", ref.Nearest.AzDeg, ref.Nearest.ElDeg)
	}
	return fail(code, refusedError{ref}, hint)
}

// show prints a result: its JSON, or its sentence.
func show(w io.Writer, r *door.ToolResult, asJSON bool) {
	if asJSON {
		fmt.Fprintln(w, string(r.JSON))
		return
	}
	fmt.Fprintln(w, r.Text)
}

// toolCommand is a command that calls one tool without arguments.
func toolCommand(use, short, tool string) *cobra.Command {
	return clientCmd(use, short, "", cobra.NoArgs, func(ctx context.Context, c *door.Client, cmd *cobra.Command, _ []string, asJSON bool) error {
		r, err := callTool(ctx, c, tool, nil)
		if err == nil {
			show(cmd.OutOrStdout(), r, asJSON)
		}
		return err
	})
}

func privateCommand(use, short, method string, params func(args []string) any, argRule cobra.PositionalArgs) *cobra.Command {
	return clientCmd(use, short, "", argRule, func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error {
		var p any = map[string]any{}
		if params != nil {
			p = params(args)
		}
		raw, err := c.Private(ctx, method, p)
		if err != nil {
			return clientError(err)
		}
		if asJSON {
			fmt.Fprintln(cmd.OutOrStdout(), string(raw))
			return nil
		}
		fmt.Fprintln(cmd.OutOrStdout(), sayJSON(raw))
		return nil
	})
}

// sayJSON prints a small object as "key value" pairs for people.
func sayJSON(raw json.RawMessage) string {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return string(raw)
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s: %v", k, m[k]))
	}
	return strings.Join(parts, ", ")
}

func healthCmd() *cobra.Command {
	return clientCmd("health", "What is wrong, worst first, and what to do", "  gsd-mcp health --json", cobra.NoArgs,
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, _ []string, asJSON bool) error {
			r, err := callTool(ctx, c, "get_station_health", nil)
			if err != nil {
				return err
			}
			var h tools.HealthReport
			if err := json.Unmarshal(r.JSON, &h); err != nil {
				return fail(exitFailed, fmt.Errorf("health report: %w", err), "are the daemon and this program of one version?")
			}
			out := cmd.OutOrStdout()
			if asJSON {
				fmt.Fprintln(out, string(r.JSON))
			} else {
				printHealth(out, h)
			}
			if code := h.Verdict.ExitCode(); code != 0 {
				return fail(code, nil, "")
			}
			return nil
		})
}

func printHealth(out io.Writer, h tools.HealthReport) {
	kind := ""
	if h.Simulated {
		kind = " (SIMULATED)"
	}
	fmt.Fprintf(out, "%s%s: %s, mode %s, antenna %s, %s\n", h.Station, kind, h.Verdict, h.Mode, h.Antenna.State, h.Time.UTC().Format("2006-01-02 15:04:05Z"))
	for _, f := range h.Findings {
		fmt.Fprintf(out, "%-8s %s (%s, since %.0f s)\n         %s\n         -> %s\n", strings.ToUpper(f.Severity), f.Title, f.Code, f.AgeS, f.Cause, f.NextStep)
	}
	if h.Next != nil {
		fmt.Fprintf(out, "next pass: satellite %d at %s (%s)\n", h.Next.NoradID, h.Next.AOS.UTC().Format("2006-01-02 15:04:05Z"), h.Next.State)
	}
}

// stopPatience is how long stop waits for a daemon before root stops the
// devices without it, real time.
const stopPatience = time.Second

func stopCmd() *cobra.Command {
	var f clientFlags
	var place placeFlags
	cmd := &cobra.Command{Use: "stop", Short: "Stop motion and transmission now; nothing starts again until resume",
		Long: "Stops motion and transmission now. Anyone with a role may. When the daemon does not answer within a second, root\n" +
			"ends it and stops the devices directly (see safe-stop).",
		Args: cobra.NoArgs}
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON document on stdout")
	place.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l := place.places()
		ctx, cancel := context.WithTimeout(cmd.Context(), stopPatience+haltPatience)
		defer cancel()
		r, err := stopThroughDaemon(ctx, l.Socket)
		if err != nil {
			if os.Geteuid() != 0 {
				return err
			}
			cfg, cerr := config.Load(l.Config)
			if cerr != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "the daemon does not answer: stopping the devices directly")
			if err := endDaemon(cmd.Context(), l.StateDir); err != nil {
				return fail(exitFailed, err, "use the switch at the station")
			}
			// Bytes first, then the mark that keeps the next start from working a pass.
			defer holdOnDisk(cmd.ErrOrStderr(), l.StateDir)
			return stopDevices(context.WithoutCancel(cmd.Context()), cfg, func(format string, args ...any) {
				fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
			})
		}
		show(cmd.OutOrStdout(), r, f.json)
		var a station.StopAnswer
		if json.Unmarshal(r.JSON, &a) != nil || !a.Sent {
			return fail(exitFailed, errors.New("the stop did not reach every device"), "use the switch at the station")
		}
		return nil
	}
	return cmd
}

// haltPatience is how long the daemon may take to confirm standstill.
const haltPatience = 4 * time.Second

func stopThroughDaemon(ctx context.Context, socket string) (*door.ToolResult, error) {
	c, err := dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return callTool(ctx, c, "stop_station", nil)
}

func antennaCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "antenna", Short: "Show, point, park or check the antenna", Args: cobra.NoArgs}
	direction := func(args []string) (map[string]any, error) {
		az, err1 := strconv.ParseFloat(args[0], 64)
		el, err2 := strconv.ParseFloat(args[1], 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fail(exitUsage, fmt.Errorf("azimuth and elevation must be numbers: %w", err), "write: gsd-mcp antenna point 180 45")
		}
		return map[string]any{"azimuth_deg": az, "elevation_deg": el}, nil
	}
	point := clientCmd("point AZIMUTH ELEVATION", "Turn to a direction and wait for arrival", "  gsd-mcp antenna point 200 45", cobra.ExactArgs(2),
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error {
			a, err := direction(args)
			if err != nil {
				return err
			}
			return moveAndWait(ctx, c, cmd, "point_antenna", a, "positioned", asJSON)
		})
	park := clientCmd("park", "Turn to the park position and wait for arrival", "", cobra.NoArgs,
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, _ []string, asJSON bool) error {
			return moveAndWait(ctx, c, cmd, "park_antenna", nil, "parked", asJSON)
		})
	check := clientCmd("check AZIMUTH ELEVATION", "Would the station point there? Moves nothing", "  gsd-mcp antenna check 180 20", cobra.ExactArgs(2),
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error {
			a, err := direction(args)
			if err != nil {
				return err
			}
			r, err := callTool(ctx, c, "check_pointing", a)
			if err != nil {
				return err
			}
			show(cmd.OutOrStdout(), r, asJSON)
			var v struct{ Allowed bool }
			if json.Unmarshal(r.JSON, &v) == nil && !v.Allowed {
				return fail(exitRefused, nil, "")
			}
			return nil
		})
	cmd.AddCommand(toolCommand("show", "Where the antenna points and what it does", "get_antenna"), point, park, check,
		privateCommand("confirm-winding", "Tell the station that a person has seen the cables: they hang as the position says", "gsd/confirm-winding", nil, cobra.NoArgs))
	return cmd
}

// lookEvery is how often a move is looked at, at most: a quarter of what one
// session may ask.
const lookEvery = 200 * time.Millisecond

func errInterrupted() error {
	return fail(exitFailed, errors.New("interrupted: the move is stopped when this session ends"), "")
}

// moveAndWait starts a move and follows it to its end: the session's lease
// keeps it going, and an interrupt stops it.
func moveAndWait(ctx context.Context, c *door.Client, cmd *cobra.Command, tool string, args any, want string, asJSON bool) error {
	r, err := callTool(ctx, c, tool, args)
	if err != nil {
		return err
	}
	if !asJSON {
		fmt.Fprintln(cmd.ErrOrStderr(), r.Text)
	}
	uctx, cancel := context.WithCancel(ctx)
	defer cancel()
	updates, err := c.Subscribe(uctx, "station://antenna")
	if err != nil {
		return clientError(err)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	pace := time.NewTicker(lookEvery)
	defer pace.Stop()
	for {
		r, err := callTool(ctx, c, "get_antenna", nil)
		if err != nil {
			return err
		}
		var a station.AntennaView
		if err := json.Unmarshal(r.JSON, &a); err != nil {
			return fail(exitFailed, fmt.Errorf("antenna: %w", err), "")
		}
		if !a.Moving || string(a.State) == want || a.Fault != "" || a.Held {
			if asJSON || string(a.State) == want {
				show(cmd.OutOrStdout(), r, asJSON)
			}
			if string(a.State) != want {
				return fail(exitFailed, fmt.Errorf("the antenna is %s, not %s: %s", a.State, want, r.Text), "read: gsd-mcp health")
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return errInterrupted()
		case _, ok := <-updates:
			if !ok {
				updates = nil
			}
		case <-tick.C:
		}
		select { // a fast station changes more often than anybody needs to look
		case <-ctx.Done():
			return errInterrupted()
		case <-pace.C:
		}
	}
}

func radioCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "radio", Short: "Show or tune the radio", Args: cobra.NoArgs}
	var mode, link string
	tune := clientCmd("tune FREQUENCY_HZ", "Set a frequency; nothing is keyed", "  gsd-mcp radio tune 145800000 --mode FM", cobra.ExactArgs(1),
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error {
			hz, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return fail(exitUsage, fmt.Errorf("frequency %q is not a number of hertz", args[0]), "write: gsd-mcp radio tune 145800000")
			}
			a := map[string]any{"frequency_hz": hz, "link": link}
			if mode != "" {
				a["mode"] = mode
			}
			r, err := callTool(ctx, c, "tune_radio", a)
			if err != nil {
				return err
			}
			show(cmd.OutOrStdout(), r, asJSON)
			return nil
		})
	tune.Flags().StringVar(&mode, "mode", "", "FM, USB, LSB, CW, AM or DV")
	tune.Flags().StringVar(&link, "link", "downlink", "downlink or uplink")
	cmd.AddCommand(toolCommand("show", "What the radio is set to", "get_radio"), tune)
	return cmd
}

func scheduleCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "schedule", Short: "List, show, add or cancel scheduled passes", Args: cobra.NoArgs}
	list := clientCmd("list", "What will be worked, and what became of the rest", "", cobra.NoArgs,
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, _ []string, asJSON bool) error {
			r, err := callTool(ctx, c, "list_scheduled_passes", map[string]any{"limit": 100})
			if err != nil {
				return err
			}
			if asJSON {
				show(cmd.OutOrStdout(), r, true)
				return nil
			}
			var doc struct {
				List  []schedule.Entry `json:"scheduled_passes"`
				Total int
			}
			if err := json.Unmarshal(r.JSON, &doc); err != nil {
				return fail(exitFailed, fmt.Errorf("schedule: %w", err), "")
			}
			if len(doc.List) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), r.Text)
			}
			if more := doc.Total - len(doc.List); more > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %d later ones are not shown: gsd-mcp call list_scheduled_passes from=TIME to=TIME\n", more)
			}
			for _, e := range doc.List {
				fmt.Fprintf(cmd.OutOrStdout(), "%-30s %s-%s %3.0f° p%d %-9s %s\n", e.ID, e.AOS.UTC().Format("01-02 15:04"), e.LOS.UTC().Format("15:04Z"), e.MaxElDeg, e.Priority, e.State, e.Satellite)
			}
			return nil
		})
	showOne := clientCmd("show ID", "One scheduled pass: plan, states and what was measured", "", cobra.ExactArgs(1),
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, _ bool) error {
			text, _, err := c.ReadResource(ctx, "station://scheduled-passes/"+args[0])
			if err != nil {
				return clientError(err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), text)
			return nil
		})
	var priority int
	add := clientCmd("add PASS_ID", "Book a pass", "  gsd-mcp schedule add 25544-20261130T0320Z", cobra.ExactArgs(1),
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error {
			r, err := callTool(ctx, c, "schedule_pass", map[string]any{"pass_id": args[0], "priority": priority})
			if err != nil {
				return err
			}
			show(cmd.OutOrStdout(), r, asJSON)
			return nil
		})
	add.Flags().IntVar(&priority, "priority", 5, "4 (most important) to 9")
	var reason string
	cancel := clientCmd("cancel ID", "Withdraw a booking", "", cobra.ExactArgs(1),
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error {
			r, err := callTool(ctx, c, "cancel_scheduled_pass", map[string]any{"scheduled_pass_id": args[0], "reason": reason})
			if err != nil {
				return err
			}
			show(cmd.OutOrStdout(), r, asJSON)
			return nil
		})
	cancel.Flags().StringVar(&reason, "reason", "", "for the record")
	cmd.AddCommand(list, showOne, add, cancel)
	return cmd
}

func callCmd() *cobra.Command {
	return clientCmd("call TOOL [key=value ...]", "Call any tool; values are JSON, or text when they are not", "  gsd-mcp call predict_passes norad_id=25544 hours=12", cobra.MinimumNArgs(1),
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error {
			m := map[string]any{}
			for _, kv := range args[1:] {
				k, v, ok := strings.Cut(kv, "=")
				if !ok || k == "" {
					return fail(exitUsage, fmt.Errorf("%q is not key=value", kv), "write: gsd-mcp call "+args[0]+" key=value")
				}
				var j any
				if json.Unmarshal([]byte(v), &j) != nil {
					j = v
				}
				m[k] = j
			}
			r, err := c.CallTool(ctx, args[0], m)
			if err != nil {
				return clientError(err)
			}
			if asJSON {
				fmt.Fprintln(cmd.OutOrStdout(), string(r.Raw))
			} else {
				fmt.Fprintln(cmd.OutOrStdout(), r.Text)
			}
			if r.IsError {
				e := refusalError(r.Refusal, r.Text).(*exitError)
				return fail(e.code, nil, "")
			}
			return nil
		})
}

func toolsCmd() *cobra.Command {
	return clientCmd("tools", "What this account may ask of the station", "", cobra.NoArgs,
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, _ []string, asJSON bool) error {
			list, err := c.ListTools(ctx)
			if err != nil {
				return clientError(err)
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(list)
			}
			for _, t := range list {
				fmt.Fprintf(cmd.OutOrStdout(), "%-24s %s\n", t.Name, t.Title)
			}
			return nil
		})
}

func resumeCmd() *cobra.Command {
	return privateCommand("resume", "Let the station move again after a stop", "gsd/resume", nil, cobra.NoArgs)
}

func modeCmd() *cobra.Command {
	var reason string
	cmd := privateCommand("mode standby|remote|local|maintenance", "Set the station's mode; motion stops first", "gsd/mode",
		func(args []string) any { return map[string]any{"mode": args[0], "reason": reason} }, cobra.ExactArgs(1))
	cmd.Flags().StringVar(&reason, "reason", "", "who works on what")
	return cmd
}

func resetCmd() *cobra.Command {
	return privateCommand("reset [FAULT]", "Clear a latched device fault; moves nothing", "gsd/reset",
		func(args []string) any { return map[string]any{"fault": strings.Join(args, "")} }, cobra.MaximumNArgs(1))
}

// onTerminal reports whether a file is a terminal.
func onTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
