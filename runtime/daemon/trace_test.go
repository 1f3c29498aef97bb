package daemon

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/heddle-project/heddle/runtime/abi"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu/gputest"
	"github.com/heddle-project/heddle/runtime/wire"
)

// What a client writes into its segment arrives in the words of the API.
func TestATraceTellsWhatClientsWrote(t *testing.T) {
	l := load(t, shortDir(t), "")
	r := start(t, options(l))
	segment, data := clientSegment(t)
	conn, welcome := attachWith(t, l, wire.Hello{PriorityHint: abi.ClassLow, Name: "train"}, segment)
	uuid := gputest.H100(0).UUID
	if err := conn.WriteMessage(wire.Device{Slot: 0, UUID: wire.UUID(uuid)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client has its device", func() bool {
		list, err := r.Clients(t.Context(), nil)
		return err == nil && len(list) == 1 && len(list[0].GetDevices()) == 1
	})
	var (
		got   []*heddlev1.RecordTraceResponse
		once  sync.Once
		begun uint64
	)
	enough := errors.New("enough")
	count := 0
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := r.RecordTrace(ctx, &heddlev1.RecordTraceRequest{Clients: []uint64{welcome.ClientID}, Devices: []string{uuid.GPUString()}},
		func(message *heddlev1.RecordTraceResponse) error {
			if s := message.GetStart(); s != nil {
				begun = s.GetClockNs()
			}
			if len(message.GetClients()) > 0 {
				once.Do(func() { writeTrace(t, data, begun) })
			}
			got = append(got, message)
			if count += len(message.GetEvents()); count == 3 {
				return enough
			}
			return nil
		})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	all := &heddlev1.RecordTraceResponse{}
	for _, m := range got {
		all.Devices = append(all.Devices, m.GetDevices()...)
		all.Kernels = append(all.Kernels, m.GetKernels()...)
		all.Events = append(all.Events, m.GetEvents()...)
	}
	id := welcome.ClientID
	want := &heddlev1.RecordTraceResponse{
		Devices: []*heddlev1.TraceDevice{{Uuid: uuid.GPUString(), Name: gputest.H100(0).Name}},
		Kernels: []*heddlev1.TraceKernel{{Client: id, Key: 77, Name: "gemm", Grid: []uint32{1, 2, 3}, Block: []uint32{4, 5, 6}, SharedBytes: 7}},
		Events: []*heddlev1.TraceEvent{
			{
				Kind: heddlev1.TraceKind_TRACE_KIND_HOLD, Client: id, TimeNs: begun - 500, DurationNs: 200, PredictedNs: 9, Kernel: 77,
				Reason: heddlev1.TraceReason_TRACE_REASON_WINDOW, Overrun: true, YieldPoint: true,
			},
			{Kind: heddlev1.TraceKind_TRACE_KIND_LAUNCH, Client: id, TimeNs: begun - 300, DurationNs: 20, Kernel: 77, Stream: new(uint32(4)), Measured: true, Graph: true},
			{Kind: heddlev1.TraceKind_TRACE_KIND_GAP, Client: id, TimeNs: begun - 200, DurationNs: 100, Kernel: 77},
		},
	}
	if diff := cmp.Diff(want, all, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := got[0].GetStart(); s.GetVersion() != "test" || time.Since(s.GetTime().AsTime()).Abs() > time.Minute {
		t.Errorf("start: %v", s)
	}
}

func writeTrace(t *testing.T, data []byte, now uint64) {
	t.Helper()
	var seg abi.ClientSegment
	seg.Header.Magic, seg.Header.ABIVersion, seg.Header.Size = abi.MagicClient, abi.ABIVersion, abi.SizeofClientSegment
	k := &seg.Kernels[0]
	k.Sequence, k.Key, k.Grid, k.Block, k.DynamicShared = 1, 77, [3]uint32{1, 2, 3}, [3]uint32{4, 5, 6}, 7
	k.Length = uint32(copy(k.Name[:], "gemm"))
	seg.Trace[0] = abi.TraceRecord{
		Kind: abi.TraceHold, TimeNs: now - 500, DurationNs: 200, GuessNs: 9, Kernel: 77, Stream: 1<<32 - 1,
		Reason: abi.GateHeldWindow, Flags: abi.TraceOverrun | abi.TraceYield,
	}
	seg.Trace[1] = abi.TraceRecord{
		Kind: abi.TraceLaunch, TimeNs: now - 300, DurationNs: 20, Kernel: 77, Stream: 4, Flags: abi.TraceMeasured | abi.TraceGraph,
	}
	seg.Trace[2] = abi.TraceRecord{Kind: abi.TraceGap, TimeNs: now - 200, DurationNs: 100, Kernel: 77, Stream: 1<<32 - 1}
	for i := range 3 {
		seg.Trace[i].Sequence = uint64(i) + 1
	}
	if _, err := binary.Encode(data, binary.NativeEndian, &seg); err != nil {
		t.Error(err)
		return
	}
	// Last: a record that is claimed and not there at the second look counts as lost.
	const process = unsafe.Offsetof(seg.Process)
	binary.NativeEndian.PutUint64(data[process+unsafe.Offsetof(seg.Process.KernelsHead):], 1)
	binary.NativeEndian.PutUint64(data[process+unsafe.Offsetof(seg.Process.TraceHead):], 3)
}

func TestATraceOfNobodyOrForNoTimeIsRefused(t *testing.T) {
	r := start(t, options(load(t, shortDir(t), "")))
	for _, tt := range []struct {
		req  *heddlev1.RecordTraceRequest
		want error
	}{
		{&heddlev1.RecordTraceRequest{Clients: []uint64{4711}}, errdefs.ErrNotFound},
		{&heddlev1.RecordTraceRequest{Devices: []string{"GPU-1"}}, errdefs.ErrInvalid},
		{&heddlev1.RecordTraceRequest{Duration: durationpb.New(0)}, errdefs.ErrInvalid},
	} {
		err := r.RecordTrace(t.Context(), tt.req, func(m *heddlev1.RecordTraceResponse) error {
			t.Errorf("received %v", m)
			return nil
		})
		if !errors.Is(err, tt.want) {
			t.Errorf("%v: %v, want %v", tt.req, err, tt.want)
		}
	}
	err := r.RecordTrace(t.Context(), &heddlev1.RecordTraceRequest{Duration: durationpb.New(time.Millisecond)},
		func(*heddlev1.RecordTraceResponse) error { return nil })
	if err != nil {
		t.Errorf("a trace that ends by itself: %v", err)
	}
}
