package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

const bucketReservations = "reservations"

// Reservation is device time that was promised to a process.
type Reservation struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // tells the process from another of the same number
	Device  string `json:"device"`  // UUID

	Period   time.Duration `json:"period_ns"`
	Budget   time.Duration `json:"budget_ns"`
	Deadline time.Duration `json:"deadline_ns"`
	// MaxBlock bounds the launches of lower classes, 0 = they are not bounded.
	MaxBlock time.Duration `json:"max_block_ns"`
}

// Reservations returns all of them, by pid.
func (s *Store) Reservations() ([]Reservation, error) {
	var all []Reservation
	err := s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketReservations)).ForEach(func(key, value []byte) error {
			var r Reservation
			if err := json.Unmarshal(value, &r); err != nil {
				return errdefs.Errorf(errdefs.Corrupt, "reservation %x: %w", key, err)
			}
			all = append(all, r)
			return nil
		})
	})
	return all, err
}

// KeepReservation keeps one, in place of another of the same process.
func (s *Store) KeepReservation(r Reservation) error {
	value, err := json.Marshal(r)
	if err == nil {
		err = s.db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(bucketReservations)).Put(reservationKey(r.PID), value)
		})
	}
	if err != nil {
		return fmt.Errorf("keep reservation of process %d: %w", r.PID, err)
	}
	return nil
}

// DropReservation forgets that of a process, if there is one.
func (s *Store) DropReservation(pid int) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketReservations)).Delete(reservationKey(pid))
	})
	if err != nil {
		return fmt.Errorf("drop reservation of process %d: %w", pid, err)
	}
	return nil
}

func reservationKey(pid int) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(0, pid)))
}
