package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Wind is one reading of the wind sensor's file.
type Wind struct {
	Time    time.Time `json:"time"`
	WindMps float64   `json:"wind_mps"`
}

const (
	maxWindMps  = 120 // the highest gust ever measured is 113 m/s
	maxWindFile = 4096
	// aheadOK is how far the sensor's computer may be ahead of ours.
	aheadOK = 5 * time.Second
)

// ReadWind reads what another program says of the wind: one JSON object with
// time and wind_mps, replaced whole (a temporary file and a rename). Whether
// the reading is too old is for the caller, by its own clock; one from the
// future is refused here.
func ReadWind(path string, now time.Time) (Wind, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Wind{}, fmt.Errorf("read the wind: %s does not exist; start the program that writes it: %w", path, err)
		}
		return Wind{}, fmt.Errorf("read the wind: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxWindFile+1))
	if err != nil {
		return Wind{}, fmt.Errorf("read the wind: %w", err)
	}
	w, err := parseWind(data, now)
	if err != nil {
		return Wind{}, fmt.Errorf("read the wind: %s: %w", path, err)
	}
	return w, nil
}

func parseWind(data []byte, now time.Time) (Wind, error) {
	if len(data) > maxWindFile {
		return Wind{}, fmt.Errorf("the file has more than %d bytes", maxWindFile)
	}
	var raw struct {
		Time    *time.Time `json:"time"`
		WindMps *float64   `json:"wind_mps"`
	}
	if err := json.Unmarshal(data, &raw); err != nil || raw.Time == nil || raw.WindMps == nil {
		return Wind{}, errors.New(`it is not {"time": "2026-11-30T12:00:00Z", "wind_mps": 7.5}`)
	}
	w := Wind{Time: raw.Time.UTC(), WindMps: *raw.WindMps}
	if !(w.WindMps >= 0 && w.WindMps <= maxWindMps) {
		return Wind{}, fmt.Errorf("%v m/s is no wind, want 0..%d", w.WindMps, maxWindMps)
	}
	if ahead := w.Time.Sub(now); ahead > aheadOK {
		return Wind{}, fmt.Errorf("its time is %v ahead of the station's clock", ahead.Round(time.Second))
	}
	return w, nil
}
