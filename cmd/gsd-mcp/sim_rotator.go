package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

// rotatorTruth is one line of `sim rotator --truth`.
type rotatorTruth struct {
	Time          string  `json:"time"`
	AzDeg         float64 `json:"az_deg"`
	ElDeg         float64 `json:"el_deg"`
	AzUnwrapped   float64 `json:"az_unwrapped_deg"`
	AzRateDegPerS float64 `json:"az_rate_deg_s"`
	ElRateDegPerS float64 `json:"el_rate_deg_s"`
}

func simRotatorCmd() *cobra.Command {
	var f simFlags
	var protocol, fault string
	mount := sim.DefaultMount()
	cmd := &cobra.Command{
		Use:   "rotator --protocol P --link PATH",
		Short: "A simulated rotator: a controller with a mount of 450° by 180°",
		Long: "A simulated rotator: a controller that speaks a protocol, with a mount of 450° by 180° that turns at\n" +
			"6°/s and tilts at 3°/s. It prints `ready PATH` when the port is there and ends on SIGTERM.\n\n" +
			"Protocols: " + strings.Join(sim.RotatorProtocols(), " ") + "\n" +
			"Faults: " + faultNames(sim.RotatorFaults()),
		Example: "  gsd-mcp sim rotator --protocol easycomm2 --link /tmp/rotator &\n  rotctl -m 202 -r /tmp/rotator -s 9600 p",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			clk, err := simClock(f.start, f.rate, f.anchor)
			if err != nil {
				return err
			}
			wrong, err := sim.ParseRotatorFault(fault)
			if err != nil {
				return err
			}
			if !(mount.AzMinDeg <= mount.StartAzDeg && mount.StartAzDeg <= mount.AzMaxDeg && mount.ElMinDeg <= mount.StartElDeg && mount.StartElDeg <= mount.ElMaxDeg) {
				return fmt.Errorf("a start at %v°, %v° is outside the mount's travel, 0..450 and 0..180", mount.StartAzDeg, mount.StartElDeg)
			}
			m := sim.NewMount(clk, mount)
			ctl, err := sim.NewController(protocol, m)
			if err != nil {
				return err
			}
			ctl.SetFault(wrong)
			return f.serve(cmd, clk, ctl, wrong == sim.RotatorUnplug, func() any {
				t := m.Truth()
				return rotatorTruth{stamp(t.Time), unit.Norm360(t.AzDeg), t.ElDeg, t.AzDeg, t.AzRateDps, t.ElRateDps}
			})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&protocol, "protocol", "", "what the controller speaks")
	cmd.Flags().StringVar(&fault, "fault", "", "what goes wrong")
	cmd.Flags().Float64Var(&mount.StartAzDeg, "azimuth", 0, "where it points at the start: 0 to 450, in `DEG`rees; 20 and 380 are a turn apart")
	cmd.Flags().Float64Var(&mount.StartElDeg, "elevation", 0, "where it points at the start: 0 to 180, in `DEG`rees")
	for name, values := range map[string][]string{"protocol": sim.RotatorProtocols(), "fault": strings.Fields(faultNames(sim.RotatorFaults()))} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err)
		}
	}
	if err := cmd.MarkFlagRequired("protocol"); err != nil {
		panic(err)
	}
	return cmd
}

func faultNames[F ~string](faults []F) string {
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = string(f)
	}
	return strings.Join(names, " ")
}
