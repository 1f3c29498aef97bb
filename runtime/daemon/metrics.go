package daemon

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/telemetry"
)

// metricsHandler serves the metrics of the clients and of heddled itself.
func (d *Daemon) metricsHandler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		telemetry.NewCollector(d.clientMetrics, func() telemetry.Totals { return telemetry.Totals(d.clients.Totals()) }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// clientMetrics lists what the collector shows.
func (d *Daemon) clientMetrics() []telemetry.Client {
	var list []telemetry.Client
	for _, c := range d.clients.List() {
		if c.Evicted != "" {
			continue
		}
		rates, _ := d.rater.Of(c.ID)
		m := telemetry.Client{ID: c.ID, Tenant: c.Tenant, Name: c.Name, Priority: c.Priority, Rates: rates}
		for _, dev := range c.Devices {
			m.UUIDs[dev.Slot] = d.inventory.name(gpu.UUID(dev.UUID))
		}
		list = append(list, m)
	}
	return list
}
