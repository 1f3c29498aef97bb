package mig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

// phase is where a transaction is.
type phase string

const (
	begun       phase = "begun"       // before anything is done
	intended    phase = "intended"    // a step is about to be done
	undoing     phase = "undoing"     // it failed, and goes back
	committed   phase = "committed"   // the device is as wanted
	undone      phase = "undone"      // the device is as it was
	quarantined phase = "quarantined" // neither, and nothing more is done to it
)

// ended reports whether nothing of a transaction is left to do.
func (p phase) ended() bool { return p == committed || p == undone || p == quarantined }

// record is one line of the journal. Fields that a later version adds are passed over.
type record struct {
	Transaction uint64 `json:"txn"`
	Boot        string `json:"boot"` // instances live as long as the OS kernel runs
	Device      string `json:"device"`
	Phase       phase  `json:"phase"`
	Reason      string `json:"reason,omitempty"`
	// Ours are the instances of ours that are there, after an end, or were there, at the beginning.
	Ours []owned `json:"ours,omitempty"`
	Want []place `json:"want,omitempty"` // of ours, at the beginning
	Step *place  `json:"step,omitempty"` // what is created, if that is intended
}

// place is an instance that may not be there yet.
type place struct {
	Profile int `json:"profile"`
	Start   int `json:"start"`
}

// owned is an instance of ours. Its number is used again by others once it is gone, so all of it counts.
type owned struct {
	place
	ID      int      `json:"id"`
	Compute []string `json:"compute,omitempty"` // UUIDs of its MIG devices
}

// journal is a file of records, each on the disk before what it speaks of is done.
type journal struct {
	path string
	file *os.File
}

// openJournal reads what is there, up to the first record that was not written whole: nothing that it
// speaks of has been done. Records behind such a one mean damage.
func openJournal(path string) (*journal, []record, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open journal: %w", err)
	}
	records, good, err := readRecords(file)
	if err == nil {
		err = file.Truncate(good)
	}
	if err == nil {
		_, err = file.Seek(good, io.SeekStart)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read journal %s: %w", path, err), file.Close())
	}
	return &journal{path, file}, records, nil
}

// readRecords returns the whole records and where they end.
func readRecords(r io.Reader) (records []record, good int64, err error) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return records, good, nil // a line without an end was cut off
		}
		if err != nil {
			return nil, 0, err
		}
		one, ok := parseRecord(line)
		if !ok {
			if _, err := in.ReadByte(); errors.Is(err, io.EOF) {
				return records, good, nil
			}
			return nil, 0, errdefs.Errorf(errdefs.Corrupt, "record %d is damaged", len(records)+1)
		}
		records = append(records, one)
		good += int64(len(line))
	}
}

// A line is its checksum in eight hexadecimal digits, a space, and JSON.
func parseRecord(line []byte) (record, bool) {
	sum, body, ok := bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{' '})
	var one record
	if !ok || string(sum) != checksum(body) || json.Unmarshal(body, &one) != nil {
		return record{}, false
	}
	return one, true
}

func checksum(body []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)) }

// line is a record as it is written.
func (r *record) line() ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return []byte(checksum(body) + " " + string(body) + "\n"), nil
}

// write puts a record on the disk.
func (j *journal) write(r *record) error {
	line, err := r.line()
	if err == nil {
		_, err = j.file.Write(line)
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// shorten leaves only the given records, whole or not at all.
func (j *journal) shorten(records []record) error {
	var all strings.Builder
	for i := range records {
		line, err := records[i].line()
		if err != nil {
			return err
		}
		all.Write(line)
	}
	file, err := os.CreateTemp(filepath.Dir(j.path), filepath.Base(j.path)+"-*")
	if err != nil {
		return fmt.Errorf("shorten journal: %w", err)
	}
	_, err = file.WriteString(all.String())
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(file.Name(), j.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("shorten journal: %w", err), file.Close(), os.Remove(file.Name()))
	}
	old := j.file
	j.file = file
	return old.Close()
}

func (j *journal) close() error { return j.file.Close() }

// ownedOf is an instance as the journal has it.
func ownedOf(in *gpu.GPUInstance) owned {
	o := owned{place: place{in.Profile, in.Placement.Start}, ID: in.ID}
	for _, c := range in.Compute {
		o.Compute = append(o.Compute, c.UUID.String())
	}
	return o
}
