package safety

// CodeInfo is one row of the table of refusal codes: what docs/refusals.md and
// station://hazards say.
type CodeInfo struct {
	Code    Code   `json:"code"`
	Meaning string `json:"meaning"`
	Next    string `json:"what_to_do"`
}

// Codes lists every refusal code with its meaning, in the contract's order.
func Codes() []CodeInfo {
	return []CodeInfo{
		{AzimuthLimit, "the azimuth is outside the mount's travel", "choose a direction inside the limits"},
		{ElevationLimit, "the elevation is outside the mount's travel", "choose an elevation inside the limits"},
		{ElevationBelowMask, "the direction is below the horizon mask", "ask for a higher elevation"},
		{KeepOut, "the direction, or the way to it, is inside a keep-out zone", "choose another direction; the zone's reason says what is there"},
		{Sun, "the direction, or the way to it, is too close to the sun", "wait, or choose another direction"},
		{WrapUnknown, "the cable winding is not known", "let a person look at the mast, then run: gsd-mcp antenna confirm-winding"},
		{WrapBudget, "the move would wind the cables further than allowed", "let the antenna unwind between passes"},
		{SlewRate, "the mount cannot turn that fast", "choose a lower pass"},
		{Keyhole, "the pass goes so close to the zenith that the mount loses it", "accept the stated loss, or choose another pass"},
		{Wind, "the wind is too strong, or its sensor is silent", "wait until the wind has been below its limit"},
		{PowerLow, "the supply voltage is too low", "check the power supply"},
		{ClockUntrusted, "the station does not trust its clock", "check the network and: chronyc tracking"},
		{ElementsTooOld, "the orbital elements are too old to point by", "run: gsd-mcp elements refresh, or import a file"},
		{ElementsSuspect, "the orbital elements contradict earlier ones", "compare sources before use"},
		{SatelliteUnknown, "no elements of that satellite are known", "search with find_satellites, or import elements"},
		{SatelliteDecayed, "the satellite has decayed, or its orbit cannot be computed", "choose another satellite"},
		{PassUnknown, "there is no such pass", "call predict_passes and use a pass_id from its answer"},
		{PassOver, "the pass has ended", "choose a later pass"},
		{FeedbackStale, "the last position reading is too old", "check the rotator's cable and power, then read get_antenna"},
		{FeedbackSuspect, "the position readings cannot be true", "look at the mount; an operator resets the fault"},
		{Stalled, "the antenna was driven and did not move", "look for an obstacle; an operator resets the fault"},
		{DeviceAbsent, "the device is not configured or not connected", "check the port, the cable and the power, then run: gsd-mcp health"},
		{DeviceFault, "the device has a latched fault", "read get_station_health; an operator resets it"},
		{LeaseHeld, "somebody else is moving the antenna", "wait until the lease ends, or ask its holder"},
		{ModeLocal, "the station is under local control", "ask the person at the station to set mode remote"},
		{ModeMaintenance, "somebody works on the station", "wait; only the owner of the lock ends it"},
		{EStop, "the emergency stop is latched", "a supervisor resets it at the station"},
		{Standby, "the station is in standby", "a supervisor runs: gsd-mcp mode remote"},
		{HeldAfterStop, "the station was stopped and holds", "an operator runs: gsd-mcp resume"},
		{RateLimited, "too many requests of this kind", "wait as long as the answer says"},
		{IdempotencyMismatch, "the idempotency key was used with other arguments", "use a new key for a new request"},
		{ReadOnly, "the station, or this session, is read-only", "use a station or a session with more rights"},
		{NotPermitted, "the caller's role does not allow this", "ask a person with the role, or for the role in [access]"},
		{ApprovalNeeded, "a person must approve this first", "wait for the approval"},
		{ApprovalExpired, "the approval has expired", "ask again"},
		{ApprovalMismatch, "the approval was for other arguments", "repeat exactly what was approved, or ask again"},
		{TxDisabled, "transmission is disabled", "a person enables it in the configuration at the station"},
		{TxBand, "the emission would leave the permitted band", "choose a permitted frequency"},
		{TxOffTarget, "the antenna is not on the satellite", "wait until the antenna tracks"},
		{TxUnconfirmed, "the radio has not confirmed its state", "check the radio"},
		{TxDuty, "the transmitter needs to cool down", "wait"},
		{TxTimeout, "the transmission lasted too long", "ask for a new grant"},
		{StateNotDurable, "the station cannot write down what it would do", "free disk space, or replace the card"},
		{ScheduleConflict, "the antenna is booked for something else at that time", "choose one of the alternatives, or a higher priority"},
		{FrozenWindow, "the pass starts too soon to be changed", "an operator or the owner may still cancel it"},
		{PassDrifted, "the pass moved when the elements changed", "confirm it with its new times"},
		{StateChanged, "the station is no longer in the state that the caller expected", "read get_antenna and decide again"},
	}
}
