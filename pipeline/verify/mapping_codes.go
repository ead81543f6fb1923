package verify

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/outcome"
)

// A codeChecker checks codes and salts of links of the mapping by themselves, for one goroutine.
type codeChecker struct {
	findings *findings
	run      *run
	codes    *coder
	counter  codegen.Counter // nil: not needed yet
	code     []byte
}

func newCodeChecker(run *run, codes *coder, found *findings) *codeChecker {
	return &codeChecker{findings: found, run: run, codes: codes}
}

// check checks code and salt of a link, which are of these columns. A link that existed before may
// have a code of another length, or one that no salt gives.
func (c *codeChecker) check(r *link, column, saltColumn string) {
	if len(r.code0) > 0 && r.Salt == r.salt0 && bytes.Equal(r.Code, r.code0) {
		return
	}
	if kept := c.run.codes.asKept(r.Code); !bytes.Equal(kept, r.Code) {
		r.at(c.findings, c.run.mapping).wrong(BadCode, column, string(kept), string(r.Code))
		return
	}
	if c.run.coding.spec.Counts {
		c.checkNumbered(r, column, saltColumn)
		return
	}
	if r.Outcome == outcome.Created {
		c.checkWord(r, column)
	}
	if !c.run.coding.known {
		c.checkBelieved(r, column, saltColumn)
		return
	}
	salt := c.run.coding.maker.SaltOf(r.Canonical, slices.Concat(r.Workspace, r.parts), r.Code, c.run.mostSalt)
	switch created := r.Outcome == outcome.Created; {
	case created && (r.Salt < 0 || r.Salt > c.run.retries):
		r.at(c.findings, c.run.mapping).wrong(BadSalt, saltColumn, "0 to "+strconv.Itoa(c.run.retries), saltText(r.Salt))
	case created && len(r.Code) != c.run.coding.length, salt < 0 && r.Salt >= 0:
		like := r.Code
		if created {
			like = nil
		}
		c.code = c.codes.appendCode(c.code[:0], like, r.Canonical, r.Workspace, r.parts, min(r.Salt, c.run.mostSalt))
		r.at(c.findings, c.run.mapping).wrong(BadCode, column, string(c.code), string(r.Code))
	case saltColumn == "link_salt" && r.Salt < 0 && c.run.ruling.ruled: // a row that has the code may be rejected
	case salt != r.Salt:
		r.at(c.findings, c.run.mapping).wrong(BadSalt, saltColumn, saltText(salt), saltText(r.Salt))
	}
}

// checkNumbered checks code and number of a link. Only one that the run made has a number.
func (c *codeChecker) checkNumbered(r *link, column, saltColumn string) {
	here, number := c.findings.fault(c.run.mapping, r.Number), r.Row.Number
	if saltColumn == "link_salt" && r.Salt >= 0 { // the column salt is checked with the row
		here.wrong(BadSalt, saltColumn, "", saltText(r.Salt))
	}
	switch created := r.Outcome == outcome.Created; {
	case !created && number > 0:
		here.wrong(BadNumber, "number", "", fmt.Sprint(number))
	case !created:
	case number == 0:
		here.wrong(BadNumber, "number", "that of its code", "")
	case !c.run.coding.known && !c.run.coding.isDigits(r.Code):
		here.wrong(BadCode, column, c.run.coding.digitsText(), string(r.Code))
	case c.run.coding.known:
		if c.counter == nil {
			c.counter = c.run.newCounter()
		}
		if c.code = c.counter.AppendCode(c.code[:0], uint64(number)); !bytes.Equal(c.code, r.Code) {
			here.wrong(BadCode, column, string(c.code), string(r.Code))
		}
	}
	if r.Outcome == outcome.Created {
		c.checkWord(r, column)
	}
}

// checkWord checks that a code which the run made has none of the words.
func (c *codeChecker) checkWord(r *link, column string) {
	if word := c.run.coding.maker.Word(r.Code); word != "" {
		r.at(c.findings, c.run.mapping).wrong(Blocked, column, "no word of the blocklist, such as "+word, string(r.Code))
	}
}

// checkBelieved checks code and salt of a link as far as that can be done without the secret.
func (c *codeChecker) checkBelieved(r *link, column, saltColumn string) {
	here, most := r.at(c.findings, c.run.mapping), c.run.mostSalt
	created := r.Outcome == outcome.Created
	if created {
		most = c.run.retries
	}
	if r.Salt > most || created && r.Salt < 0 {
		here.wrong(BadSalt, saltColumn, fmt.Sprint("0 to ", most), saltText(r.Salt))
	}
	if created && !c.run.coding.isDigits(r.Code) {
		here.wrong(BadCode, column, c.run.coding.digitsText(), string(r.Code))
	}
}
