// A library of nothing: only its name counts.
