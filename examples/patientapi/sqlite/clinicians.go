package sqlite

import (
	"context"
	"database/sql"

	"github.com/spillway-go/spillway/examples/patientapi"
)

const selectClinicians = `SELECT c.id, c.given, c.family, c.specialty, c.email, o.name
	FROM mailboxes m
	JOIN clinicians c ON c.id = m.clinician
	JOIN organisations o ON o.id = c.organisation
	WHERE m.email = ? AND lower(o.name) = ?
	ORDER BY m.clinician`

// Clinicians implements patientapi.Store.
func (s *Store) Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	var found []patientapi.Clinician
	err := s.each(ctx, s.clinicians, func(rows *sql.Rows) error {
		var n int
		var c patientapi.Clinician
		err := rows.Scan(&n, &c.Name.Given, &c.Name.Family, &c.Specialty, &c.Email, &c.Organisation)
		c.ID = patientapi.ClinicianID(n)
		found = append(found, c)
		return err
	}, q.Email, q.Organisation)
	return found, err
}
