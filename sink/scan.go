package sink

import (
	"context"
	"time"
)

// A Scanner is a Store that can list its links.
type Scanner interface {
	// Scan visits all links, as they are at one moment, in ascending (workspace,
	// code) order of their bytes. The link's slices are valid only during the
	// call; the error of visit ends the scan and is returned. Where the database
	// does not exist yet, there are none.
	Scan(ctx context.Context, visit func(*Stored) error) error
}

// Stored is a link as the store has it.
type Stored struct {
	Link
	Run     int32
	Created time.Time // UTC, whole microseconds
}
