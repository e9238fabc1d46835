-- +goose Up

-- The addresses at which clinicians are reached, in lower case; one may be
-- shared by many. Those of clinicians who are there already are the ones that
-- Clinician.Mailboxes gives.
CREATE TABLE mailboxes (
	email     TEXT NOT NULL,
	clinician INTEGER NOT NULL REFERENCES clinicians (id),
	PRIMARY KEY (email, clinician)
) WITHOUT ROWID;
INSERT INTO mailboxes
	SELECT lower(email), id FROM clinicians
	UNION
	SELECT lower(replace(specialty, ' ', '-') || substr(email, instr(email, '@'))), id FROM clinicians;

-- +goose Down
DROP TABLE mailboxes;
