// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/report_json.hpp>
#include <millrace/loader/detail/telemetry/report_prometheus.hpp>
#include <millrace/loader/detail/telemetry/report_text.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>
#include <millrace/loader/detail/telemetry/trace_file.hpp>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include "support/paths.hpp"
#include "unit/loader/telemetry/simulated_pipeline.hpp"

namespace millrace::loader {
namespace {

constexpr std::int64_t microsecond = 1'000;
constexpr std::int64_t batch_bytes = 65'536;

using testing::ElementsAre;

const std::string odd_name = "a \"quoted\\ name\",\nin \xc3\xa9 two lines";

/// Simulates a run that makes all reported values nonzero.
void fill(telemetry& t) {
  test::simulate_pipeline(t, 200, 4, 1, true, [](std::int64_t m) {
    return test::simulated_times{2 * microsecond, m % 10 == 9 ? 3'000 * microsecond : 0,
                                 30 * microsecond, 10 * microsecond, 400 * microsecond};
  });
  t.producer().bytes_read(200 * batch_bytes);
  t.served(0, 300);
  t.served(1, 100);
}

telemetry_options options() {
  return {.rank = 5, .slots = 4, .trace_events = 128, .mixture = {{"web", 1}, {odd_name, 1}}};
}

TEST(ReportText, IsOneLine) {
  telemetry t(options());
  fill(t);
  telemetry_report report = t.report();
  report.major_faults = 1;  // counted for real, so a busy machine may give any number
  const std::string text = text_of(report);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_THAT(text,
              testing::MatchesRegex(
                  "rank 5: 200 batches in [0-9.]+ ms, waited [0-9.]+ % \\(p50 [0-9.]+ .*s, p99 "
                  "[0-9.]+ ms, max [0-9.]+ ms; first batch [0-9.]+ .?s\\), ready [0-9.]+ of "
                  "4, stalls [0-9]+ \\(storage [0-9]+ in [0-9.]+ ms\\), read 12.5 MiB, 1 major "
                  "fault, mixture within 25.00 %"));
  EXPECT_EQ(text_of(telemetry().report()),
            "rank 0: 0 batches in 0 ns, waited 0.0 % (p50 0 ns, p99 0 ns, max 0 ns; first batch 0 "
            "ns), ready 0.0 of 4, stalls 0, read 0 bytes, 0 major faults");
}

TEST(ReportJson, HoldsEveryFigure) {
  telemetry t(options());
  fill(t);
  const telemetry_report report = t.report();
  simdjson::dom::parser parser;
  const std::string text = formats::write_json(json_of(report));
  const simdjson::dom::element json = parser.parse(text);

  const auto number = [&](const char* pointer) {
    return json.at_pointer(pointer).get_int64().value();
  };
  EXPECT_EQ(number("/rank"), 5);
  EXPECT_EQ(number("/batches"), 200);
  EXPECT_EQ(number("/first_wait_ns"), report.first_wait_ns);
  EXPECT_EQ(number("/elapsed_ns"), report.elapsed_ns);
  EXPECT_EQ(number("/waits/count"), 199);
  EXPECT_EQ(number("/waits/p99_ns"), report.waits.quantile_ns(0.99));
  EXPECT_EQ(number("/waits/max_ns"), report.waits.max_ns);
  EXPECT_GT(number("/stalls/storage/stalls"), 0);
  EXPECT_EQ(number("/stalls/storage/waited_ns"), report.stalls[0].waited_ns);
  EXPECT_EQ(number("/stalls/consumer/stalls"), 0);
  EXPECT_EQ(number("/stages/gather/total_ns"), 200 * (30 * microsecond));
  EXPECT_EQ(number("/stages/storage/count"), 20);
  EXPECT_EQ(number("/slots"), 4);
  EXPECT_EQ(json.at_pointer("/times_ready").get_array().size(), 5);
  EXPECT_EQ(number("/bytes"), 200 * batch_bytes);
  EXPECT_EQ(number("/major_faults"), report.major_faults);
  EXPECT_DOUBLE_EQ(json.at_pointer("/data_wait_share").get_double(), report.data_wait_share());
  EXPECT_DOUBLE_EQ(json.at_pointer("/mixture_error").get_double(), 0.25);
  EXPECT_EQ(json.at_pointer("/mixture/1/source").get_string().value(), odd_name);
  EXPECT_EQ(number("/mixture/1/samples"), 100);
  EXPECT_DOUBLE_EQ(json.at_pointer("/mixture/1/target_samples").get_double(), 200);
}

/// The parsed contents of a text in the Prometheus text format, version 0.0.4.
struct exposition {
  std::map<std::string, std::string> types;
  std::map<std::string, double> samples;  ///< by name and labels, as in the text
  std::map<std::string, std::vector<std::string>> labels_of;  ///< key: family; labels in order
};

/// Parses the text as strictly as Prometheus does.
/// @throws std::runtime_error  the text does not follow the format
exposition parse_exposition(const std::string& text) {
  static const std::regex comment("# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
  static const std::regex sample(
      "([a-zA-Z_:][a-zA-Z0-9_:]*)\\{(.*)\\} "
      "([-+]?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?|[+-]Inf|NaN)");
  static const std::regex label(R"re(([a-zA-Z_][a-zA-Z0-9_]*)="(([^"\\]|\\["\\n])*)"(,|$))re");
  if (text.empty() || text.back() != '\n') throw std::runtime_error("no line end at the end");
  exposition result;
  std::istringstream lines(text);
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, comment)) {
      if (found[1] == "HELP") {
        family = found[2];
        continue;
      }
      if (found[2] != family) throw std::runtime_error("TYPE not behind its HELP: " + line);
      if (!result.types.emplace(family, found[3]).second) {
        throw std::runtime_error("twice: " + family);
      }
      continue;
    }
    if (!std::regex_match(line, found, sample)) throw std::runtime_error("no sample: " + line);
    const std::string name = found[1];
    const bool of_histogram = result.types[family] == "histogram";
    if (of_histogram ? !std::regex_match(name, std::regex(family + "_(bucket|sum|count)"))
                     : name != family) {
      throw std::runtime_error("not of family " + family + ": " + line);
    }
    const std::string labels = found[2];
    std::size_t covered = 0;
    for (std::sregex_iterator it(labels.begin(), labels.end(), label), end; it != end; ++it) {
      if (static_cast<std::size_t>(it->position()) != covered) break;
      covered += static_cast<std::size_t>(it->length());
    }
    if (covered != labels.size()) throw std::runtime_error("bad labels: " + line);
    if (!result.samples.emplace(name + '{' + labels + '}', std::stod(found[3])).second) {
      throw std::runtime_error("twice: " + line);
    }
    result.labels_of[name].push_back(labels);
  }
  return result;
}

TEST(ReportPrometheus, IsTheTextFormat) {
  telemetry t(options());
  fill(t);
  const telemetry_report report = t.report();
  const exposition found = parse_exposition(prometheus_of(report));

  EXPECT_EQ(found.samples.at("millrace_loader_batches_total{rank=\"5\"}"), 200);
  EXPECT_EQ(found.types.at("millrace_loader_batches_total"), "counter");
  EXPECT_EQ(found.samples.at("millrace_loader_bytes_total{rank=\"5\"}"), 200 * batch_bytes);
  EXPECT_NEAR(found.samples.at("millrace_loader_data_wait_ratio{rank=\"5\"}"),
              report.data_wait_share(), 1e-12);
  EXPECT_EQ(found.samples.at("millrace_loader_stalls_total{rank=\"5\",cause=\"storage\"}"),
            static_cast<double>(report.stalls[0].stalls));
  EXPECT_NEAR(found.samples.at("millrace_loader_stage_seconds_total{rank=\"5\",stage=\"gather\"}"),
              0.006, 1e-9);
  EXPECT_THAT(
      found.labels_of.at("millrace_loader_source_samples_total"),
      ElementsAre("rank=\"5\",source=\"web\"",
                  "rank=\"5\",source=\"a \\\"quoted\\\\ name\\\",\\nin \xc3\xa9 two lines\""));
}

TEST(ReportPrometheus, HasBucketsThatGrow) {
  telemetry t(options());
  fill(t);
  const telemetry_report report = t.report();
  const exposition found = parse_exposition(prometheus_of(report));
  EXPECT_EQ(found.types.at("millrace_loader_wait_seconds"), "histogram");
  double before = 0;
  double bound_before = 0;
  for (const std::string& labels : found.labels_of.at("millrace_loader_wait_seconds_bucket")) {
    std::smatch le;
    ASSERT_TRUE(std::regex_search(labels, le, std::regex("le=\"(.*)\"")));
    const double bound = std::stod(le[1]);
    EXPECT_GT(bound, bound_before);
    const double here = found.samples.at("millrace_loader_wait_seconds_bucket{" + labels + '}');
    EXPECT_GE(here, before);
    before = here;
    bound_before = bound;
  }
  EXPECT_EQ(bound_before, std::numeric_limits<double>::infinity());
  EXPECT_EQ(before, 199);
  EXPECT_EQ(found.samples.at("millrace_loader_wait_seconds_count{rank=\"5\"}"), 199);
  EXPECT_NEAR(found.samples.at("millrace_loader_wait_seconds_sum{rank=\"5\"}"),
              static_cast<double>(report.waits.total_ns) * 1e-9, 1e-12);
  // Most waits take no time, so they are counted in the first bucket.
  EXPECT_GT(found.samples.at("millrace_loader_wait_seconds_bucket{rank=\"5\",le=\"1.024e-06\"}"),
            100);
}

// Checks that the parser above refuses invalid texts.
TEST(ReportPrometheus, IsReadByAParserThatRefuses) {
  for (const char* bad :
       {"a 1", "# TYPE a counter\na{} 1\n", "# HELP a b\n# TYPE a counter\na{x=1} 1\n",
        "# HELP a b\n# TYPE a counter\na{x=\"1\" 1\n",
        "# HELP a b\n# TYPE a counter\nb{x=\"1\"} 1\n",
        "# HELP a b\n# TYPE a counter\na{x=\"1\"} one\n",
        "# HELP a b\n# TYPE a counter\na{x=\"\"\"} 1\n"}) {
    EXPECT_THROW(parse_exposition(bad), std::runtime_error) << bad;
  }
}

TEST(TraceFile, IsATraceOfEvents) {
  telemetry t(options());
  fill(t);
  const test::temp_folder folder;
  write_trace(folder / "trace.json", t.trace(), t.rank());
  std::ifstream file(folder / "trace.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  simdjson::dom::parser parser;
  const simdjson::dom::element json = parser.parse(text);

  std::map<std::string, int> names;
  std::int64_t stalls = 0;
  double last = 0;
  for (const simdjson::dom::element event : json.at_key("traceEvents").get_array()) {
    const std::string name(event.at_key("name").get_string().value());
    const std::string phase(event.at_key("ph").get_string().value());
    EXPECT_EQ(event.at_key("pid").get_int64().value(), 5);
    ++names[name];
    if (phase == "M") continue;
    EXPECT_GE(event.at_key("ts").get_double().value(), 0);
    if (phase == "C") {
      EXPECT_LE(event.at_pointer("/args/ready").get_int64().value(), 4);
      continue;
    }
    ASSERT_EQ(phase, "X");
    EXPECT_GE(event.at_key("dur").get_double().value(), 0);
    last = std::max(last, event.at_key("ts").get_double().value());
    std::string_view cause;
    if (event.at_pointer("/args/stalled_by").get(cause) == simdjson::SUCCESS) {
      EXPECT_EQ(cause, "storage");
      ++stalls;
    }
  }
  EXPECT_EQ(names["thread_name"], 2);
  EXPECT_GT(names["gather"], 5);
  EXPECT_GT(names["storage"], 0);
  EXPECT_GT(names["wait for a slot"], 5);
  EXPECT_GT(names["ready batches"], 5);
  EXPECT_GT(stalls, 0);
  EXPECT_GT(last, 1000);
}

TEST(TraceFile, MayHoldNothing) {
  simdjson::dom::parser parser;
  const std::string text = trace_json({}, 0);
  EXPECT_EQ(parser.parse(text).at_key("traceEvents").get_array().size(), 2);
}

}  // namespace
}  // namespace millrace::loader
