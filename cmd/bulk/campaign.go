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

// campaignTopic is the help topic campaigns.
const campaignTopic = `--expand makes several links of each row: a variant for each combination of
parameters, which stand in its URL.
  --expand utm_source=mail,social --expand 'utm_campaign=spring {region}'
Parameters of these names that the URL has are replaced. {region} is the cell of
the row in the column region.

--expand-file is a YAML file that can say more:
  parameters:                    # every combination of these
    utm_campaign: 'spring {region}'
    utm_content: [header, footer]
  sets:                          # values that go together
    mail: {utm_source: newsletter, utm_medium: email}
    social:
      - {utm_source: facebook, utm_medium: [social, paid]}
      - {utm_source: linkedin, utm_medium: social}
  use: '{channel}'               # the sets of a row; without use all
  lower: true                    # values become lower case
  spaces: dash                   # and spaces dashes
  allow:                         # all other values are refused
    utm_medium: [email, social, paid]
    utm_campaign: {pattern: '[a-z0-9-]{3,40}'}

A row whose cells make no good values is rejected as a whole, as bad_campaign.
The mapping shows the number of the variant, the URL of the input and a column
for each parameter. The counts are of variants; --limit, --expect-rows and
--max-rejects count rows of the inputs. bulk preview shows what comes of it.`

// campaignText has the flags of a campaign.
type campaignText struct {
	parameters []string
	file       string
	most       int64
}

// flags defines the flags of a campaign.
func (t *campaignText) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&t.parameters, "expand", nil, "a link of each row for each value: `NAME=VALUE`")
	f.StringVar(&t.file, "expand-file", "", "YAML `FILE` of what links to make of each row")
	f.Int64Var(&t.most, "max-expand", campaign.DefaultMost, "most combinations of a row: `N`")
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
