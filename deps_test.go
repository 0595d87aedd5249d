package gsdmcp

import (
	_ "github.com/eclipse/paho.mqtt.golang"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/hashicorp/go-hclog"
	_ "github.com/joshuaferrara/go-satellite"
	_ "github.com/mochi-mqtt/server/v2"
	_ "github.com/mochi-mqtt/server/v2/hooks/auth"
	_ "github.com/mochi-mqtt/server/v2/listeners"
	_ "github.com/modelcontextprotocol/go-sdk/mcp"
	_ "github.com/pelletier/go-toml/v2"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "go.bug.st/serial"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "pgregory.net/rapid"
)
