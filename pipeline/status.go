package pipeline

import "sync/atomic"

// A Stage is what a run is doing.
type Stage int32

const (
	StageOpen Stage = iota
	StageRead
	StageWait // for another run's lock
	StageSettle
	StageOrder // rows go into the order of the input; links are loaded
	StageWrite
	StageFinish
	StageCount  // of a preview: rows and links are counted that a run would write; of a delete: links that it would delete
	StageDelete // links are marked as deleted
)

func (s Stage) String() string {
	return [...]string{"opening", "reading", "waiting", "settling", "ordering", "writing", "finishing", "counting", "deleting"}[s]
}

// Status lets another goroutine watch a run, which begins with zeros. All values
// only grow within a stage; Bytes and TotalBytes are of the inputs as they lie. Two
// runs at once need one each.
type Status struct {
	stage      atomic.Int32
	Bytes      atomic.Int64
	TotalBytes atomic.Int64 // -1: unknown
	Read       atomic.Int64 // rows
	Rejected   atomic.Int64 // rows, as far as known
	Settled    atomic.Int64 // accepted rows whose code is known
	Written    atomic.Int64 // accepted rows that are in the mapping, or put in its order, or counted; of a delete those whose links are deleted
}

// Stage returns what the run is doing.
func (s *Status) Stage() Stage { return Stage(s.stage.Load()) }

// begin forgets what another run has left.
func (s *Status) begin() {
	s.enter(StageOpen)
	for _, n := range []*atomic.Int64{&s.Bytes, &s.TotalBytes, &s.Read, &s.Rejected, &s.Settled, &s.Written} {
		n.Store(0)
	}
}

func (s *Status) enter(stage Stage) { s.stage.Store(int32(stage)) }
