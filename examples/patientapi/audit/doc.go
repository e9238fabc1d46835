// Package audit keeps a record of every access: who asked, for what, about whom, and
// what became of it. A Writer puts records into a Storage, many with one commit, and
// Verify reads them all.
//
// # The chain
//
// Records are numbered from 1 and chained by their hashes: the hash of a record is
// taken over its number, the hash before it and what it says. One that was altered,
// removed, inserted or moved no longer fits, and Verify names it.
//
// The hash is SHA-256, or with a Key HMAC-SHA-256, over these bytes:
//
//	1 byte     version of the format: 1 without a Source, 2 with one
//	8 bytes    number of the record
//	32 bytes   hash of the record before; zeros for the first
//	8 bytes    time, in microseconds since 1970 UTC
//	text       request id, subject, role, action, resource, outcome, route
//	4 bytes    how many patients, each as text
//	8 bytes    More
//	8 bytes    Status
//	1 byte     Unread, 0 or 1
//	8 bytes    Count
//	text       Source, unless it is empty
//
// Numbers are big-endian, and signed ones in two's complement. A text is its length in
// bytes, in 4 bytes, and then its bytes. So no two records have the same bytes.
//
// Beside the records a storage has the Head: the last number and hash, sealed.
//
// # The storage
//
// Records are stored as a JSON array for each commit, one to a line, such as
//
//	[{"n":7,"time":1762157700000000,"request_id":"r-1","subject":"dr.weber","role":"clinician","action":"read","resource":"Patient",
//	"patients":["P000042"],"more":0,"outcome":"granted","status":200,"route":"GET /api/v1/patients/{id}","unread":false,"count":0,"hash":"…"}]
//
// without the line break within the record. Its time is as above, and its source comes before its hash unless it is
// empty. Of what JSON allows exactly this is accepted, without spaces, with these names in
// this order, and with no character escaped that need not be, so that all readers see the
// same. In both databases the view audit_records has a row for each record, to search in.
//
// A Writer looks at the end of the chain before it puts something behind it, and refuses
// with ErrTip if that is not as it was left. What was done to older records Verify finds.
//
// # What the chain cannot show
//
// Without a Key anybody who may write to the storage can also compute hashes, and so
// replace the whole chain by another one. With a Key, that is kept where the storage
// is not, this needs the key.
//
// What could not be recorded is counted by a Gap once it can. A process that is killed
// before takes the count along; where the storage is a Roll, the next one records that it
// was, as Unclean.
//
// Records removed from the end leave a shorter chain, which is whole in itself. The
// head tells, and with a Key it cannot be made for the shorter chain. But an earlier
// copy of the whole storage fits its own head. Against that, keep the Head that Verify
// returns in another place, and give it to Verify the next time: a chain that no longer
// has that record is found.
package audit
