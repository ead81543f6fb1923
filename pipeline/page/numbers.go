package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/estimate"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// between returns a bin for each step from the first to the last key; at most mostBins and one.
func between(by map[string]int64, next func(string) string) (bins []bin) {
	names := slices.Sorted(maps.Keys(by))
	for at := names[0]; at <= names[len(names)-1] && len(bins) <= mostBins; at = next(at) {
		bins = append(bins, bin{name: at, count: by[at]})
	}
	return bins
}

// nextMonth returns the month after one such as 2026-12.
func nextMonth(month string) string {
	year, m, _ := strings.Cut(month, "-")
	if n, _ := strconv.Atoi(m); n < 12 {
		return fmt.Sprintf("%s-%02d", year, n+1)
	}
	return nextYear(year) + "-01"
}

// nextYear returns the year after one.
func nextYear(year string) string {
	n, _ := strconv.Atoi(year)
	return fmt.Sprintf("%04d", n+1)
}

// spaceSection says how much of the code space is in use, and what to expect of more links.
func spaceSection(r *Report, _ map[place][]Fact) section {
	s := section{ID: "space", Title: "Code space"}
	if r.Survey == nil || r.Deletion {
		return s
	}
	scheme := &r.Manifest.Scheme
	spec, err := codegen.SpecOf(scheme.Name)
	if err != nil {
		return s
	}
	if spec.Counts {
		s.Lead = "Codes are made from the numbers of a counter, so they do not collide before the numbers come to the end of the code space."
		s.add(part{Table: counterTable(r, spec)})
		return s
	}
	most := r.Survey.Hashed.Top(1)
	if len(most) == 0 {
		return s
	}
	s.Lead = fmt.Sprintf("A code is the beginning of a hash, %d characters. If two links of a workspace want one code, one of them gets its next code. "+
		"These are the links of workspace %s, which has the most in this run.", scheme.CodeLength, show(most[0].Text))
	s.add(part{Table: hashTable(scheme, most[0].Count)})
	return s
}

// sizes are those for which collisions are estimated, as multiples of the run.
var sizes = []int64{1, 10, 100}

// hashTable estimates collisions of hashed codes.
func hashTable(scheme *manifest.Scheme, links int64) *table {
	t := &table{Caption: "Expected collisions, in one workspace", Head: []cell{
		named("size"), figure("links"), figure("share of all codes"),
		figure("expected to need another code"), figure("chance of any"), figure("left without a code"),
	}}
	for _, times := range sizes {
		if links > 1e16/times {
			break
		}
		load := estimate.Load{Scheme: scheme.Name, Links: links * times, CodeLength: scheme.CodeLength, MaxRetries: max(scheme.MaxRetries, 0)}
		e, err := estimate.Collisions(load)
		if err != nil {
			break
		}
		name := "this run"
		if times > 1 {
			name = fmt.Sprintf("%d times", times)
		}
		t.add(named(name), figure(number(load.Links)), figure(odds(float64(load.Links)/e.Codes)),
			figure(large(e.Colliding)), figure(odds(e.AnyCollision)), figure(large(e.Exhausted)))
		t.Foot = fmt.Sprintf("There are %s codes. Links that the store had before the run and that no row names do not count.", large(e.Codes))
	}
	if t.Rows == nil {
		return nil
	}
	return t
}

// counterTable says how many numbers of the counter are left.
func counterTable(r *Report, spec codegen.Spec) *table {
	var last int64
	if n := r.Manifest.Numbers; n != nil {
		for _, some := range n.Ranges {
			last = max(last, some.Last)
		}
	}
	t := &table{Caption: "Numbers of the counter", Head: []cell{named("size"), figure("numbers in use"), figure("of all"), figure("left")}}
	for _, times := range sizes {
		if last > 1e16/times {
			break
		}
		e, err := estimate.Numbers(estimate.Load{Scheme: spec.Name, Links: last * times, CodeLength: spec.Length})
		if err != nil {
			break
		}
		name := "now"
		if times > 1 {
			name = fmt.Sprintf("%d times", times)
		}
		t.add(named(name), figure(large(e.Numbers)), figure(odds(min(e.Numbers/e.Codes, 1))), figure(large(e.Left)))
	}
	return t
}

// stages says what the stages do, in their order.
var stages = []struct{ name, does string }{
	{"read", "reads the inputs, makes canonical URLs and hashes"},
	{"wait", "waits for the store or for another run"},
	{"settle", "looks the links up and decides their codes"},
	{"order", "brings rows into the order of the input"},
	{"links", "brings links into the order of their codes"},
	{"write", "writes the mapping and loads the links"},
	{"finish", "writes the rejects and the manifest"},
	{"fsync", "waits for the disk, as a part of finish"},
}

// timeSection says how long the stages took, and what memory they needed.
func timeSection(r *Report, facts map[place][]Fact) section {
	s := section{ID: "time", Title: "Time and memory"}
	if r.Timings == nil {
		s.add(part{Facts: facts[placeTime]})
		return s
	}
	t := r.Timings
	s.Lead = fmt.Sprintf("Started %s, took %s with %s.", moment(t.Started), seconds(t.Seconds), cores(t.Workers))
	s.add(part{Bars: stageBars(t)})
	list := []Fact{{Name: "memory allowed", Text: "no bound"}, {Name: "most memory in use", Text: "the system does not tell"}, {Name: "sorted", Text: size(t.Sorted)}, {Name: "spilled to disk", Text: size(t.Spilled)}}
	if t.Memory > 0 {
		list[0].Text = size(t.Memory)
	}
	if t.PeakMemory > 0 {
		list[1].Text = size(t.PeakMemory)
	}
	s.add(part{Facts: list})
	return s
}

func cores(n int) string {
	if n == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%d cores", n)
}

// stageBars are the stages by the time that they took. Those that were done again count as one.
func stageBars(t *manifest.Timings) *bars {
	b := &bars{Caption: "Time by stage", Head: "stage", Unit: "time", More: true}
	sums := map[string]manifest.Stage{}
	var names []string
	for _, s := range t.Stages {
		sum, there := sums[s.Name]
		if !there && len(names) < mostListed {
			names = append(names, s.Name)
		}
		sums[s.Name] = manifest.Stage{Name: s.Name, Seconds: sum.Seconds + s.Seconds, Rows: sum.Rows + s.Rows, Bytes: sum.Bytes + s.Bytes}
	}
	var values []float64
	for _, name := range names {
		sum := sums[name]
		row := barRow{Name: show(name), Count: seconds(sum.Seconds)}
		if i := slices.IndexFunc(stages, func(known struct{ name, does string }) bool { return known.name == name }); i >= 0 {
			row.More = append(row.More, stages[i].does)
		}
		var rates []string
		if sum.Rows > 0 && sum.Seconds > 0 {
			rates = append(rates, number(int64(float64(sum.Rows)/sum.Seconds))+" rows a second")
		}
		if sum.Bytes > 0 {
			rates = append(rates, size(sum.Bytes))
		}
		if rates != nil {
			row.More = append(row.More, strings.Join(rates, ", "))
		}
		b.Rows, values = append(b.Rows, row), append(values, sum.Seconds)
	}
	scale(b.Rows, values)
	return b
}

// filesSection lists inputs and outputs with their digests.
func filesSection(r *Report, facts map[place][]Fact) section {
	s := section{ID: "files", Title: "Files"}
	s.add(part{Facts: facts[placeFiles]})
	t := &table{Caption: "Inputs", Head: []cell{named("input"), {Text: "format"}, figure("rows"), figure("size"), {Text: "SHA-256", Wide: true}}}
	for i := range r.Manifest.Inputs[:min(len(r.Manifest.Inputs), mostListed)] {
		in := &r.Manifest.Inputs[i]
		format := in.Format
		if in.Compression != "" {
			format += ", " + in.Compression
		}
		bytes := "–"
		if in.Size > 0 {
			bytes = size(in.Size)
		}
		sum := cell{Text: show(cmp.Or(in.SHA256, in.RecordsSHA256, "–")), Code: true, Wide: true}
		t.add(cell{Text: show(in.Name), Code: true, Name: true}, cell{Text: show(format)}, figure(number(in.Records-in.BlankRows)), figure(bytes), sum)
	}
	if more := len(r.Manifest.Inputs) - len(t.Rows); more > 0 {
		t.Foot = fmt.Sprintf("There are %s more inputs: see %s. All have %s rows.", number(int64(more)), manifest.Name, number(r.Manifest.Inputs.Rows()))
	}
	s.add(part{Table: t})
	t = &table{Caption: "Outputs", Head: []cell{named("file"), figure("rows"), {Text: "SHA-256", Wide: true}}}
	for _, f := range r.Manifest.Files {
		t.add(cell{Text: show(f.Name), Code: true, Name: true}, figure(number(f.Rows)), cell{Text: show(f.SHA256), Code: true, Wide: true})
	}
	s.add(part{Table: t})
	return s
}

// optionsSection lists what the run was told that can change its result.
func optionsSection(r *Report, _ map[place][]Fact) section {
	s := section{ID: "options", Title: "Options", Lead: "What it was told that can change the result."}
	m := r.Manifest
	all := map[string]string{"canonical_form": m.Profile, "unicode_version": m.UnicodeVersion, "as_of": moment(m.AsOf), "bulk_version": m.Version}
	if !r.Deletion {
		all["scheme"], all["code_length"], all["max_retries"] = m.Scheme.Name, strconv.Itoa(m.Scheme.CodeLength), strconv.Itoa(m.Scheme.MaxRetries)
		maps.Copy(all, m.Scheme.Rest())
	}
	for name, value := range m.Options {
		text := fmt.Sprint(value)
		switch v := value.(type) {
		case manifest.Text:
			text = string(v)
		case bool:
			text = map[bool]string{false: "no", true: "yes"}[v]
		}
		all[name] = text
	}
	t := &table{Head: []cell{named("option"), {Text: "value"}}}
	for _, name := range slices.Sorted(maps.Keys(all))[:min(len(all), mostListed)] {
		value := cell{Text: showValue(name, all[name]), Code: true}
		if value.Text == "" {
			value = cell{Text: "–"}
		}
		t.add(cell{Text: show(name), Code: true, Name: true}, value)
	}
	s.add(part{Table: t})
	return s
}
