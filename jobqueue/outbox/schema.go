package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Dialect is the SQL of a database: SQLite or PostgreSQL.
type Dialect uint8

const (
	SQLite     Dialect = iota + 1 // 3.24 or newer
	PostgreSQL                    // 10 or newer
)

// words are the parts of statements that depend on the dialect.
func (d Dialect) words() (id, bytes, now string) {
	if d == PostgreSQL {
		return "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "bytea", "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
	}
	// Without AUTOINCREMENT SQLite uses the number of a removed row again: a relay that stalled
	// before its DELETE would remove a row that was never sent.
	return "integer PRIMARY KEY AUTOINCREMENT", "blob", "((julianday('now') - 2440587.5) * 86400.0)"
}

const schema = `CREATE TABLE IF NOT EXISTS {table} (
	id       {id},
	created  double precision NOT NULL DEFAULT ({now}), -- seconds since 1970
	key      text NOT NULL,
	priority smallint NOT NULL,
	delay    bigint NOT NULL, -- nanoseconds
	header   text NOT NULL,   -- JSON
	payload  {bytes} NOT NULL
);
CREATE TABLE IF NOT EXISTS {table}_refused (
	id       bigint NOT NULL PRIMARY KEY,
	created  double precision NOT NULL,
	reason   text NOT NULL,
	key      text NOT NULL,
	priority smallint NOT NULL,
	delay    bigint NOT NULL,
	header   text NOT NULL,
	payload  {bytes} NOT NULL
);
CREATE TABLE IF NOT EXISTS {table}_lease (
	one    integer NOT NULL PRIMARY KEY CHECK (one = 1),
	holder text NOT NULL,
	until  double precision NOT NULL
);
`

const defaultTable = "spillway_outbox"

var validTable = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,50}\.)?[A-Za-z_][A-Za-z0-9_]{0,50}$`)

// Schema returns the statements that create the tables of an outbox where they are missing: table,
// which is Config.Table, and the same name with _refused and _lease. Put the statements into a
// migration, or hand them to ExecContext when the process starts.
func Schema(d Dialect, table string) (string, error) {
	table = cmp.Or(table, defaultTable)
	if err := checkTable(d, table); err != nil {
		return "", err
	}
	return d.render(table, schema), nil
}

func checkTable(d Dialect, table string) (err error) {
	if d != SQLite && d != PostgreSQL {
		err = fmt.Errorf("outbox: the dialect is %d: use SQLite or PostgreSQL", d)
	}
	if !validTable.MatchString(table) {
		err = errors.Join(err, fmt.Errorf("outbox: Table is %.60q: use at most 50 letters, digits and _, after a schema and a dot if need be", table))
	}
	return err
}

// render fills in a statement.
func (d Dialect) render(table, statement string) string {
	id, bytes, now := d.words()
	parameter := "$"
	if d == SQLite {
		parameter = "?"
	}
	return strings.NewReplacer("{table}", table, "{id}", id, "{bytes}", bytes, "{now}", now, "$", parameter).Replace(statement)
}

// statements are the statements of one table. Their parameters are numbered.
type statements struct {
	render func(statement string) string

	waiting, read, acquire, release, depth          string
	copyRefused, listRefused, copyBack, dropRefused string
}

func (d Dialect) statements(table string) statements {
	render := func(statement string) string { return d.render(table, statement) }
	return statements{
		render: render,

		waiting: render(`SELECT EXISTS (SELECT 1 FROM {table})`),
		read: render(`SELECT id, {now} - created, key, header, payload, priority, delay FROM {table} ORDER BY id LIMIT ` +
			strconv.Itoa(batchRows)),
		// A lease that ends later than one taken now would is of a clock that was set back.
		acquire: render(`INSERT INTO {table}_lease AS l (one, holder, until) VALUES (1, $1, {now} + CAST($2 AS double precision))
			ON CONFLICT (one) DO UPDATE SET holder = excluded.holder, until = excluded.until
			WHERE l.holder = excluded.holder OR l.until < {now} OR l.until > excluded.until + 1`),
		release: render(`UPDATE {table}_lease SET until = 0 WHERE holder = $1`),
		depth: render(`SELECT (SELECT count(*) FROM {table}), (SELECT coalesce(max({now} - created), 0) FROM {table}),
			(SELECT count(*) FROM {table}_refused)`),

		copyRefused: render(`INSERT INTO {table}_refused (id, created, reason, key, priority, delay, header, payload)
			SELECT id, created, CAST($2 AS text), key, priority, delay, header, payload FROM {table} WHERE id = $1
			ON CONFLICT (id) DO NOTHING`),
		listRefused: render(`SELECT id, reason, {now} - created, key, header, payload, priority, delay FROM {table}_refused ORDER BY id LIMIT $1`),
		copyBack: render(`INSERT INTO {table} (created, key, priority, delay, header, payload)
			SELECT created, key, priority, delay, header, payload FROM {table}_refused WHERE id = $1`),
		dropRefused: render(`DELETE FROM {table}_refused WHERE id = $1`),
	}
}

// insert stores rows, which are lists of parameters.
func (s statements) insert(rows string) string {
	return s.render(`INSERT INTO {table} (key, priority, delay, header, payload) VALUES ` + rows)
}

// remove deletes rows. The numbers are no parameters: statements of many lengths would fill a
// driver's cache of prepared statements.
func (s statements) remove(ids []int64) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strconv.FormatInt(id, 10)
	}
	return s.render(`DELETE FROM {table} WHERE id IN (` + strings.Join(list, ",") + `)`)
}
