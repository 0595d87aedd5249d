package hub

import (
	"cmp"
	"slices"
	"strconv"
)

// A span is the numbers from..to, both included.
type span struct{ from, to uint64 }

func (s span) count() uint64 { return s.to - s.from + 1 }

// String is the span as confirmations and reports write it: 101 or 101-103.
func (s span) String() string {
	if s.from == s.to {
		return strconv.FormatUint(s.from, 10)
	}
	return strconv.FormatUint(s.from, 10) + "-" + strconv.FormatUint(s.to, 10)
}

// ranges is a set of numbers: spans in order that neither overlap nor touch.
// Its size is that of its holes, not of its numbers.
type ranges []span

// find is the index of the first span that ends at n or later.
func (r ranges) find(n uint64) int {
	i, _ := slices.BinarySearchFunc(r, n, func(s span, n uint64) int { return cmp.Compare(s.to, n) })
	return i
}

func (r ranges) has(n uint64) bool {
	i := r.find(n)
	return i < len(r) && r[i].from <= n
}

// add takes from..to into the set; 1 <= from <= to < 1<<63.
func (r *ranges) add(from, to uint64) {
	i := r.find(from - 1) // one that ends just before is continued
	k := i
	for k < len(*r) && (*r)[k].from <= to+1 {
		from, to = min(from, (*r)[k].from), max(to, (*r)[k].to)
		k++
	}
	*r = slices.Replace(*r, i, k, span{from, to})
}

func (r ranges) count() (n uint64) {
	for _, s := range r {
		n += s.count()
	}
	return n
}

// without is what of from..to is not in the set.
func (r ranges) without(from, to uint64) (holes []span) {
	for i := r.find(from); i < len(r) && from <= to && r[i].from <= to; i++ {
		if r[i].from > from {
			holes = append(holes, span{from, r[i].from - 1})
		}
		from = r[i].to + 1
	}
	if from <= to {
		holes = append(holes, span{from, to})
	}
	return holes
}
