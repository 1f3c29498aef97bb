// Package crash kills clients and daemons at random points and looks at who
// was hurt. Its length is set by HEDDLE_CRASH_KILLS (50 if unset, 1,000 in
// make crash); the seed is printed, and HEDDLE_CRASH_SEED repeats a run.
package crash
