-- +goose Up

-- One row for each commit: its records, as a JSON array that package audit describes.
-- Nothing here is ever updated.
CREATE TABLE audit_blocks (
	first   INTEGER PRIMARY KEY, -- number of the first record
	records TEXT NOT NULL
) STRICT;

-- A record of before is a block of its own. Its hash stays.
INSERT INTO audit_blocks
SELECT sequence, '[{"n":' || sequence || ',"time":' || time || ',"request_id":' || json_quote(request_id) || ',"subject":' || json_quote(subject)
	|| ',"role":' || json_quote(role) || ',"action":' || json_quote(action) || ',"resource":' || json_quote(resource)
	|| ',"patients":[' || CASE patients WHEN '' THEN '' ELSE '"' || replace(patients, ',', '","') || '"' END || '],"more":' || more
	|| ',"outcome":' || json_quote(outcome) || ',"status":' || status || ',"route":' || json_quote(route)
	|| ',"unread":' || iif(unread, 'true', 'false') || ',"count":' || lost || ',"hash":"' || lower(hex(hash)) || '"}]'
FROM audit_records;
DROP TABLE audit_records;

-- To search in.
CREATE VIEW audit_records AS
SELECT value ->> 'n' AS sequence, value ->> 'time' AS time, value ->> 'request_id' AS request_id, value ->> 'subject' AS subject, value ->> 'role' AS role,
	value ->> 'action' AS action, value ->> 'resource' AS resource, value ->> 'patients' AS patients, value ->> 'more' AS more, value ->> 'outcome' AS outcome,
	value ->> 'status' AS status, value ->> 'route' AS route, value ->> 'unread' AS unread, value ->> 'count' AS count, value ->> 'source' AS source, value ->> 'hash' AS hash
FROM audit_blocks, json_each(audit_blocks.records);
