package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/door"
	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/elements/catalogue"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

// importBatch is how many sets go to the daemon in one message: well below the
// longest line.
const importBatch = 500

func elementsCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "elements", Short: "List, show, import or refresh orbital elements", Args: cobra.NoArgs}
	list := clientCmd("list", "How many satellites are known, how fresh, and how each source does", "", cobra.NoArgs,
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, _ []string, asJSON bool) error {
			raw, err := c.Private(ctx, "gsd/elements", nil)
			if err != nil {
				return clientError(err)
			}
			if asJSON {
				fmt.Fprintln(cmd.OutOrStdout(), string(raw))
				return nil
			}
			var st catalogue.Status
			if err := json.Unmarshal(raw, &st); err != nil {
				return fail(exitFailed, fmt.Errorf("elements: %w", err), "are the daemon and this program of one version?")
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d satellites, newest epoch %s, %d sets held back\n", st.Satellites, stamp(st.Newest), st.Held)
			for _, s := range st.Sources {
				fmt.Fprintf(cmd.OutOrStdout(), "%s\n  %d sets, last answer %s, next try %s", s.URL, s.Sets, stamp(s.LastOK), stamp(s.NextTry))
				if s.Failures > 0 {
					fmt.Fprintf(cmd.OutOrStdout(), ", failed %d times: %s", s.Failures, s.LastError)
				}
				fmt.Fprintln(cmd.OutOrStdout())
			}
			return nil
		})
	show := clientCmd("show SAT", "One satellite: orbit, age and trust of its elements, where it is now", "  gsd-mcp elements show 25544", cobra.ExactArgs(1),
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error {
			id, err := satelliteNumber(ctx, c, args[0])
			if err != nil {
				return err
			}
			r, err := callTool(ctx, c, "get_satellite", map[string]any{"norad_id": id})
			if err != nil {
				return err
			}
			show(cmd.OutOrStdout(), r, asJSON)
			return nil
		})
	refresh := privateCommand("refresh", "Ask the configured sources now, as far as they allow", "gsd/elements-refresh", nil, cobra.NoArgs)
	cmd.AddCommand(list, show, elementsImportCmd(), refresh)
	return cmd
}

// satelliteNumber takes a catalogue number, or a name that means one satellite.
func satelliteNumber(ctx context.Context, c *door.Client, s string) (int, error) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, nil
	}
	r, err := callTool(ctx, c, "find_satellites", map[string]any{"query": s, "limit": 1})
	if err != nil {
		return 0, err
	}
	var found struct {
		Satellites []struct {
			NoradID int `json:"norad_id"`
		} `json:"satellites"`
	}
	if err := json.Unmarshal(r.JSON, &found); err != nil || len(found.Satellites) == 0 {
		return 0, fail(exitUsage, fmt.Errorf("no satellite is called %q", unit.Printable(s, 40)), "search with: gsd-mcp call find_satellites query=...")
	}
	return found.Satellites[0].NoradID, nil
}

func elementsImportCmd() *cobra.Command {
	return clientCmd("import FILE", "Take the elements of a file into the station's catalogue: TLE, 3LE, OMM in JSON, CSV, XML or KVN", "  gsd-mcp elements import active.json", cobra.ExactArgs(1),
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, args []string, asJSON bool) error {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return fail(exitUsage, err, "name a file that can be read")
			}
			parsed := elements.Parse(args[0], data)
			for _, p := range parsed.Problems {
				fmt.Fprintln(cmd.ErrOrStderr(), p)
			}
			if len(parsed.Sets) == 0 {
				return fail(exitUsage, fmt.Errorf("%s holds no usable orbital elements", args[0]), "get TLE or OMM from CelesTrak or Space-Track; the station keeps what it has")
			}
			var sum catalogue.Report
			sum.Source, sum.Format = args[0], parsed.Format
			for from := 0; from < len(parsed.Sets); from += importBatch {
				batch := parsed.Sets[from:min(from+importBatch, len(parsed.Sets))]
				raw, err := c.Private(ctx, "gsd/elements-import", elementsImport{Source: args[0], Sets: batch})
				if err != nil {
					return clientError(err)
				}
				var r catalogue.Report
				if err := json.Unmarshal(raw, &r); err != nil {
					return fail(exitFailed, fmt.Errorf("import: %w", err), "are the daemon and this program of one version?")
				}
				sum.Read += r.Read
				sum.New += r.New
				sum.Updated += r.Updated
				sum.Unchanged += r.Unchanged
				sum.Older += r.Older
				sum.Held += r.Held
				sum.Problems = append(sum.Problems, r.Problems...)
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(sum)
			}
			fmt.Fprintln(cmd.OutOrStdout(), sum)
			return nil
		})
}

// elementsImport is what gsd/elements-import takes: sets that the command has
// parsed, which the daemon checks again.
type elementsImport struct {
	Source string         `json:"source"`
	Sets   []elements.Set `json:"sets"`
}

// elementPrivates are the catalogue's private methods.
func (h *house) elementPrivates() []door.Private {
	return []door.Private{
		{Name: "gsd/elements", Min: station.Observer, Handle: func(context.Context, station.Caller, json.RawMessage) (any, error) {
			return h.catalogue.Status(), nil
		}},
		{Name: "gsd/elements-refresh", Min: station.Operator, Person: true, Handle: func(ctx context.Context, _ station.Caller, _ json.RawMessage) (any, error) {
			reports, err := h.catalogue.Refresh(ctx)
			if errors.Is(err, catalogue.ErrTooEarly) {
				return map[string]any{"refreshed": 0, "note": "every source was asked too recently; the next may be asked at " + stamp(h.catalogue.Due())}, nil
			}
			if err != nil && len(reports) == 0 {
				return nil, didNotWork(err)
			}
			return map[string]any{"refreshed": len(reports), "reports": reports}, nil
		}},
		{Name: "gsd/elements-import", Min: station.Operator, Person: true, Handle: func(ctx context.Context, _ station.Caller, params json.RawMessage) (any, error) {
			var p elementsImport
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, &door.ParamsError{Text: err.Error()}
			}
			data, err := ommJSON(p.Sets)
			if err != nil {
				return nil, &door.ParamsError{Text: err.Error()}
			}
			return h.catalogue.Import(ctx, unit.Printable(p.Source, 200), data)
		}},
	}
}

// ommJSON writes sets as OMM JSON, so that what comes from outside goes through
// the same parser as every file.
func ommJSON(sets []elements.Set) ([]byte, error) {
	type record struct {
		Name  string  `json:"OBJECT_NAME"`
		ID    string  `json:"OBJECT_ID"`
		Epoch string  `json:"EPOCH"`
		N     float64 `json:"MEAN_MOTION"`
		E     float64 `json:"ECCENTRICITY"`
		I     float64 `json:"INCLINATION"`
		RAAN  float64 `json:"RA_OF_ASC_NODE"`
		ArgP  float64 `json:"ARG_OF_PERICENTER"`
		M     float64 `json:"MEAN_ANOMALY"`
		Type  int     `json:"EPHEMERIS_TYPE"`
		Class string  `json:"CLASSIFICATION_TYPE"`
		Norad int     `json:"NORAD_CAT_ID"`
		SetNo int     `json:"ELEMENT_SET_NO"`
		Rev   int     `json:"REV_AT_EPOCH"`
		BStar float64 `json:"BSTAR"`
		NDot  float64 `json:"MEAN_MOTION_DOT"`
		NDDot float64 `json:"MEAN_MOTION_DDOT"`
	}
	out := make([]record, 0, len(sets))
	for _, s := range sets {
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("satellite %d: %w", s.NoradID, err)
		}
		class := ""
		if s.Classification != 0 {
			class = string(s.Classification)
		}
		out = append(out, record{s.Name, s.ObjectID, s.Epoch.UTC().Format("2006-01-02T15:04:05.000000000"), s.MeanMotion, s.Eccentricity, s.InclinationDeg, s.RAANDeg, s.ArgPerigeeDeg, s.MeanAnomalyDeg,
			0, class, s.NoradID, s.ElementSetNo, s.RevAtEpoch, s.BStar, s.MeanMotionDot, s.MeanMotionDDot})
	}
	return json.Marshal(out)
}
