-- +goose Up

-- One row for each access. Package audit says what the hash is taken over; nothing here
-- is ever updated.
CREATE TABLE audit_records (
	sequence   INTEGER PRIMARY KEY,
	time       INTEGER NOT NULL, -- microseconds since 1970 UTC
	request_id TEXT NOT NULL,
	subject    TEXT NOT NULL,
	role       TEXT NOT NULL,
	action     TEXT NOT NULL,
	resource   TEXT NOT NULL,
	patients   TEXT NOT NULL,    -- ids, parted by commas
	more       INTEGER NOT NULL,
	outcome    TEXT NOT NULL,
	status     INTEGER NOT NULL,
	route      TEXT NOT NULL,
	unread     INTEGER NOT NULL,
	lost       INTEGER NOT NULL,
	hash       BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- Where the chain ends. There is no row before the first record.
CREATE TABLE audit_head (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	sequence INTEGER NOT NULL,
	hash     BLOB NOT NULL CHECK (length(hash) = 32),
	seal     BLOB NOT NULL CHECK (length(seal) = 32)
) STRICT;

-- +goose Down
DROP TABLE audit_head;
DROP TABLE audit_records;
