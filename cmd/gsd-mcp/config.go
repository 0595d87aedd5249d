package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gsd-mcp/hw"
	"gsd-mcp/internal/config"
)

// configCmd is `gsd-mcp config`: it works without a daemon.
func configCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, show or write an example of station.toml",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(configCheckCmd(), configShowCmd(), configExampleCmd(), configPINCmd())
	return cmd
}

// configFile adds the flags that name the file, and returns where it is.
func configFile(cmd *cobra.Command) func(args []string) string {
	file := cmd.Flags().String("config", "", "configuration file (environment GSD_CONFIG, default "+config.DefaultConfig+")")
	return func(args []string) string {
		if len(args) > 0 {
			return args[0]
		}
		return config.Paths(os.Getenv, *file).Config
	}
}

func configCheckCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Say everything that is wrong with station.toml, with the line and the fix",
		Args:  cobra.MaximumNArgs(1),
	}
	path := configFile(cmd)
	asJSON := cmd.Flags().Bool("json", false, "one JSON document on stdout")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return checkConfig(cmd.OutOrStdout(), path(args), *asJSON)
	}
	return cmd
}

// A configReport is what `config check --json` prints.
type configReport struct {
	File     string           `json:"file"`
	OK       bool             `json:"ok"`
	Problems []config.Problem `json:"problems"`
	Warnings []config.Warning `json:"warnings"`
	Confirm  []string         `json:"confirm_on_site"`
}

func checkConfig(out io.Writer, path string, asJSON bool) error {
	data, err := config.Read(path)
	if err != nil {
		return unreadable(err)
	}
	c, warnings, err := config.Parse(path, data)
	var bad *config.Error
	if err != nil && !errors.As(err, &bad) {
		return fail(exitFailed, err, "")
	}
	r := configReport{File: path, OK: err == nil, Problems: []config.Problem{}, Warnings: append([]config.Warning{}, warnings...), Confirm: []string{}}
	if bad != nil {
		r.Problems = bad.Problems
	} else {
		r.Confirm = toConfirm(c)
	}
	if asJSON {
		if err := printJSON(out, r); err != nil {
			return err
		}
	} else {
		for _, p := range r.Problems {
			fmt.Fprintln(out, p)
		}
		for _, w := range r.Warnings {
			fmt.Fprintln(out, "warning:", w)
		}
		if r.OK {
			fmt.Fprintf(out, "%s: valid: %s\n", path, describe(c))
			for i, s := range r.Confirm {
				if i == 0 {
					fmt.Fprintln(out, "the profiles ask for a look on site before the first move:")
				}
				fmt.Fprintln(out, "  -", s)
			}
		}
	}
	if !r.OK {
		return fail(exitUsage, nil, fmt.Sprintf("%d to correct; every key with its default: gsd-mcp config example", len(r.Problems)))
	}
	return nil
}

// toConfirm lists what the profiles in use want a technician to look at.
func toConfirm(c *config.Config) []string {
	out := []string{}
	if p, err := hw.Rotator(c.Rotator.Profile); err == nil {
		out = append(out, p.Confirm...)
	}
	for _, r := range c.Radio {
		if p, err := hw.Radio(r.Profile); err == nil {
			out = append(out, p.Confirm...)
		}
	}
	return slices.Compact(out)
}

// describe is the station in one line.
func describe(c *config.Config) string {
	parts := []string{fmt.Sprintf("station %s at %.4f°, %.4f°", c.Station.ID, c.Station.LatitudeDeg, c.Station.LongitudeDeg)}
	if c.HasRotator() {
		parts = append(parts, "rotator "+c.Rotator.Driver)
	} else {
		parts = append(parts, "no rotator")
	}
	for _, r := range c.Radio {
		parts = append(parts, fmt.Sprintf("radio %s (%s)", r.Driver, r.Role))
	}
	if !c.HasRadio() {
		parts = append(parts, "no radio")
	}
	if c.Transmit.Enabled {
		parts = append(parts, "transmission enabled")
	}
	if c.Access.ReadOnly {
		parts = append(parts, "read-only")
	}
	return strings.Join(parts, ", ")
}

func configShowCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Print the configuration with every default and profile filled in, without secrets",
		Args:  cobra.MaximumNArgs(1),
	}
	path := configFile(cmd)
	asJSON := cmd.Flags().Bool("json", false, "one JSON document on stdout")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := config.Load(path(args))
		if err != nil {
			return badConfig(err)
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), c)
		}
		text, err := c.TOML()
		if err != nil {
			return fail(exitFailed, err, "")
		}
		_, err = cmd.OutOrStdout().Write(text)
		return err
	}
	return cmd
}

func configExampleCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "example [PROFILE]",
		Short: "Print a station.toml with every key, its default and the reason for it",
		Long: "Print a station.toml with every key, its default and the reason for it.\n" +
			"With --profiles, list the hardware profiles, or print one.",
		Args: cobra.MaximumNArgs(1),
	}
	profiles := cmd.Flags().Bool("profiles", false, "list the hardware profiles, or print PROFILE")
	asJSON := cmd.Flags().Bool("json", false, "one JSON document on stdout")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		out := cmd.OutOrStdout()
		switch {
		case !*profiles && len(args) > 0:
			return fail(exitUsage, fmt.Errorf("config example takes no %q", args[0]), "a profile: gsd-mcp config example --profiles "+args[0])
		case *profiles && len(args) > 0:
			return printProfile(out, args[0], *asJSON)
		case *profiles:
			return listProfiles(out, *asJSON)
		case *asJSON:
			return printJSON(out, map[string]string{"toml": string(config.Example())})
		}
		_, err := out.Write(config.Example())
		return err
	}
	return cmd
}

// A profileInfo is a hardware profile in JSON.
type profileInfo struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Confirm []string `json:"confirm_on_site"`
	TOML    string   `json:"toml,omitempty"`
}

func listProfiles(out io.Writer, asJSON bool) error {
	list := []profileInfo{}
	for _, kind := range []string{hw.RotatorKind, hw.RadioKind} {
		for _, name := range hw.Names(kind) {
			p, err := hw.Find(kind, name)
			if err != nil {
				return fail(exitFailed, err, "")
			}
			list = append(list, profileInfo{Kind: kind, Name: name, Title: p.Title, Confirm: p.Confirm})
		}
	}
	if asJSON {
		return printJSON(out, list)
	}
	for _, p := range list {
		fmt.Fprintf(out, "%-8s %-24s %s\n", p.Kind, p.Name, p.Title)
	}
	return nil
}

func printProfile(out io.Writer, name string, asJSON bool) error {
	var found []hw.Profile
	var problem error
	for _, kind := range []string{hw.RotatorKind, hw.RadioKind} {
		p, err := hw.Find(kind, name)
		if err == nil {
			found = append(found, p)
		}
		problem = errors.Join(problem, err)
	}
	if len(found) == 0 {
		return fail(exitUsage, problem, "list them: gsd-mcp config example --profiles")
	}
	if asJSON {
		list := []profileInfo{}
		for _, p := range found {
			list = append(list, profileInfo{p.Kind, p.Name, p.Title, p.Confirm, string(p.Text())})
		}
		return printJSON(out, list)
	}
	for _, p := range found {
		fmt.Fprintf(out, "# %s profile %s\n%s", p.Kind, p.Name, p.Text())
	}
	return nil
}

func configPINCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "pin",
		Short: "Ask for a PIN and print its hash for [access] approval_pin_hash",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pin, err := readPIN(cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return fail(exitUsage, err, "")
			}
			hash, err := config.HashPIN(pin)
			if err != nil {
				return fail(exitUsage, err, "")
			}
			fmt.Fprintf(cmd.OutOrStdout(), "approval_pin_hash = %q\n", hash)
			return nil
		},
	}
}

// readPIN asks twice on a terminal, without showing what is typed; otherwise
// it takes the first line of in.
func readPIN(in io.Reader, prompt io.Writer) (string, error) {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		line, err := bufio.NewReader(io.LimitReader(in, 256)).ReadString('\n')
		if err != nil && line == "" {
			return "", fmt.Errorf("read the PIN: %w", err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	var pins [2]string
	for i, ask := range []string{"PIN: ", "again: "} {
		fmt.Fprint(prompt, ask)
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(prompt)
		if err != nil {
			return "", fmt.Errorf("read the PIN: %w", err)
		}
		pins[i] = string(b)
	}
	if pins[0] != pins[1] {
		return "", errors.New("the two PINs differ")
	}
	return pins[0], nil
}

// unreadable ends a command whose configuration file cannot be read.
func unreadable(err error) error {
	hint := "name another with --config, or see: gsd-mcp config --help"
	if errors.Is(err, config.ErrNoConfig) {
		hint = "write one: gsd-mcp config example, or on the station: sudo gsd-mcp setup"
	}
	return fail(exitFailed, err, hint)
}

// badConfig ends a command that needs a configuration and has none, or a bad one.
func badConfig(err error) error {
	var bad *config.Error
	if errors.As(err, &bad) {
		return fail(exitUsage, err, "see: gsd-mcp config check")
	}
	return unreadable(err)
}

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fail(exitFailed, fmt.Errorf("write JSON: %w", err), "")
	}
	return nil
}
