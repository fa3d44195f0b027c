package store

import (
	"fmt"
	"strings"
)

// partialIndex is an index of some of a table's rows.
type partialIndex struct{ name, table, where string }

// checkPartial compares the size of each partial index with its table. SQLite's own check ensures that all required rows are in it, but
// does not notice others: an old or foreign page would bring back settled rows. Equal numbers exclude that.
func checkPartial(c *conn) error {
	var all []partialIndex
	err := c.each(func(scan func(...any) error) error {
		var p partialIndex
		err := scan(&p.name, &p.table, &p.where)
		all = append(all, p)
		return err
	}, `SELECT i.name, m.tbl_name, m.sql FROM sqlite_schema AS t, pragma_index_list(t.name) AS i, sqlite_schema AS m
		WHERE t.type = 'table' AND i.partial AND m.name = i.name ORDER BY i.name`)
	if err != nil {
		return err
	}
	for _, p := range all {
		_, where, _ := strings.Cut(p.where, " WHERE ")
		count := "SELECT count(*) FROM " + p.table
		is, err := c.number(count + " INDEXED BY " + p.name + " WHERE " + where)
		if err != nil {
			return err
		}
		must, err := c.number(count + " NOT INDEXED WHERE " + where)
		if err != nil {
			return err
		}
		if is != must {
			return errDamaged(c.path, fmt.Sprintf("the index %s has %d entries in the place of %d", p.name, is, must), nil)
		}
	}
	return nil
}
