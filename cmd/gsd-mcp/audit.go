package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/state"
)

func auditCmd() *cobra.Command {
	var place placeFlags
	var verify, asJSON bool
	var last int
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Who asked for what, and what came of it; --verify checks the hash chain",
		Long:  "Reads the audit in the state directory, with or without a daemon. Only accounts that may read the directory can.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := auditDir(place.places().StateDir)
			out := cmd.OutOrStdout()
			if verify {
				return verifyAudit(cmd, dir, asJSON)
			}
			lines, err := state.TailAudit(dir, last)
			if err != nil {
				return fail(exitFailed, err, "name the state directory with --state-dir, and read it as root or as the daemon's user")
			}
			for _, l := range lines {
				if asJSON {
					if err := json.NewEncoder(out).Encode(l); err != nil {
						return fail(exitFailed, err, "")
					}
					continue
				}
				fmt.Fprintf(out, "%6d %s %s\n", l.Seq, stamp(l.Time), l.Rec)
			}
			return nil
		},
	}
	place.register(cmd)
	cmd.Flags().BoolVar(&verify, "verify", false, "check every line against the one before it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "JSON lines, or one JSON document with --verify")
	cmd.Flags().IntVar(&last, "last", 20, "how many lines, newest last")
	return cmd
}

func auditDir(stateDir string) string { return stateDir + "/audit" }

func verifyAudit(cmd *cobra.Command, dir string, asJSON bool) error {
	r, err := state.Verify(dir)
	if err != nil {
		return fail(exitFailed, err, "name the state directory with --state-dir, and read it as root or as the daemon's user")
	}
	out := cmd.OutOrStdout()
	if asJSON {
		if err := json.NewEncoder(out).Encode(r); err != nil {
			return fail(exitFailed, err, "")
		}
	} else {
		fmt.Fprintf(out, "%d lines, head %s\n", r.Lines, r.Head)
		for _, p := range r.Problems {
			fmt.Fprintln(out, p)
		}
	}
	if !r.OK() {
		return fail(exitFailed, fmt.Errorf("the audit has %d problems", len(r.Problems)), "keep a copy of the files and find out who could write to them")
	}
	return nil
}
