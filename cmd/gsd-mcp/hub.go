package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"gsd-mcp/internal/door"
	"gsd-mcp/internal/hub"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

func hubCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "hub", Short: "The way of the events to the hub: status, replay, and the hub's own check", Args: cobra.NoArgs}
	cmd.AddCommand(hubStatusCmd(), hubReplayCmd(), hubVerifyCmd())
	return cmd
}

func hubStatusCmd() *cobra.Command {
	return clientCmd("status", "Is the hub connected, what waits, what was lost; exit 1 when somebody should look", "  gsd-mcp hub status --json", cobra.NoArgs,
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, _ []string, asJSON bool) error {
			r, err := callTool(ctx, c, "get_station_health", nil)
			if err != nil {
				return err
			}
			var h struct {
				Hub json.RawMessage `json:"hub"`
			}
			var s hub.Status
			if err := json.Unmarshal(r.JSON, &h); err != nil {
				return fail(exitFailed, fmt.Errorf("health report: %w", err), "are the daemon and this program of one version?")
			}
			if len(h.Hub) == 0 {
				return fail(exitFailed, errors.New("this station has no hub"), "set [hub] broker in station.toml")
			}
			if err := json.Unmarshal(h.Hub, &s); err != nil {
				return fail(exitFailed, fmt.Errorf("hub block of the health report: %w", err), "are the daemon and this program of one version?")
			}
			if asJSON {
				fmt.Fprintln(cmd.OutOrStdout(), string(h.Hub))
			} else {
				printHubStatus(cmd.OutOrStdout(), s)
			}
			if s.Hub.State != "connected" || len(s.Degraded) > 0 {
				return fail(exitFailed, nil, "")
			}
			return nil
		})
}

func printHubStatus(out io.Writer, s hub.Status) {
	fmt.Fprintf(out, "hub %s since %s, session %d", s.Hub.State, stamp(s.Hub.Since), s.Hub.Session)
	if s.Hub.Reason != "" {
		fmt.Fprintf(out, ": %s", s.Hub.Reason)
	}
	fmt.Fprintln(out)
	if s.Hub.Detail != "" {
		fmt.Fprintln(out, "  "+unit.Printable(s.Hub.Detail, 300))
	}
	if s.Hub.NextStep != "" {
		fmt.Fprintln(out, "  -> "+s.Hub.NextStep)
	}
	if s.Hub.State == "backoff" {
		fmt.Fprintf(out, "  next try in %.0f s, after %d without success\n", s.Hub.NextAttemptS, s.Hub.Attempts)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "stream\twaiting\toldest\twritten\tacknowledged\tconfirmed\tkB\tepoch\t")
	for _, x := range []struct {
		name string
		s    hub.StreamStatus
	}{{"crit", s.Outbox.Crit}, {"info", s.Outbox.Info}} {
		fmt.Fprintf(w, "%s\t%d\t%.0f s\t%d\t%d\t%d\t%d\t%s\t\n", x.name, x.s.Pending, x.s.OldestS, x.s.Appended, x.s.Puback, x.s.Confirmed, x.s.Bytes/1000, x.s.Epoch)
	}
	w.Flush()
	fmt.Fprintf(out, "outbox %s: %d dropped, %d put aside, %d torn bytes, 99 %% of flushes within %.1f ms\n",
		s.Outbox.State, s.Outbox.DroppedTotal, s.Outbox.QuarantinedTotal, s.Outbox.TornBytesTotal, s.Outbox.FsyncP99Ms)
	if len(s.Degraded) > 0 {
		fmt.Fprintln(out, "degraded: "+strings.Join(s.Degraded, ", "))
	}
}

// hubReplay is what gsd/hub-replay takes; To 0 is the newest record.
type hubReplay struct {
	Stream string `json:"stream"`
	From   uint64 `json:"from"`
	To     uint64 `json:"to,omitempty"`
}

func hubReplayCmd() *cobra.Command {
	var stream, from, to string
	cmd := clientCmd("replay", "Send events again that the hub has lost, as far as the station still keeps them", "  gsd-mcp hub replay --stream crit --from 101 --to 103", cobra.NoArgs,
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, _ []string, asJSON bool) error {
			p := hubReplay{Stream: stream}
			var err error
			if p.From, err = sequence("--from", from); err != nil {
				return err
			}
			if to != "" {
				if p.To, err = sequence("--to", to); err != nil {
					return err
				}
			}
			raw, err := c.Private(ctx, "gsd/hub-replay", p)
			if err != nil {
				return clientError(err)
			}
			if asJSON {
				fmt.Fprintln(cmd.OutOrStdout(), string(raw))
				return nil
			}
			var done hubReplay
			if err := json.Unmarshal(raw, &done); err != nil {
				return fail(exitFailed, fmt.Errorf("replay: %w", err), "are the daemon and this program of one version?")
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %d to %d will be sent again, with the same ids; the hub drops what it has\n", done.Stream, done.From, done.To)
			return nil
		})
	cmd.Flags().StringVar(&stream, "stream", "crit", "crit or info")
	cmd.Flags().StringVar(&from, "from", "", "first sequence number")
	cmd.Flags().StringVar(&to, "to", "", "last sequence number (default the newest)")
	return cmd
}

// sequence reads a sequence number as events show it: digits, zeros in front or
// not.
func sequence(flag, s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return 0, fail(exitUsage, fmt.Errorf("%s %q is not a sequence number", flag, unit.Printable(s, 40)), "write: gsd-mcp hub replay --stream crit --from 101 --to 103")
	}
	return n, nil
}

// hubPrivates are the hub's private methods.
func (h *house) hubPrivates() []door.Private {
	return []door.Private{
		{Name: "gsd/hub-replay", Min: station.Operator, Person: true, Handle: func(_ context.Context, c station.Caller, params json.RawMessage) (any, error) {
			var p hubReplay
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, &door.ParamsError{Text: err.Error()}
			}
			if h.hub == nil {
				return nil, errors.New("this station has no hub: set [hub] broker in station.toml")
			}
			last := map[string]uint64{"crit": h.outbox.Crit.Last(), "info": h.outbox.Info.Last()}[p.Stream]
			if p.To == 0 || p.To > last {
				p.To = max(last, p.From) // Replay says what is wrong with a From beyond it
			}
			if err := h.hub.Replay(p.Stream, p.From, p.To); err != nil {
				return nil, &door.ParamsError{Text: err.Error()}
			}
			h.log.Info("hub replay", "stream", p.Stream, "from", p.From, "to", p.To, "user", c.User)
			return p, nil
		}},
	}
}

// verifyFlags are those of hub verify.
type verifyFlags struct {
	c                       hub.ConsumerConfig
	once, json, forget      bool
	screen                  bool // one screen that is drawn anew
	settle, patience, every time.Duration
}

func hubVerifyCmd() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify --broker URL",
		Short: "On the hub's side: follow every station and prove that its events are complete",
		Long: "A consumer of all stations of a broker: what is missing, what came twice, which number was used for two events, who went\n" +
			"silent, and on which new numbering a station goes on. It needs no daemon. The broker keeps a session for it under its client\n" +
			"id, so nothing that happens between two runs is missed; --file keeps the account over them. It reads only, unless --confirm.",
		Example: "  gsd-mcp hub verify --broker ssl://hub.example.org:8883 --user hub --password-file pw --ca-file ca.crt --file /var/lib/hub/account\n" +
			"  gsd-mcp hub verify --broker mqtt://127.0.0.1:1883 --once --json",
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		stdout, isFile := cmd.OutOrStdout().(*os.File)
		f.screen = isFile && onTerminal(stdout) && !f.json
		out := &counted{w: cmd.OutOrStdout()}
		cmd.SetOut(out)
		err := hubVerify(cmd, f)
		if err != nil && f.json && out.n == 0 {
			printFailure(out, err)
		}
		return err
	}
	fl := cmd.Flags()
	fl.StringVar(&f.c.Link.Broker, "broker", "", "mqtt://host:1883 or ssl://host:8883")
	fl.StringVar(&f.c.Link.Username, "user", "", "user name at the broker")
	fl.StringVar(&f.c.Link.PasswordFile, "password-file", "", "file with the password (or the environment variable GSD_HUB_PASSWORD)")
	fl.StringVar(&f.c.Link.CAFile, "ca-file", "", "certificates of the broker's authority, PEM (default the system's)")
	fl.StringVar(&f.c.Link.CertFile, "cert-file", "", "client certificate, with --key-file")
	fl.StringVar(&f.c.Link.KeyFile, "key-file", "", "its key")
	fl.StringVar(&f.c.ClientID, "client-id", hub.ConsumerID, "one for each consumer")
	fl.StringVar(&f.c.File, "file", "", "keep the account in this file over restarts")
	fl.BoolVar(&f.c.FromStart, "from-start", false, "expect each numbering from its first number, not from the first that comes")
	fl.BoolVar(&f.c.Confirm, "confirm", false, "tell the stations what is here and ask for what is missing; implies --from-start; one consumer of a broker only")
	fl.DurationVar(&f.c.ConfirmEvery, "confirm-every", time.Minute, "how often")
	fl.BoolVar(&f.once, "once", false, "take what waits, report, and end: exit 1 when an event is missing or nothing came")
	fl.DurationVar(&f.settle, "settle", 3*time.Second, "with --once: how long nothing must have come")
	fl.DurationVar(&f.patience, "timeout", 10*time.Minute, "with --once: how long it may take")
	fl.DurationVar(&f.every, "every", 2*time.Second, "how often the table is shown when it has changed")
	fl.BoolVar(&f.forget, "forget", false, "end the session that the broker keeps for this client id, and do nothing else")
	fl.BoolVar(&f.json, "json", false, "one JSON document with --once, else JSON lines")
	return cmd
}

// inFlags turns the words of station.toml into those of the command line.
var inFlags = strings.NewReplacer("[hub] broker", "--broker", "[hub] password_file", "--password-file", "[hub] ca_file", "--ca-file",
	"[hub] cert_file and key_file", "--cert-file and --key-file", "username and password_file", "--user and --password-file")

func hubVerify(cmd *cobra.Command, f verifyFlags) error {
	if f.c.Link.Broker == "" {
		return fail(exitUsage, errors.New("no broker"), "write: gsd-mcp hub verify --broker ssl://host:8883")
	}
	if f.every <= 0 || f.settle <= 0 || f.patience <= 0 || f.c.ConfirmEvery <= 0 {
		return fail(exitUsage, errors.New("a duration is zero or less"), "write them as 3s or 5m")
	}
	if f.c.Link.PasswordFile == "" {
		f.c.Link.Password = os.Getenv("GSD_HUB_PASSWORD")
	}
	k, err := hub.NewConsumer(f.c, hclog.NewNullLogger())
	if err != nil {
		return fail(exitUsage, errors.New(inFlags.Replace(err.Error())), "see: gsd-mcp hub verify --help")
	}
	defer k.Close()
	if f.forget {
		if err := k.Forget(cmd.Context()); err != nil {
			return fail(exitUnreachable, errors.New(inFlags.Replace(err.Error())), "look at the broker, the user and the certificates")
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "the broker keeps nothing for %s any more\n", f.c.ClientID)
		return nil
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	if f.once {
		err = verifyOnce(ctx, cmd, k, f)
	} else {
		verifyOn(ctx, cmd, k, f)
	}
	cancel()
	return errors.Join(err, <-done)
}

// verifyLook is how often a run looks at its consumer.
const verifyLook = 50 * time.Millisecond

func verifyOnce(ctx context.Context, cmd *cobra.Command, k *hub.Consumer, f verifyFlags) error {
	over := time.NewTimer(f.patience)
	defer over.Stop()
	look := time.NewTicker(verifyLook)
	defer look.Stop()
	for k.Quiet() < f.settle {
		select {
		case <-ctx.Done():
			return fail(exitFailed, errors.New("interrupted before everything that waits had come"), "")
		case <-over.C:
			r := k.Report()
			if r.Connected {
				return fail(exitFailed, fmt.Errorf("events still come after %v", f.patience), "give a longer --timeout, or a shorter --settle")
			}
			return fail(exitUnreachable, fmt.Errorf("no session with the broker within %v: %s: %s", f.patience, r.Reason, inFlags.Replace(r.Detail)), "look at the broker, the user and the certificates")
		case <-look.C:
			if r := k.Report(); hub.NeedsAPerson(r.Reason) {
				return fail(exitUnreachable, fmt.Errorf("no session with the broker: %s: %s", r.Reason, inFlags.Replace(r.Detail)), "look at the broker, the user and the certificates")
			}
		}
	}
	r := k.Report()
	if err := showFleet(cmd.OutOrStdout(), r, f.json); err != nil {
		return err
	}
	switch {
	case len(r.Stations) == 0: // mosquitto grants a subscription that its ACL denies
		return fail(exitFailed, errors.New("nothing came from any station, so nothing is proved"), "if there are stations, check the broker's ACL: this user must read gsd/#")
	case !r.Complete():
		return fail(exitFailed, nil, "")
	}
	return nil
}

// verifyOn shows the fleet until it is interrupted: on a terminal one screen,
// elsewhere a table or a line of JSON whenever something has changed.
func verifyOn(ctx context.Context, cmd *cobra.Command, k *hub.Consumer, f verifyFlags) {
	out := cmd.OutOrStdout()
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	last := ""
	for {
		r := k.Report()
		now := r
		now.Time = time.Time{}
		if b, err := json.Marshal(now); err == nil && string(b) != last {
			last = string(b)
			if f.screen {
				fmt.Fprint(out, "\x1b[H\x1b[2J")
			}
			if showFleet(out, r, f.json) != nil {
				return // nobody reads any more
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// showFleet prints one report: a line for each stream of each station, then
// what somebody should look at.
func showFleet(out io.Writer, r hub.FleetReport, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	link := "connected"
	if !r.Connected {
		link = "NOT CONNECTED (" + r.Reason + ")"
	}
	fmt.Fprintf(out, "%s  %s: %d stations, %d silent, %d events missing\n", stamp(r.Time), link, len(r.Stations), r.Silent, r.Missing)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STATION\tSTATE\tHEALTH\tSTREAM\tEPOCH\tFROM\tTO\tEVENTS\tMISSING\tLOST\tTWICE\tLAST")
	for _, s := range r.Stations {
		name, state, verdict := s.Station, s.State, s.Verdict
		if s.Simulated {
			name += " (sim)"
		}
		if verdict == "" {
			verdict = "-"
		}
		last := "-"
		if s.LastEvent != nil {
			last = stamp(*s.LastEvent)
		}
		if len(s.Streams) == 0 {
			fmt.Fprintf(w, "%s\t%s\t%s\t-\t-\t-\t-\t-\t-\t-\t-\t%s\n", name, state, verdict, last)
		}
		for _, x := range s.Streams {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", name, state, verdict, x.Stream, x.Epoch, x.From, x.To, x.Events, x.Missing, x.DeclaredLost, x.Duplicates, last)
			name, state, verdict, last = "", "", "", ""
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range r.Findings {
		fmt.Fprintln(out, "! "+f)
	}
	return nil
}
