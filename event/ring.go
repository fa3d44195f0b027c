package event

// Kept is how many notices are kept per parent session, and how many snapshots per session: the seed's figure.
const Kept = 100

// Ring keeps the newest values added to it. The zero Ring keeps [Kept] values; it is not safe for concurrent use.
type Ring[T any] struct {
	Max int // values kept; 0 means Kept. It is not changed after the first Add.

	kept []T
	next int // where the next value goes once the ring is full: the oldest one's place
}

// Add takes a value.
func (r *Ring[T]) Add(v T) {
	limit := r.Max
	if limit <= 0 {
		limit = Kept
	}
	if len(r.kept) < limit {
		r.kept = append(r.kept, v)
		return
	}
	r.kept[r.next] = v
	r.next = (r.next + 1) % limit
}

// All returns what is kept, oldest first, as a slice of its own.
func (r *Ring[T]) All() []T {
	all := make([]T, 0, len(r.kept))
	return append(append(all, r.kept[r.next:]...), r.kept[:r.next]...)
}

// Last returns the newest value, to be changed in place until the next Add; nil of an empty ring.
func (r *Ring[T]) Last() *T {
	if len(r.kept) == 0 {
		return nil
	}
	return &r.kept[(r.next+len(r.kept)-1)%len(r.kept)]
}
