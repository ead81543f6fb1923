package canon

// A Reason says why a URL has no canonical form. [Profile.Append] returns no other
// errors. The texts are data of reports and never change.
type Reason string

// The reasons in the order of the steps that give them.
const (
	Empty             Reason = "empty"              // nothing is left after trimming
	ControlCharacter  Reason = "control_character"  // 0x00–0x1F or 0x7F inside
	UnsupportedScheme Reason = "unsupported_scheme" // well formed, but not http or https
	MissingScheme     Reason = "missing_scheme"
	MissingAuthority  Reason = "missing_authority" // no two slashes after the scheme
	Userinfo          Reason = "userinfo"          // a user name or password
	BadPort           Reason = "bad_port"          // not a number up to 65535
	EmptyHost         Reason = "empty_host"
	BadHost           Reason = "bad_host" // neither a name nor an address
	TooLong           Reason = "too_long" // input over 65,536 bytes or form over the limit
)

// Error returns the reason as it stands in reports.
func (r Reason) Error() string { return string(r) }
