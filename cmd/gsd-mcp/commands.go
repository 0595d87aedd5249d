package main

import "github.com/spf13/cobra"

// commands lists every command, one file each.
func commands() []*cobra.Command {
	return []*cobra.Command{
		demoCmd(),
		serveCmd(),
		stdioCmd(),
		healthCmd(),
		scheduleCmd(),
		antennaCmd(),
		radioCmd(),
		stopCmd(),
		safeStopCmd(),
		resumeCmd(),
		modeCmd(),
		resetCmd(),
		auditCmd(),
		callCmd(),
		toolsCmd(),
		configCmd(),
		passesCmd(),
		elementsCmd(),
		eventsCmd(),
		hubCmd(),
		simCmd(),
		versionCmd(),
	}
}
