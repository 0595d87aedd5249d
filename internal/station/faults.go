package station

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/safety"
)

// faultsFile keeps latched faults: a restart is no reset (SAFETY, rule 8).
const faultsFile = "faults.json"

type latched struct {
	Code safety.Code `json:"code"`
	Why  string      `json:"why"`
	At   time.Time   `json:"at"`
}

type faultsState struct {
	Version int      `json:"version"`
	Rotator *latched `json:"rotator,omitempty"`
}

// antennaFault keeps and publishes a fault that the rotator's owner has latched.
// It runs on the owner's goroutine, so the disk is left to the queue.
func (s *Station) antennaFault(code safety.Code, why string) {
	f := faultsState{Version: 1, Rotator: &latched{code, why, s.o.Clock.Now()}}
	s.queue.put(func() {
		if err := s.o.Store.Save(faultsFile, f); err != nil {
			s.disk(err)
		}
	})
	s.emit(event.About{Subject: "antenna"}, event.AntennaFault{Code: string(code), Fault: why, Fix: "look at the mount, then an operator runs: gsd-mcp reset " + string(code)})
	s.changed("health")
}

// restoreFaults latches again what was latched when the station ended. Faults
// that cannot be read count as one: what was wrong is not known.
func (s *Station) restoreFaults() (note string) {
	var f faultsState
	_, err := s.o.Store.Load(faultsFile, &f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		f.Rotator = &latched{Code: safety.DeviceFault, Why: fmt.Sprintf("the file of latched faults could not be read (%v)", err)}
		note = f.Rotator.Why + "; "
	}
	if f.Rotator != nil && s.rot != nil {
		s.rot.restoreFault(f.Rotator.Code, f.Rotator.Why)
	}
	return note
}

// forgetFaults makes a reset last over a restart.
func (s *Station) forgetFaults() error {
	done := make(chan error, 1)
	s.queue.put(func() { done <- s.o.Store.Save(faultsFile, faultsState{Version: 1}) }) // behind a fault that waits to be written
	select {
	case err := <-done:
		return err
	case <-time.After(haltTimeout):
		return errors.New("the disk did not take the reset in time")
	}
}

// restoreFault puts a fault of an earlier run in force, before the owner runs.
func (w *rotatorOwner) restoreFault(code safety.Code, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.view.fault, w.view.faultWhy, w.view.state = code, why, AntennaFault
	if code == safety.FeedbackSuspect {
		w.view.suspect = why
	}
}
