package telemetry

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Client is one attached client as the metrics show it.
type Client struct {
	ID       uint64
	Tenant   string
	Name     string
	Priority int
	Rates    Rates
	UUIDs    [DevicesMax]string // by device slot
}

// Collector makes metrics of clients when it is asked, from what the last
// round of sampling found.
type Collector struct {
	list   func() []Client
	totals func() Totals

	attached *prometheus.Desc
	refused  *prometheus.Desc
	evicted  *prometheus.Desc
	clients  *prometheus.Desc
	launches *prometheus.Desc
	unnamed  *prometheus.Desc
	busy     *prometheus.Desc
	held     *prometheus.Desc
	memory   *prometheus.Desc
	holds    *prometheus.Desc
	overruns *prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// Totals are the counts since heddled started.
type Totals struct{ Attached, Refused, Evicted uint64 }

// NewCollector returns a collector over what list and totals return.
func NewCollector(list func() []Client, totals func() Totals) *Collector {
	client := []string{"client", "tenant", "name", "priority"}
	device := append(slices.Clip(client), "device")
	desc := func(name, help string, labels []string) *prometheus.Desc {
		return prometheus.NewDesc("heddle_"+name, help, labels, nil)
	}
	return &Collector{
		list:     list,
		totals:   totals,
		attached: desc("attaches_total", "Clients that attached.", nil),
		refused:  desc("refusals_total", "Clients that were not let in.", nil),
		evicted:  desc("evictions_total", "Clients that were thrown out for breaking the contract.", nil),
		clients:  desc("clients", "Attached clients.", nil),
		launches: desc("client_launches_total", "Launches since the client attached.", client),
		unnamed:  desc("client_unnamed_addresses_total", "Driver addresses that had no exported name.", client),
		busy:     desc("client_busy_seconds_total", "Time with work on the device, where the client publishes it.", device),
		held:     desc("client_held_seconds_total", "Time that callers waited at the gate.", device),
		memory:   desc("client_memory_bytes", "Device memory that the client has allocated.", device),
		holds:    desc("client_holds_total", "Launches that had to wait.", device),
		overruns: desc("client_overruns_total", "Waits that ended because they took too long.", device),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.attached, c.refused, c.evicted, c.clients, c.launches, c.unnamed, c.busy, c.held, c.memory, c.holds, c.overruns,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	clients := c.list()
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	totals := c.totals()
	counter(c.attached, float64(totals.Attached))
	counter(c.refused, float64(totals.Refused))
	counter(c.evicted, float64(totals.Evicted))
	gauge(c.clients, float64(len(clients)))
	for i := range clients {
		client := &clients[i]
		labels := []string{
			strconv.FormatUint(client.ID, 10), client.Tenant, client.Name, strconv.Itoa(client.Priority),
		}
		counter(c.launches, float64(client.Rates.Launches), labels...)
		counter(c.unnamed, float64(client.Rates.Unnamed), labels...)
		for slot := range client.Rates.Devices {
			d := &client.Rates.Devices[slot]
			if !d.Bound {
				continue
			}
			labels := append(slices.Clip(labels), client.UUIDs[slot])
			if d.Published {
				counter(c.busy, d.BusyTime.Seconds(), labels...)
			}
			counter(c.held, d.HeldTime.Seconds(), labels...)
			gauge(c.memory, float64(d.MemoryBytes), labels...)
			counter(c.holds, float64(d.Holds), labels...)
			counter(c.overruns, float64(d.Overruns), labels...)
		}
	}
}
