package page

// A place is where on the page a fact stands.
type place int

const (
	placeRun     place = iota // with all that has no other place
	placeBooks                // which shows it
	placeHead                 // likewise
	placeNext                 // the next command
	placeRejects              // and so on: the sections
	placeMerged
	placeCodes
	placeEnds
	placeCampaigns
	placeDomains
	placeTime
	placeFiles
)

// places says where facts stand, by their key or the object that they are in.
var places = map[string]place{
	"counts": placeBooks, "links_created": placeBooks, "run": placeHead, "seconds": placeHead, "links_deleted": placeHead,
	"command": placeNext,
	"reasons": placeRejects, "rejects_file": placeRejects,
	"rewritten": placeMerged, "merged_differs": placeMerged,
	"legacy": placeCodes, "numbers": placeCodes, "collisions": placeCodes, "migration.hygiene": placeCodes,
	"rules": placeEnds, "links_unchanged": placeEnds, "expires_at": placeEnds, "dates_without_time": placeEnds, "no_ends": placeEnds, "no_expiry": placeEnds,
	"campaign": placeCampaigns, "tagged": placeCampaigns,
	"domains": placeDomains, "workspaces": placeDomains,
	"rows_per_second": placeTime,
	"out":             placeFiles, "files": placeFiles, "manifest_sha256": placeFiles, "short_urls_blank": placeFiles,
}

// placeOf returns where a fact stands. A key of its own comes before what it is in.
func placeOf(f *Fact) place {
	if p, ok := places[f.Key]; ok {
		return p
	}
	return places[f.In]
}

// sorted returns the facts that people are told, fit for a page, by place.
func sorted(facts []Fact) map[place][]Fact {
	by := map[place][]Fact{}
	for i := range facts {
		if f := &facts[i]; !f.Hidden {
			p := placeOf(f)
			by[p] = append(by[p], f.shown())
		}
	}
	return by
}
