package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/sim"
)

func simRadioCmd() *cobra.Command {
	var f simFlags
	var protocol, fault string
	cmd := &cobra.Command{
		Use:   "radio --protocol P --link PATH",
		Short: "A simulated radio: CAT control of one model",
		Long: "A simulated radio that answers its model's control protocol, refuses what the model refuses, and puts\n" +
			"out no power. It prints `ready PATH` when the port is there and ends on SIGTERM.\n\n" +
			"Models: " + strings.Join(sim.RadioModels(), " ") + "\n" +
			"Faults: " + faultNames(sim.RadioFaults()),
		Example: "  gsd-mcp sim radio --protocol ic-9700 --link /tmp/radio &\n  rigctl -m 3081 -r /tmp/radio F 437550000 f",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			clk, err := simClock(f.start, f.rate, f.anchor)
			if err != nil {
				return err
			}
			wrong, err := sim.ParseRadioFault(fault)
			if err != nil {
				return err
			}
			r, err := sim.NewRadio(protocol, clk)
			if err != nil {
				return err
			}
			r.SetFault(wrong)
			return f.serve(cmd, clk, r, wrong == sim.RadioUnplug, func() any {
				t := r.Truth()
				t.Time = t.Time.UTC().Truncate(time.Millisecond)
				return t
			})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&protocol, "protocol", "", "the model of the radio")
	cmd.Flags().StringVar(&fault, "fault", "", "what goes wrong")
	for name, values := range map[string][]string{"protocol": sim.RadioModels(), "fault": strings.Fields(faultNames(sim.RadioFaults()))} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err)
		}
	}
	if err := cmd.MarkFlagRequired("protocol"); err != nil {
		panic(err)
	}
	return cmd
}
