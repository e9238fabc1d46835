-- +goose Up

-- One row for each commit: its records, as a JSON array that package audit describes.
-- Nothing here is ever updated.
CREATE TABLE audit_blocks (
	first   bigint PRIMARY KEY, -- number of the first record
	records text NOT NULL
);
ALTER TABLE audit_blocks ALTER COLUMN records SET STORAGE EXTERNAL; -- to compress it costs more than to write it

-- A record of before is a block of its own. Its hash stays.
INSERT INTO audit_blocks
SELECT sequence, '[{"n":' || sequence || ',"time":' || (extract(epoch FROM time) * 1000000)::bigint || ',"request_id":' || to_json(request_id) || ',"subject":' || to_json(subject)
	|| ',"role":' || to_json(role) || ',"action":' || to_json(action) || ',"resource":' || to_json(resource)
	|| ',"patients":[' || CASE patients WHEN '' THEN '' ELSE '"' || replace(patients, ',', '","') || '"' END || '],"more":' || more
	|| ',"outcome":' || to_json(outcome) || ',"status":' || status || ',"route":' || to_json(route)
	|| ',"unread":' || unread || ',"count":' || lost || ',"hash":"' || encode(hash, 'hex') || '"}]'
FROM audit_records;
DROP TABLE audit_records;

-- To search in.
CREATE VIEW audit_records AS
SELECT (r ->> 'n')::bigint AS sequence, timestamptz 'epoch' + (r ->> 'time')::bigint * interval '1 microsecond' AS time, r ->> 'request_id' AS request_id,
	r ->> 'subject' AS subject, r ->> 'role' AS role, r ->> 'action' AS action, r ->> 'resource' AS resource, r ->> 'patients' AS patients,
	(r ->> 'more')::bigint AS more, r ->> 'outcome' AS outcome, (r ->> 'status')::bigint AS status, r ->> 'route' AS route,
	(r ->> 'unread')::boolean AS unread, (r ->> 'count')::bigint AS count, r ->> 'source' AS source, r ->> 'hash' AS hash
FROM audit_blocks, json_array_elements(records::json) AS r;
