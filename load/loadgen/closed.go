package loadgen

// closedLoop starts the clients. Client c of k sends requests c, c+k, c+2k, …,
// which divides the requests evenly and gives the remainder to the first clients.
func (r *run) closedLoop() {
	c := r.cfg.Closed
	for first := range uint64(c.Clients) {
		if c.Requests > 0 && first >= c.Requests {
			break
		}
		rec := r.newRecorder()
		r.spawn(func() {
			for n := first; c.Requests == 0 || n < c.Requests; n += uint64(c.Clients) {
				if c.Duration > 0 && r.now() >= c.Duration {
					return
				}
				if r.sending.Err() != nil {
					r.stopped.Store(true)
					return
				}
				r.send(rec, n, -1)
			}
		})
	}
}
