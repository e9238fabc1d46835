-- +goose Up

-- Times are seconds since 1970, in UTC.
ALTER TABLE patients ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE patients ADD COLUMN updated INTEGER NOT NULL DEFAULT 0;

-- What a search asks for. The rowid at the end of each index is the patient's number.
CREATE INDEX patients_given ON patients (lower(given));
CREATE INDEX patients_family ON patients (lower(family));
CREATE INDEX patients_birth_date ON patients (birth_date);
CREATE INDEX patients_updated ON patients (updated);
CREATE INDEX identifiers_value ON identifiers (value, system);

CREATE TABLE measures (
	id   INTEGER PRIMARY KEY,
	code TEXT NOT NULL,
	text TEXT NOT NULL,
	unit TEXT NOT NULL
);
CREATE TABLE observations (
	patient INTEGER NOT NULL REFERENCES patients (id),
	number  INTEGER NOT NULL,
	measure INTEGER NOT NULL REFERENCES measures (id),
	value   REAL NOT NULL,
	time    INTEGER NOT NULL,
	version INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	PRIMARY KEY (patient, number)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE observations;
DROP TABLE measures;
DROP INDEX identifiers_value;
DROP INDEX patients_updated;
DROP INDEX patients_birth_date;
DROP INDEX patients_family;
DROP INDEX patients_given;
ALTER TABLE patients DROP COLUMN updated;
ALTER TABLE patients DROP COLUMN version;
