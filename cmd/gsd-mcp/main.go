// Command gsd-mcp runs an unattended satellite ground station.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitNotAllowed  = 4
	exitUnreachable = 5
)

// An exitError carries the exit code of a command that has failed, and a hint:
// the next step for the person who reads it.
type exitError struct {
	code int
	err  error // nil: everything has been said
	hint string
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// fail ends a command with an exit code, an error and a hint.
func fail(code int, err error, hint string) error { return &exitError{code, err, hint} }

func main() {
	// A broken pipe must be an error of the write that meets it: by default Go
	// ends the process, and a dropped ssh link would end a station mid-slew.
	signal.Ignore(syscall.SIGPIPE)
	// A hang-up ends a bridge whose terminal is gone; serve takes it for itself.
	ctx, stop := signal.NotifyContext(context.Background(), endSignals(os.Args[1:])...)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// endSignals are the signals that end a command. For the daemon SIGHUP means
// something else: read the configuration again.
func endSignals(args []string) []os.Signal {
	s := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if len(args) > 0 && args[0] == "serve" {
		return s
	}
	return append(s, syscall.SIGHUP)
}

func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	var e *exitError
	if !errors.As(err, &e) {
		e = &exitError{exitUsage, err, "see: gsd-mcp --help"}
	}
	if e.err != nil {
		fmt.Fprintln(os.Stderr, "error:", e.err)
	}
	if e.hint != "" {
		fmt.Fprintln(os.Stderr, "hint:", e.hint)
	}
	return e.code
}

func newRoot() *cobra.Command {
	var f stdioFlags
	root := &cobra.Command{
		Use:   "gsd-mcp",
		Short: "Run an unattended satellite ground station",
		Long: "gsd-mcp runs an unattended satellite ground station: rotator and radio, passes, tracking, events, and an MCP\n" +
			"server through which people and copilots ask. Without a command it is the bridge that an MCP host starts.",
		Example:       "  gsd-mcp demo\n  gsd-mcp passes \"ISS (ZARYA)\" --lat 51.5 --lon -0.13\n  gsd-mcp serve --sim",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if onTerminal(os.Stdin) && !f.simulated { // a person, not an MCP host
				return cmd.Help()
			}
			return stdio(cmd.Context(), f, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	f.register(root)
	root.AddCommand(commands()...)
	return root
}
