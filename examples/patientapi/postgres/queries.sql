-- name: Patient :one
SELECT * FROM records WHERE id = @id;

-- name: Patients :many
SELECT r.* FROM records r
JOIN unnest(@ids::int[]) WITH ORDINALITY AS asked (id, place) USING (id)
ORDER BY asked.place;

-- A condition that is not set is decided when the statement is planned, so it must be
-- planned for each search: see Store.Search.
-- name: Search :many
SELECT r.* FROM records r
JOIN (
	SELECT p.id FROM patients p
	WHERE p.id > @after
		AND (sqlc.narg('ids')::int[] IS NULL OR p.id = ANY (sqlc.narg('ids')::int[]))
		AND (@value::text = '' OR p.id = ANY (ARRAY(
			SELECT patient FROM identifiers i WHERE i.value = @value::text AND (@system::text = '' OR i.system = @system::text))))
		AND (@value::text <> '' OR @system::text = ''
			OR EXISTS (SELECT FROM identifiers i WHERE i.patient = p.id AND i.system = @system::text))
		AND (@name::text = ''
			OR lower(p.given COLLATE "C") >= @name::text AND lower(p.given COLLATE "C") < @name_end::text
			OR lower(p.family COLLATE "C") >= @name::text AND lower(p.family COLLATE "C") < @name_end::text)
		AND (sqlc.narg('also_values')::text[] IS NULL OR NOT EXISTS (
			SELECT FROM unnest(sqlc.narg('also_values')::text[]) WITH ORDINALITY AS a (value, place)
			JOIN unnest(sqlc.narg('also_systems')::text[]) WITH ORDINALITY AS b (system, place) USING (place)
			WHERE NOT EXISTS (SELECT FROM identifiers i
				WHERE i.patient = p.id AND (a.value = '' OR i.value = a.value) AND (b.system = '' OR i.system = b.system))))
		AND (sqlc.narg('also_names')::text[] IS NULL OR NOT EXISTS (
			SELECT FROM unnest(sqlc.narg('also_names')::text[]) AS a (name)
			WHERE NOT (starts_with(lower(p.given COLLATE "C"), a.name) OR starts_with(lower(p.family COLLATE "C"), a.name))))
		AND (sqlc.narg('born_first')::date IS NULL OR p.birth_date >= sqlc.narg('born_first')::date)
		AND (sqlc.narg('born_last')::date IS NULL OR p.birth_date <= sqlc.narg('born_last')::date)
		AND (sqlc.narg('updated_since')::timestamptz IS NULL OR p.updated >= sqlc.narg('updated_since')::timestamptz)
		AND (sqlc.narg('updated_before')::timestamptz IS NULL OR p.updated < sqlc.narg('updated_before')::timestamptz)
	ORDER BY p.id
	LIMIT @most
) found USING (id)
ORDER BY r.id;

-- The conditions are those of Search.
-- name: Count :one
SELECT count(*) FROM patients p
WHERE (sqlc.narg('ids')::int[] IS NULL OR p.id = ANY (sqlc.narg('ids')::int[]))
	AND (@value::text = '' OR p.id = ANY (ARRAY(
		SELECT patient FROM identifiers i WHERE i.value = @value::text AND (@system::text = '' OR i.system = @system::text))))
	AND (@value::text <> '' OR @system::text = ''
		OR EXISTS (SELECT FROM identifiers i WHERE i.patient = p.id AND i.system = @system::text))
	AND (@name::text = ''
		OR lower(p.given COLLATE "C") >= @name::text AND lower(p.given COLLATE "C") < @name_end::text
		OR lower(p.family COLLATE "C") >= @name::text AND lower(p.family COLLATE "C") < @name_end::text)
	AND (sqlc.narg('also_values')::text[] IS NULL OR NOT EXISTS (
		SELECT FROM unnest(sqlc.narg('also_values')::text[]) WITH ORDINALITY AS a (value, place)
		JOIN unnest(sqlc.narg('also_systems')::text[]) WITH ORDINALITY AS b (system, place) USING (place)
		WHERE NOT EXISTS (SELECT FROM identifiers i
			WHERE i.patient = p.id AND (a.value = '' OR i.value = a.value) AND (b.system = '' OR i.system = b.system))))
	AND (sqlc.narg('also_names')::text[] IS NULL OR NOT EXISTS (
		SELECT FROM unnest(sqlc.narg('also_names')::text[]) AS a (name)
		WHERE NOT (starts_with(lower(p.given COLLATE "C"), a.name) OR starts_with(lower(p.family COLLATE "C"), a.name))))
	AND (sqlc.narg('born_first')::date IS NULL OR p.birth_date >= sqlc.narg('born_first')::date)
	AND (sqlc.narg('born_last')::date IS NULL OR p.birth_date <= sqlc.narg('born_last')::date)
	AND (sqlc.narg('updated_since')::timestamptz IS NULL OR p.updated >= sqlc.narg('updated_since')::timestamptz)
	AND (sqlc.narg('updated_before')::timestamptz IS NULL OR p.updated < sqlc.narg('updated_before')::timestamptz);

-- name: Observations :many
SELECT number, code, text, value, unit, time, version, updated FROM observations
WHERE patient = @patient
ORDER BY number;

-- name: Clinicians :many
SELECT c.id, c.given, c.family, c.specialty, c.email, o.name
FROM mailboxes m
JOIN clinicians c ON c.id = m.clinician
JOIN organisations o ON o.id = c.organisation
WHERE m.email = @email AND lower(o.name COLLATE "C") = @organisation::text
ORDER BY m.clinician;

-- name: Set :many
SELECT generator, patients, seed FROM patient_set;

-- name: FinishSet :exec
INSERT INTO patient_set (id, generator, patients, seed) VALUES (1, @generator, @patients, @seed);
