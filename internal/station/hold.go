package station

import (
	"errors"
	"io/fs"
	"time"

	"gsd-mcp/internal/safety"
)

// HoldOnDisk makes the next start of a station hold until a person resumes: for
// a stop that went round a daemon which did not answer. The store is the state
// directory of a daemon that has ended.
func HoldOnDisk(store Store, by string) error {
	var m modeState
	if _, err := store.Load(modeFile, &m); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		m = modeState{Mode: safety.ModeStandby, Why: "first start"}
	}
	m.Version, m.Held, m.HeldBy, m.Since = 1, true, by, time.Now().UTC()
	return store.Save(modeFile, m)
}
