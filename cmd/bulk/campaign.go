package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/spf13/pflag"
)

// campaignHelp is a part of the help of bulk run and bulk preview.
const campaignHelp = `Campaigns: --expand makes several links of each row, one for each combination
of parameters:
  --expand utm_source=mail,social --expand 'utm_campaign=spring {region}'
Each combination is a variant: the row with these parameters in its URL, in
place of those that it had. {region} is the cell of the row in the column
region. --expand-file is a YAML file that says more: sets of values that belong
together, which sets a row gets (use), one spelling (lower, spaces), and the
values that are allowed (allow). A row that makes no good variants is rejected
as a whole. --limit and --max-rejects count rows of the inputs.
`

// campaignText has the flags of a campaign.
type campaignText struct {
	parameters []string
	file       string
	most       int64
}

// flags defines the flags of a campaign.
func (t *campaignText) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&t.parameters, "expand", nil, "a link of each row for each value: `NAME=VALUE,…`")
	f.StringVar(&t.file, "expand-file", "", "YAML `FILE` of what links to make of each row")
	f.Int64Var(&t.most, "max-expand", campaign.DefaultMost, "most combinations, `N` up to 1000000")
}

// parse reads them into a configuration.
func (t *campaignText) parse(c *pipeline.Config) error {
	if len(t.parameters) == 0 && t.file == "" {
		if t.most != campaign.DefaultMost {
			return errors.New("--max-expand goes with --expand or --expand-file")
		}
		return nil
	}
	var text []byte
	if t.file != "" {
		f, err := os.Open(t.file)
		if err != nil {
			return fmt.Errorf("--expand-file: %w", err)
		}
		text, err = io.ReadAll(io.LimitReader(f, campaign.MaxFile+1))
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("--expand-file: %w", err)
		}
	}
	var err error
	c.Campaign, err = campaign.Parse(t.parameters, t.file, text, t.most)
	return err
}
