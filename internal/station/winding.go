package station

import (
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

const windingFile = "winding.json"

// remarkEvery is how often the mark of motion is renewed while the antenna
// moves, station time: what a restart finds is then young enough for it to know
// that the antenna cannot have turned by half a turn since.
const remarkEvery = 10 * time.Second

// windingKnown is how far from where it stood the antenna may be found after a
// restart, degrees: wind, coasting, a reading of another firmware.
const windingKnown = 9.0

type windingState struct {
	Version int       `json:"version"`
	AzDeg   float64   `json:"unwrapped_azimuth_deg"`
	ElDeg   float64   `json:"elevation_deg"`
	Moving  bool      `json:"moving"` // set before the first byte of a move, cleared when it stands
	BootID  string    `json:"boot_id"`
	At      time.Time `json:"at"`
}

// note sets what is to be kept of the winding; the mutex is held.
func (s *Station) note(mech unit.AzEl, moving bool) {
	s.winding = windingState{Version: 1, AzDeg: mech.AzDeg, ElDeg: mech.ElDeg, Moving: moving, BootID: s.o.BootID, At: s.o.Clock.Now()}
	s.hasWind = true
}

// saveWinding writes what is known now: a write that waited for the disk cannot
// undo a newer one.
func (s *Station) saveWinding() error {
	defer s.saving.take()()
	s.mu.Lock()
	w := s.winding
	s.mu.Unlock()
	return s.o.Store.Save(windingFile, w)
}

func (s *Station) saveWindingLater() {
	s.queue.put(func() {
		if err := s.saveWinding(); err != nil {
			s.disk(err)
		}
	})
}

// stood notes where the antenna stands after a move. While another move is
// about to begin its mark stays.
func (s *Station) stood(mech unit.AzEl) {
	s.mu.Lock()
	s.note(mech, s.starting > 0)
	s.mu.Unlock()
	s.saveWindingLater()
}

// markMoving writes the mark that a restart looks for, before the first byte.
func (s *Station) markMoving() *safety.Refusal {
	v, _ := s.rot.View()
	s.mu.Lock()
	s.note(v.mech, true)
	s.mu.Unlock()
	if err := s.saveWinding(); err != nil {
		s.disk(err)
		return safety.Refuse(safety.StateNotDurable, "free disk space or replace the card, then read get_station_health", "the winding could not be written down: %v", err)
	}
	return nil
}

// remark renews the mark of a moving antenna now and then.
func (s *Station) remark(mech unit.AzEl) {
	if s.windingTold() {
		return
	}
	s.mu.Lock()
	due := s.winding.Moving && s.o.Clock.Now().Sub(s.winding.At) >= remarkEvery
	if due {
		s.note(mech, true)
	}
	s.mu.Unlock()
	if due {
		s.saveWindingLater()
	}
}

// windingTold reports whether a reading alone tells the winding.
func (s *Station) windingTold() bool {
	t := s.o.Rules.Travel
	return s.o.Rotator.Absolute || t.AzMaxDeg-t.AzMinDeg <= 360
}

// restore tells the unwrapped azimuth of the first reading after a start, and
// whether it is known: from the controller, from the travel, or, within the
// same boot, from the state on disk when the antenna cannot have turned unseen
// by half a turn.
func (s *Station) restore(mech unit.AzEl) (az float64, known bool) {
	t := s.o.Rules.Travel
	if s.o.Rotator.Absolute {
		return mech.AzDeg, true
	}
	mid := (t.AzMinDeg + t.AzMaxDeg) / 2
	if s.windingTold() {
		return unit.Nearest(mech.AzDeg, mid), true
	}
	s.mu.Lock()
	w, has := s.winding, s.hasWind
	s.mu.Unlock()
	if !has {
		return unit.Nearest(mech.AzDeg, mid), false
	}
	az = unit.Nearest(mech.AzDeg, w.AzDeg)
	if w.BootID != s.o.BootID { // without power anybody may have turned it
		return az, false
	}
	if !w.Moving {
		return az, max(az-w.AzDeg, w.AzDeg-az) <= windingKnown
	}
	since := s.o.Clock.Now().Sub(w.At)
	return az, since >= 0 && since.Seconds()*s.o.Rules.AzSpeedDps < windingTrust
}
