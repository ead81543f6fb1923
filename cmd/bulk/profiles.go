package main

import (
	"encoding/csv"
	"io"
	"strings"

	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/spf13/cobra"
)

func profilesCommand(ui *ui) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List the exports of other link shorteners that bulk knows",
		Long: `A profile says which columns of an export have the URL and the code:
  path(COLUMN)  the code is the path of the short URL in the column, decoded
  trim(COLUMN)  the code is the cell without slashes at its ends
  list(COLUMN)  the cell is a JSON array of further codes of the same link
On a terminal the list is a table, elsewhere it is CSV. LEARNED says from where
a profile is known. Check one that was only documented or told with your file.`,
		Example:           `  bulk profiles`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.NoArgs, "profiles takes flags only"),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return jsonProfiles(ui.stdout)
			}
			if to, ok := ui.stdout.(*shown); ok { // a terminal
				return writeTable(to, terminalWidth(to.Writer), tableOfProfiles())
			}
			return csvProfiles(ui.stdout)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON lines with all columns instead of a table or CSV")
	return cmd
}

func tableOfProfiles() []column {
	table := []column{{title: "NAME"}, {title: "PRODUCT", drop: 2}, {title: "COLUMNS"}, {title: "LEARNED", drop: 1}}
	for _, p := range profile.All() {
		cells := []string{p.Name, p.Product, "url ← " + columnsOf(p.Columns, profile.URL) + ", code ← " + columnsOf(p.Columns, profile.Code), learned(p.Learned)}
		for i, cell := range cells {
			table[i].cells = append(table[i].cells, cell)
		}
	}
	return table
}

func csvProfiles(out io.Writer) error {
	w := csv.NewWriter(out)
	w.Write([]string{"name", "product", "url", "code", "learned"})
	for _, p := range profile.All() {
		w.Write([]string{p.Name, p.Product, columnsOf(p.Columns, profile.URL), columnsOf(p.Columns, profile.Code), learned(p.Learned)})
	}
	w.Flush()
	return w.Error()
}

// A roleColumn is a column that has a role, in JSON.
type roleColumn struct {
	Role     profile.Role `json:"role"`
	Column   string       `json:"column"`
	Personal bool         `json:"personal,omitempty"`
}

func roleColumns(columns []profile.Column) (list []roleColumn) {
	for _, c := range columns {
		list = append(list, roleColumn{c.Role, c.String(), c.Role.Personal()})
	}
	return list
}

func jsonProfiles(out io.Writer) error {
	j := newJSON(out)
	for _, p := range profile.All() {
		if err := j.Encode(struct {
			Name     string            `json:"name"`
			Product  string            `json:"product"`
			Columns  []roleColumn      `json:"columns"`
			Document string            `json:"document,omitempty"`
			Learned  []profile.Learned `json:"learned"`
		}{p.Name, p.Product, roleColumns(p.Columns), p.Document, p.Learned}); err != nil {
			return err
		}
	}
	return nil
}

// columnsOf names the columns of a role; "": there are none.
func columnsOf(columns []profile.Column, role profile.Role) (text string) {
	for _, c := range columns {
		switch {
		case c.Role != role:
			continue
		case text != "" && c.List:
			text += " and "
		case text != "":
			text += " or "
		}
		text += c.String()
	}
	return text
}

func learned(from []profile.Learned) string {
	var words []string
	for _, l := range from {
		words = append(words, string(l))
	}
	return strings.Join(words, ", ")
}
