-- +goose Up

-- The processes that write and have not left. Each that lives holds a shared advisory lock
-- of its number with every connection; one without was killed.
CREATE TABLE audit_writers (
	writer bigint PRIMARY KEY,
	since  timestamptz NOT NULL DEFAULT now()
);
