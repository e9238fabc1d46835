-- +goose Up
CREATE TABLE organisations (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL
);
CREATE TABLE clinicians (
	id           INTEGER PRIMARY KEY,
	given        TEXT NOT NULL,
	family       TEXT NOT NULL,
	specialty    TEXT NOT NULL,
	email        TEXT NOT NULL,
	organisation INTEGER NOT NULL REFERENCES organisations (id)
);
CREATE TABLE insurers (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL
);
CREATE TABLE patients (
	id         INTEGER PRIMARY KEY,
	given      TEXT NOT NULL,
	family     TEXT NOT NULL,
	birth_date TEXT NOT NULL,
	gender     TEXT NOT NULL,
	blood_type TEXT NOT NULL,
	phone      TEXT NOT NULL,
	street     TEXT NOT NULL,
	city       TEXT NOT NULL,
	postcode   TEXT NOT NULL,
	physician  INTEGER NOT NULL REFERENCES clinicians (id),
	insurer    INTEGER NOT NULL REFERENCES insurers (id),
	policy     TEXT NOT NULL
);

-- What a patient has many of lies together, in order: a lookup reads one range
-- of each table.
CREATE TABLE identifiers (
	patient INTEGER NOT NULL REFERENCES patients (id),
	seq     INTEGER NOT NULL,
	system  TEXT NOT NULL,
	value   TEXT NOT NULL,
	PRIMARY KEY (patient, seq)
) WITHOUT ROWID;
CREATE TABLE diagnoses (
	patient INTEGER NOT NULL REFERENCES patients (id),
	seq     INTEGER NOT NULL,
	code    TEXT NOT NULL,
	text    TEXT NOT NULL,
	since   TEXT NOT NULL,
	PRIMARY KEY (patient, seq)
) WITHOUT ROWID;
CREATE TABLE medications (
	patient INTEGER NOT NULL REFERENCES patients (id),
	seq     INTEGER NOT NULL,
	name    TEXT NOT NULL,
	dose    TEXT NOT NULL,
	since   TEXT NOT NULL,
	PRIMARY KEY (patient, seq)
) WITHOUT ROWID;
CREATE TABLE allergies (
	patient   INTEGER NOT NULL REFERENCES patients (id),
	seq       INTEGER NOT NULL,
	substance TEXT NOT NULL,
	reaction  TEXT NOT NULL,
	severity  TEXT NOT NULL,
	PRIMARY KEY (patient, seq)
) WITHOUT ROWID;
CREATE TABLE visits (
	patient   INTEGER NOT NULL REFERENCES patients (id),
	seq       INTEGER NOT NULL,
	date      TEXT NOT NULL,
	reason    TEXT NOT NULL,
	clinician INTEGER NOT NULL REFERENCES clinicians (id),
	PRIMARY KEY (patient, seq)
) WITHOUT ROWID;

-- Which set of people this is. The row is written last, in the same
-- transaction: without it there is nobody.
CREATE TABLE patient_set (
	id        INTEGER PRIMARY KEY CHECK (id = 1),
	generator INTEGER NOT NULL,
	patients  INTEGER NOT NULL,
	seed      TEXT NOT NULL
);

-- +goose Down
DROP TABLE patient_set;
DROP TABLE visits;
DROP TABLE allergies;
DROP TABLE medications;
DROP TABLE diagnoses;
DROP TABLE identifiers;
DROP TABLE patients;
DROP TABLE insurers;
DROP TABLE clinicians;
DROP TABLE organisations;
