package station

import (
	"context"
	"time"

	"gsd-mcp/internal/safety"
)

// ClockStepped tells that the station's time of day has jumped. A pass that is
// tracked follows the time of day: the antenna is stopped, and the pass is
// planned again from where it stands, by the new time (hazard S-02).
func (s *Station) ClockStepped(by time.Duration) {
	if s.rot == nil || !s.rot.tracks() {
		return
	}
	s.rot.abortTrack(safety.Refuse(safety.ClockUntrusted, "check what sets the clock: chronyc tracking", "the time of day jumped by %.1f s during the pass, which is planned again", by.Seconds()))
	ctx, cancel := context.WithTimeout(context.Background(), haltTimeout)
	defer cancel()
	if err := s.rot.Stop(ctx, ""); err != nil {
		s.log.Error("stop after a step of the clock", "error", err)
	}
}
