// SPDX-License-Identifier: Apache-2.0
// latency-load: measures how long requests at a fixed rate take, from the time at which each was
// due.
//
// An open loop: the times are fixed before the first request (schedule.h), so a stalled server
// cannot hide the delay of later requests. If all connections wait for answers when a request is
// due, it is sent once one is free, and its wait counts. --rate 0 is a closed loop for the maximum.
//
// Output: one JSON object; `held` is false if the rate was not reached, and a line on standard
// error reports that. Exit: 0, 1 an answer is wrong or the server is gone, 2 wrong use.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "eval/latency/client.h"

namespace {

using namespace latency;

void print_histogram(const char* name, const Histogram& h) {
  std::printf(
      ",\n \"%s\": {\"count\": %llu, \"p50_us\": %.3f, \"p99_us\": %.3f, "
      "\"p999_us\": %.3f, \"max_us\": %.3f, \"bins\": [",
      name, static_cast<unsigned long long>(h.count()), h.percentile_us(0.5), h.percentile_us(0.99),
      h.percentile_us(0.999), h.max_us());
  const char* separator = "";
  for (const Histogram::Bin& bin : h.bins()) {
    std::printf("%s[%.3f,%llu]", separator, bin.upper_us,
                static_cast<unsigned long long>(bin.count));
    separator = ",";
  }
  std::printf("]}");
}

double answered_rate(const Options& o, const Result& r) {
  if (o.rate > 0) return static_cast<double>(r.counts.answered_in_time) / o.seconds;
  return r.took_seconds > 0 ? static_cast<double>(r.counts.answered) / r.took_seconds : 0;
}

void print(const std::string& protocol, const Options& o, const Result& r) {
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(
      "{\"protocol\": \"%s\", \"connections\": %u, \"rate\": %.1f, \"seconds\": %g, "
      "\"warm_seconds\": %g, \"late_limit_us\": %g,\n \"due\": %llu, \"answered\": %llu, "
      "\"answered_in_time\": %llu, \"late\": %llu, \"held\": %s, \"answered_rate\": %.1f",
      protocol.c_str(), o.connections, o.rate, o.seconds, o.warm_seconds, o.late_us,
      number(r.counts.due), number(r.counts.answered), number(r.counts.answered_in_time),
      number(r.counts.late), o.rate <= 0 || is_held(r.counts) ? "true" : "false",
      answered_rate(o, r));
  print_histogram("latency", r.latency);
  print_histogram("lateness", r.lateness);
  std::printf("}\n");
  if (o.rate > 0 && !is_held(r.counts)) {
    std::fprintf(stderr,
                 "latency-load: the rate of %.0f/s was not held: %llu of %llu requests were "
                 "answered in time\n",
                 o.rate, number(r.counts.answered_in_time), number(r.counts.due));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::string protocol, path = "/";
  CLI::App app("Latency of a server at a fixed rate");
  app.option_defaults()->always_capture_default();
  app.add_option("--protocol", protocol, "memcached, redis or http")
      ->required()
      ->check(CLI::IsMember({"memcached", "redis", "http"}));
  app.add_option("--address", options.address, "of the server");
  app.add_option("--port", options.port, "")->required();
  app.add_option("--path", path, "of http");
  app.add_option("--connections", options.connections, "")->check(CLI::Range(1, 1024));
  app.add_option("--rate", options.rate, "requests/s; 0: as many as the connections carry")
      ->check(CLI::Range(0.0, 1e7));
  app.add_option("--seconds", options.seconds, "length of the measured window")
      ->check(CLI::PositiveNumber);
  app.add_option("--warm-seconds", options.warm_seconds, "before the window, not measured")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--requests", options.requests,
                 "with --rate 0: the number to send; 0: until the time is over");
  app.add_option("--late-us", options.late_us, "a request sent later than this counts as late");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    const auto speaks = protocol_named(protocol, path);
    Client client(options, *speaks);
    client.fill();
    print(protocol, options, client.run());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "latency-load: %s\n", failure.what());
    return 1;
  }
  return 0;
}
