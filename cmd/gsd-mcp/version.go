package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/tools"
)

// version is set by the build: -X main.version=1.2.3.
var version = "0.1.0-dev"

func versionCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "version", Short: "Versions of the program and of its tool contract", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if asJSON {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"version": version, "contract_version": tools.ContractVersion, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
		}
		fmt.Fprintf(cmd.OutOrStdout(), "gsd-mcp %s, tool contract %s, %s %s/%s\n", version, tools.ContractVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return cmd
}
