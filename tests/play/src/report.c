#include "report.h"

#include <inttypes.h>

void play_report_string(FILE *to, const char *text) {
    fputc('"', to);
    for (const char *at = text; *at != '\0'; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\') {
            fprintf(to, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(to, "\\u%04x", c);
        } else {
            fputc(c, to);
        }
    }
    fputc('"', to);
}

static double ms(uint64_t ns) {
    return (double)ns / 1e6;
}

struct summary {
    double p50;
    double p95;
    double p99;
    double mean;
    double max;
};

static struct summary summarise(const struct play_samples *latency) {
    return (struct summary){
        .p50 = ms(play_samples_percentile(latency, 50)),
        .p95 = ms(play_samples_percentile(latency, 95)),
        .p99 = ms(play_samples_percentile(latency, 99)),
        .mean = play_samples_mean(latency) / 1e6,
        .max = ms(play_samples_percentile(latency, 100)),
    };
}

static void report_json(FILE *to, const struct play_options *options,
                        const struct play_table *table, const struct play_device *device,
                        const struct play_result *result) {
    const struct summary s = summarise(&result->latency);
    const bool infer = options->mode == PLAY_MODE_INFER;

    fprintf(to, "{\"mode\":\"%s\",\"table\":", infer ? "infer" : "train");
    play_report_string(to, options->table);
    fprintf(to, ",\"device\":");
    play_report_string(to, device->name);
    fprintf(to,
            ",\"multiprocessors\":%d,\"kernels\":%zu,\"device_time_ms\":%.3f,\"threads\":%" PRIu32
            ",\"graph\":%s,\"seed\":%" PRIu64 ",\"speed\":%g",
            device->multiprocessors, table->count, ms(play_table_time_ns(table)) / options->speed,
            options->threads, options->graph ? "true" : "false", options->seed, options->speed);
    if (infer) {
        fprintf(to, ",\"arrivals\":");
        play_report_string(to, options->arrivals);
    }
    fprintf(to, ",\"%s\":%zu,\"%s\":%.4f,\"passes\":%" PRIu64, infer ? "requests" : "iterations",
            result->latency.count, infer ? "per_s" : "it_s", result->per_second, result->passes);
    fprintf(to,
            ",\"p50_ms\":%.4f,\"p95_ms\":%.4f,\"p99_ms\":%.4f,\"mean_ms\":%.4f,\"max_ms\":%.4f,"
            "\"checked\":true}\n",
            s.p50, s.p95, s.p99, s.mean, s.max);
}

static void report_text(FILE *to, const struct play_options *options,
                        const struct play_table *table, const struct play_device *device,
                        const struct play_result *result) {
    const struct summary s = summarise(&result->latency);
    const bool infer = options->mode == PLAY_MODE_INFER;

    fprintf(to, "device      %s, %d SMs\n", device->name, device->multiprocessors);
    fprintf(to, "table       %s: %zu kernels, %.3f ms of device time\n", options->table,
            table->count, ms(play_table_time_ns(table)) / options->speed);
    fprintf(to, "%s  %zu measured, %.3f per second\n", infer ? "requests  " : "iterations",
            result->latency.count, result->per_second);
    fprintf(to, "latency     p50 %.3f  p95 %.3f  p99 %.3f  mean %.3f  max %.3f ms\n", s.p50, s.p95,
            s.p99, s.mean, s.max);
    fprintf(to, "results     right after %" PRIu64 " passes\n", result->passes);
}

bool play_report(FILE *to, const struct play_options *options, const struct play_table *table,
                 const struct play_device *device, const struct play_result *result) {
    if (options->json) {
        report_json(to, options, table, device, result);
    } else {
        report_text(to, options, table, device, result);
    }
    return fflush(to) == 0 && !ferror(to);
}
