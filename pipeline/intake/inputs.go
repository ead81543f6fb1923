package intake

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/source"
)

// Inputs are the sources of a run in the order of their names, with the columns that all of
// them together have.
type Inputs struct {
	List []*Input
	columns.Union
	Size int64 // bytes as they lie; -1: unknown

	Campaign *campaign.Plan // of which each row has variants, as of Expand; nil: a row is one link
	Resolves bool           // URLs without scheme and host are resolved
}

// KeepURLs reports whether a record has the URL of its input after the carried cells, since its own may be
// another one.
func (in *Inputs) KeepURLs() bool { return in.Campaign != nil || in.Resolves }

// An Input is a source and where the columns of the run lie in it.
type Input struct {
	*source.Input
	Layout columns.Layout
	Along  along.Along
	judged judge.Columns
	begun  bool // Read was called

	described bool // as of Describe: it is not open

	counting sync.Mutex
	counted  int64 // bytes that are in Config.Bytes
}

// Open opens every input and determines its format, dialect and columns. With Options.Roles attrs
// says what goes along with links, as of along.Parse. The caller closes the inputs. Errors are
// those of source.Open.
func Open(ctx context.Context, names []string, opts source.Options, attrs string, log *slog.Logger) (_ *Inputs, err error) {
	in := &Inputs{}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Close())
		}
	}()
	for _, name := range names {
		s, err := source.Open(ctx, name, opts)
		if err != nil {
			return nil, err
		}
		in.List = append(in.List, &Input{Input: s})
		if n := len(s.Skipped); n > 0 {
			log.Warn("columns of lists, maps or unions are left out", "input", name, "columns", n, "first", s.Skipped[0])
		}
		if _, size := s.Progress(); size >= 0 && in.Size >= 0 {
			in.Size += size
		} else {
			in.Size = -1
		}
	}
	if i := slices.IndexFunc(in.List, func(i *Input) bool { return i.NotDecoded() }); i >= 0 {
		log.Info("rejects of an earlier run are UTF-8: Config.Source.Encoding does not count for them", "input", in.List[i].Name)
	}
	in.unite()
	for _, i := range in.List {
		i.judged = judge.Columns{Input: i.Name, Names: i.Columns, Params: i.findParams()}
	}
	if opts.Roles {
		if err := in.findAlong(&opts, attrs); err != nil {
			return nil, err
		}
	}
	if n := len(in.Names); n > columns.MaxColumns {
		return nil, &columns.UsageError{Input: names[len(names)-1], Msg: fmt.Sprintf("with it the inputs have %d columns in all, more than %d: their rejects could not be read back", n, columns.MaxColumns)}
	}
	return in, nil
}

// Expand finds in each input the columns of a campaign, before any is read. The error is a
// *columns.UsageError. An input of no records, whose columns nobody knows, need not have them.
func (in *Inputs) Expand(plan *campaign.Plan) (err error) {
	in.Campaign = plan
	for _, i := range in.List {
		if i.Blank {
			continue
		}
		if i.judged.Campaign, err = plan.Bind(i.Columns); err != nil {
			return &columns.UsageError{Input: i.Name, Msg: err.Error()}
		}
	}
	return nil
}

// Close closes all inputs.
func (in *Inputs) Close() error {
	var errs []error
	for _, i := range in.List {
		errs = append(errs, i.Close())
	}
	return errors.Join(errs...)
}

// unite collects the columns of all inputs by name and finds each in each input. If some
// input has records, an input without any gets no columns: its made-up column would change
// the columns of the rejects, and their raw lines could not be split again.
func (in *Inputs) unite() {
	if slices.ContainsFunc(in.List, func(i *Input) bool { return !i.Blank }) {
		for _, i := range in.List {
			if i.Blank {
				i.Columns, i.URLs = nil, nil
			}
		}
	}
	for _, i := range in.List {
		in.Add(i.Columns, i.IsCarried)
	}
	for _, i := range in.List {
		i.Among = in.Names
		i.Layout = in.Find(&i.Table)
	}
}

// paramRoles are the roles of the parameters of link rules.
var paramRoles = [rules.ColumnCount]profile.Role{
	rules.ExpiresAt: profile.Expires, rules.MaxUses: profile.MaxUses, rules.LinkType: profile.LinkType, rules.OwnerID: profile.Owner, rules.Ref: profile.Ref,
}

// findParams finds the columns of the parameters.
func (i *Input) findParams() (columns [rules.ColumnCount]int) {
	for n, role := range paramRoles {
		column, ok := i.Params[role]
		if !ok {
			column = -1
		}
		columns[n] = column
	}
	return columns
}

// carriedParams says which of the carried columns have parameters, other than references.
func (in *Inputs) carriedParams() []bool {
	are := make([]bool, len(in.Carried))
	for _, i := range in.List {
		for n, c := range i.Layout.Carried {
			are[n] = are[n] || c >= 0 && slices.Contains(i.judged.Params[:rules.Ref], c)
		}
	}
	return are
}

// findAlong finds what goes along with the links of each input.
func (in *Inputs) findAlong(opts *source.Options, attrs string) error {
	roles, names, err := along.Parse(attrs)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, i := range in.List {
		if i.Along, err = along.Find(&i.Table, i.Layout.Carried, roles, names, found); err != nil {
			return err
		}
		i.judged.Hygiene = i.Along.Hygiene()
	}
	for _, name := range names {
		if !found[name] {
			return &columns.UsageError{Input: in.List[0].Name, Msg: fmt.Sprintf("there is no column %q for Config.Attrs", name)}
		}
	}
	return nil
}

// HasAttrs reports whether something goes along with the links of some input.
func (in *Inputs) HasAttrs() bool {
	return slices.ContainsFunc(in.List, func(i *Input) bool { return len(i.Along.Columns()) > 0 })
}

// MayExpire reports whether some input tells when links expire.
func (in *Inputs) MayExpire() bool {
	return slices.ContainsFunc(in.List, func(i *Input) bool { return len(i.Roles[profile.Expires]) > 0 })
}

// RowsRead returns how many rows were read: records that are not blank.
func (in *Inputs) RowsRead() (n int64) {
	for _, i := range in.List {
		n += i.Rows()
	}
	return n
}

// BlankRows returns how many blank records were read.
func (in *Inputs) BlankRows() (n int64) {
	for _, i := range in.List {
		n += i.BlankRows()
	}
	return n
}

// Rejects reports whether all inputs are rejects of an earlier run.
func (in *Inputs) Rejects() bool {
	return !slices.ContainsFunc(in.List, func(i *Input) bool { return i.Format != "rejects" })
}

// Manifest describes the inputs as far as they are read.
func (in *Inputs) Manifest() []manifest.Input {
	var list []manifest.Input
	for _, i := range in.List {
		m := manifest.Input{
			Name: manifest.Text(i.Name), Format: i.Format, Compression: i.Compression,
			Records: i.Records(), BlankRows: i.BlankRows(), Size: i.Size(),
		}
		if i.Dialect != nil {
			d := manifest.Dialect(*i.Dialect)
			m.Dialect = &d
		}
		for _, name := range i.Columns {
			m.Columns = append(m.Columns, manifest.Text(name))
		}
		for _, c := range i.URLs {
			m.URLColumns = append(m.URLColumns, m.Columns[c])
		}
		if i.Workspace >= 0 {
			m.WorkspaceColumn = &m.Columns[i.Workspace]
		}
		m.Profile = i.Profile
		if i.Code >= 0 {
			m.CodeColumn = &m.Columns[i.Code]
		}
		if given, _ := i.Choice().GivenCodes(); len(given) > 1 {
			for _, c := range i.CodeColumns() {
				m.CodeColumns = append(m.CodeColumns, m.Columns[c])
			}
		}
		if i.Kind >= 0 {
			m.KindColumn = &m.Columns[i.Kind]
		}
		name := func(columns []int) (names manifest.Columns) {
			for _, c := range columns {
				names = append(names, m.Columns[c])
			}
			return names
		}
		for role, columns := range i.Roles {
			if m.Roles == nil {
				m.Roles = map[string]manifest.Columns{}
			}
			m.Roles[string(role)] = name(columns)
		}
		for attribute, columns := range i.Along.Columns() {
			if m.Attrs == nil {
				m.Attrs = map[string]manifest.Columns{}
			}
			m.Attrs[attribute] = name(columns)
		}
		m.LeftOut = name(i.LeftOut)
		switch sum := i.SHA256(); {
		case i.Cut():
			m.RecordsSHA256 = hex.EncodeToString(sum[:])
		case i.begun:
			m.SHA256 = hex.EncodeToString(sum[:])
		}
		list = append(list, m)
	}
	return list
}
