package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

func simRadioCmd() *cobra.Command {
	var f simFlags
	var protocol, fault string
	cmd := &cobra.Command{
		Use:   "radio --protocol P --link PATH",
		Short: "A simulated radio",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			clk, err := simClock(f.start, f.rate, f.anchor)
			if err != nil {
				return err
			}
			wrong, err := sim.ParseRadioFault(fault)
			if err != nil {
				return err
			}
			if protocol != "ic-9700" {
				return fmt.Errorf("no simulated radio is %q: choose ic-9700", unit.Printable(protocol, 40))
			}
			r := sim.NewIC9700(clk)
			r.SetFault(wrong)
			return f.serve(cmd, clk, r, false, func() any { return r.Truth() })
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&protocol, "protocol", "", "the model of the radio")
	cmd.Flags().StringVar(&fault, "fault", "", "what goes wrong: "+faultNames(sim.RadioFaults()))
	if err := cmd.MarkFlagRequired("protocol"); err != nil {
		panic(err)
	}
	return cmd
}
