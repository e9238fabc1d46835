-- +goose Up

-- One row for each access. Package audit says what the hash is taken over; nothing here
-- is ever updated.
CREATE TABLE audit_records (
	sequence   bigint PRIMARY KEY,
	time       timestamptz NOT NULL,
	request_id text NOT NULL,
	subject    text NOT NULL,
	role       text NOT NULL,
	action     text NOT NULL,
	resource   text NOT NULL,
	patients   text NOT NULL, -- ids, parted by commas
	more       bigint NOT NULL,
	outcome    text NOT NULL,
	status     bigint NOT NULL,
	route      text NOT NULL,
	unread     boolean NOT NULL,
	lost       bigint NOT NULL,
	hash       bytea NOT NULL CHECK (length(hash) = 32)
);

-- Where the chain ends. Whoever appends locks this row.
CREATE TABLE audit_head (
	id       integer PRIMARY KEY CHECK (id = 1),
	sequence bigint NOT NULL,
	hash     bytea NOT NULL CHECK (length(hash) = 32),
	seal     bytea NOT NULL CHECK (length(seal) = 32)
);
INSERT INTO audit_head VALUES (1, 0, decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex'));

-- +goose Down
DROP TABLE audit_head;
DROP TABLE audit_records;
