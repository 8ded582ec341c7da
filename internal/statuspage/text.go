package statuspage

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// textOfTable writes the table in columns.
func textOfTable(v *view) []byte {
	var b bytes.Buffer
	var counts []string
	for _, c := range v.Counts {
		counts = append(counts, c.Count+" "+string(c.State))
	}
	fmt.Fprintf(&b, "%s at %s: %s\n", v.Title, v.At, v.Totals)
	if len(counts) > 0 {
		fmt.Fprintln(&b, strings.Join(counts, ", "))
	}
	if len(v.Rows) > 0 {
		fmt.Fprintln(&b)
		columns := newColumns(&b)
		fmt.Fprintln(columns, "STATE\tRESOURCE\tFOR\tOBJECTS\tEVENT\tHANDLERS\tOWNERS\tWHY")
		for i := range v.Rows {
			r := &v.Rows[i]
			fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.State, r.Name, r.For, r.Objects, r.Event, r.Calls, r.Owners, r.why())
		}
		_ = columns.Flush() // to memory
	}
	if v.Shown != "" {
		fmt.Fprintf(&b, "\n%s\n", v.Shown)
	}
	fmt.Fprintf(&b, "\nOne resource: %s  Filter: ?state=Degraded or ?q=TEXT  JSON: ?format=json\n", v.example())
	return trimmed(b.Bytes())
}

// why returns the reason of r with all details, in one line.
func (r *row) why() string {
	var parts []string
	for _, part := range []string{r.reason(), r.Tried, r.Stuck, r.Notes, r.todo()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// example returns the parameter for one resource in detail.
func (v *view) example() string {
	if len(v.Rows) == 0 {
		return "?resource=pods.v1"
	}
	return v.Rows[0].Link
}

// todo returns the advice.
func (r *row) todo() string {
	if r.Advice == "" {
		return ""
	}
	return "to do: " + r.Advice
}

// reason returns the reason with its message.
func (r *row) reason() string {
	if r.Reason == "" || r.Message == "" {
		return r.Reason + r.Message
	}
	return r.Reason + ": " + r.Message
}

// textOfDetail writes a resource as sentences, then as fields.
func textOfDetail(v *view) []byte {
	var b bytes.Buffer
	d := v.Detail
	fmt.Fprintf(&b, "%s at %s\n\n", v.Title, v.At)
	for _, step := range d.Chain {
		fmt.Fprintln(&b, step.Text)
	}
	for i := range d.Informers {
		fmt.Fprintln(&b)
		d.Informers[i].writeText(&b)
	}
	if d.More != "" {
		fmt.Fprintf(&b, "\n%s\n", d.More)
	}
	fmt.Fprintln(&b)
	writeFacts(&b, d.Discovery)
	return trimmed(b.Bytes())
}

func (i *informerView) writeText(b *bytes.Buffer) {
	writeFacts(b, i.Facts)
	if len(i.Handlers) > 0 {
		fmt.Fprintln(b)
		columns := newColumns(b)
		fmt.Fprintln(columns, "HANDLER\tLEASE\tDELIVERED\tWAITING\tRUNNING\tBEHIND")
		for _, h := range i.Handlers {
			fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\n", h.Handler, h.Lease, h.Delivered, h.Backlog, h.Call, h.Behind)
		}
		_ = columns.Flush() // to memory
	}
	if len(i.Leases) > 0 {
		fmt.Fprintln(b)
		columns := newColumns(b)
		fmt.Fprintln(columns, "OWNER\tLEASES\tFOR")
		for _, o := range i.Leases {
			fmt.Fprintf(columns, "%s\t%s\t%s\n", o.Name, o.Leases, o.Since)
		}
		_ = columns.Flush() // to memory
	}
	if len(i.LeftOut) > 0 {
		fmt.Fprintln(b)
		columns := newColumns(b)
		fmt.Fprintln(columns, "LEFT OUT\tREASON\tINDEX\tFOR\tERROR")
		for _, o := range i.LeftOut {
			fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\n", o.Key, o.Reason, o.Index, o.For, o.Error)
		}
		_ = columns.Flush() // to memory
	}
	if i.More != "" {
		fmt.Fprintf(b, "\n%s\n", i.More)
	}
}

func writeFacts(b *bytes.Buffer, facts []fact) {
	columns := newColumns(b)
	for _, f := range facts {
		fmt.Fprintf(columns, "%s\t%s\n", f.Name, f.Value)
	}
	_ = columns.Flush() // to memory
}

func newColumns(b *bytes.Buffer) *tabwriter.Writer { return tabwriter.NewWriter(b, 0, 0, 2, ' ', 0) }

// trimmed returns text without spaces at the ends of lines.
func trimmed(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		b.Write(bytes.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	return b.Bytes()
}
