package sqlite

import (
	"context"

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
	s.ongoing.Enter()
	defer s.ongoing.Leave()
	rows, err := s.clinicians.QueryContext(ctx, q.Email, q.Organisation)
	if err != nil {
		return nil, failed(ctx, err)
	}
	defer rows.Close()
	var found []patientapi.Clinician
	for rows.Next() {
		var n int
		var c patientapi.Clinician
		if err := rows.Scan(&n, &c.Name.Given, &c.Name.Family, &c.Specialty, &c.Email, &c.Organisation); err != nil {
			return nil, failed(ctx, err)
		}
		c.ID = patientapi.ClinicianID(n)
		found = append(found, c)
	}
	if err := rows.Err(); err != nil {
		return nil, failed(ctx, err)
	}
	return found, nil
}
