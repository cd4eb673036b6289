// SPDX-License-Identifier: Apache-2.0
#include "report/metrics.hpp"

#include <fcntl.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>

#include "support/paths.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::EndsWith;
using testing::Eq;
using testing::HasSubstr;
using testing::Optional;
using testing::SizeIs;
using testing::StartsWith;
using testing::ThrowsMessage;

constexpr milliseconds never{3'600'000};

class Metrics : public testing::Test {
 protected:
  static std::vector<std::string> lines(const fs::path& path) {
    std::ifstream file(path);
    std::vector<std::string> out;
    for (std::string line; std::getline(file, line);) out.push_back(line);
    return out;
  }
  // Waits until `ready()` returns true, at most ten seconds. Returns whether `ready()` returned
  // true.
  template <class Ready>
  static bool wait_until(Ready ready) {
    for (int i = 0; i < 1000; ++i) {
      if (ready()) return true;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return false;
  }

  const test::temp_folder folder_;
  const fs::path file_ = folder_ / "metrics";
};

TEST_F(Metrics, OfAShortRunAreOneLine) {
  run_metrics metrics(file_, metrics_format::json, 100, never);
  metrics.update({.documents = 1});
  metrics.finish({.documents = 2});
  const auto found = lines(file_);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0], HasSubstr("\"documents\": 2,"));
  EXPECT_THAT(found[0], HasSubstr("\"total_bytes\": 100,"));
  EXPECT_THAT(found[0], EndsWith("\"finished\": true}"));
  EXPECT_EQ(metrics.take_note(), std::nullopt);
}

// Metrics are written even while the run makes no progress. Observers must see that time passes,
// even while one block takes minutes.
TEST_F(Metrics, GoOnWhileTheRunStandsStill) {
  run_metrics metrics(file_, metrics_format::json, 0, milliseconds(20));
  metrics.update({.documents = 7});
  EXPECT_TRUE(wait_until([&] { return lines(file_).size() >= 3; }));
  metrics.finish({.documents = 7});
  for (const std::string& line : lines(file_)) {
    EXPECT_THAT(line, StartsWith("{"));
    EXPECT_THAT(line, EndsWith("}"));
  }
  EXPECT_THAT(lines(file_).back(), HasSubstr("\"documents_per_second\": 0,"));
}

TEST_F(Metrics, OfARunThatFailedSayThatItHasNotFinished) {
  {
    run_metrics metrics(file_, metrics_format::json, 0, never);
    metrics.update({.documents = 3});
  }
  const auto found = lines(file_);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0], EndsWith("\"finished\": false}"));
}

TEST_F(Metrics, ReplaceThoseOfTheRunBefore) {
  std::ofstream(file_) << "old\nold\n";
  run_metrics(file_, metrics_format::json, 0, never).finish({});
  EXPECT_THAT(lines(file_), SizeIs(1));
}

TEST_F(Metrics, OfPrometheusReplaceTheWholeFile) {
  std::ofstream(file_) << std::string(100'000, 'x');
  run_metrics metrics(file_, metrics_format::prometheus, 0, milliseconds(10));
  const auto first_line = [&] {
    const auto found = lines(file_);
    return found.empty() ? std::string() : found.front();
  };
  EXPECT_TRUE(wait_until([&] { return first_line().starts_with("# HELP"); }));
  // At any time, a reader of this file must find complete contents.
  for (int i = 0; i < 200; ++i) {
    const auto found = lines(file_);
    ASSERT_FALSE(found.empty());
    EXPECT_THAT(found.back(), StartsWith("millrace_preprocess_finished "));
  }
  metrics.finish({.documents = 9});
  EXPECT_THAT(lines(file_), testing::Contains("millrace_preprocess_documents_total 9"));
  EXPECT_FALSE(fs::exists(folder_ / "metrics.partial"));
}

TEST_F(Metrics, ThatCannotBeWrittenAreNotedOnce) {
  for (const auto format : {metrics_format::json, metrics_format::prometheus}) {
    run_metrics metrics(folder_ / "no folder/metrics", format, 0, milliseconds(5));
    std::optional<std::string> note;
    EXPECT_TRUE(wait_until([&] { return (note = metrics.take_note()).has_value(); }));
    EXPECT_THAT(note, Optional(StartsWith("note: --metrics: ")));
    EXPECT_THAT(note, Optional(HasSubstr("No such file or directory")));
    std::this_thread::sleep_for(milliseconds(30));
    metrics.finish({});
    EXPECT_THAT(metrics.take_note(), Eq(std::nullopt));
  }
}

TEST_F(Metrics, NoteAFullDisk) {
  run_metrics metrics("/dev/full", metrics_format::json, 0, never);
  metrics.finish({});
  EXPECT_THAT(metrics.take_note(), Optional(HasSubstr("No space left on device")));
}

// A path that is not a regular file is left alone. Renaming a file to this path would replace, for
// example, a device.
TEST_F(Metrics, OfPrometheusLeaveWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  run_metrics metrics(file_, metrics_format::prometheus, 0, never);
  metrics.finish({});
  EXPECT_THAT(metrics.take_note(), Optional(HasSubstr("not a regular file")));
  EXPECT_TRUE(fs::is_fifo(file_));
}

// Opening a FIFO usually waits for a reader. The run must not wait.
TEST_F(Metrics, DoNotWaitForAReader) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  run_metrics metrics(file_, metrics_format::json, 0, never);
  metrics.finish({});
  EXPECT_THAT(metrics.take_note(), Optional(HasSubstr("open")));
}

TEST_F(Metrics, AreUpdatedFromAnyThread) {
  run_metrics metrics(file_, metrics_format::json, 0, milliseconds(1));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) metrics.update({.documents = i});
    });
  }
  for (std::thread& thread : threads) thread.join();
  metrics.finish({.documents = 1000});
  EXPECT_THAT(lines(file_).back(), HasSubstr("\"documents\": 1000,"));
}

TEST(MetricsFormat, HasTwoNames) {
  EXPECT_EQ(metrics_format_of("json"), metrics_format::json);
  EXPECT_EQ(metrics_format_of("prometheus"), metrics_format::prometheus);
  EXPECT_THAT(
      [] { (void)metrics_format_of("xml"); },
      ThrowsMessage<config_error>(HasSubstr("--metrics-format xml: expected json or prometheus")));
}

}  // namespace

namespace {

metrics_sample example_sample() {
  return {
      .state =
          {.documents = 30,
           .input_bytes = 4000,
           .read_bytes = 1000,
           .tokens = 900,
           .output_bytes = 1800,
           .bad_records = 2,
           .blocks_in_flight = 5,
           .busy = {.read = 0.5, .read_spans = 3.25, .encode = 7.25, .write = 1.5, .sync = 0.125}},
      .unix_seconds = 1.75e9,
      .seconds = 4,
      .total_bytes = 10000,
      .finished = false};
}

class MetricsJson : public testing::Test {
 protected:
  double number(const std::string& text, const char* pointer) {
    simdjson::dom::element json;
    EXPECT_EQ(parser_.parse(text).get(json), simdjson::SUCCESS) << text;
    double value = -1;
    EXPECT_EQ(json.at_pointer(pointer).get(value), simdjson::SUCCESS) << pointer;
    return value;
  }
  simdjson::dom::parser parser_;
};

TEST_F(MetricsJson, IsOneLineWithEveryField) {
  const std::string text = metrics_json(example_sample(), {});
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_EQ(number(text, "/unix_seconds"), 1.75e9);
  EXPECT_EQ(number(text, "/seconds"), 4);
  EXPECT_EQ(number(text, "/documents"), 30);
  EXPECT_EQ(number(text, "/tokens"), 900);
  EXPECT_EQ(number(text, "/input_bytes"), 4000);
  EXPECT_EQ(number(text, "/read_bytes"), 1000);
  EXPECT_EQ(number(text, "/total_bytes"), 10000);
  EXPECT_EQ(number(text, "/output_bytes"), 1800);
  EXPECT_EQ(number(text, "/bad_records"), 2);
  EXPECT_EQ(number(text, "/blocks_in_flight"), 5);
  EXPECT_EQ(number(text, "/busy_seconds/read"), 0.5);
  EXPECT_EQ(number(text, "/busy_seconds/read_spans"), 3.25);
  EXPECT_EQ(number(text, "/busy_seconds/encode"), 7.25);
  EXPECT_EQ(number(text, "/busy_seconds/write"), 1.5);
  EXPECT_EQ(number(text, "/busy_seconds/sync"), 0.125);
  EXPECT_THAT(text, testing::EndsWith("\"finished\": false}\n"));
}

TEST_F(MetricsJson, TellsRatesSinceTheSampleBefore) {
  metrics_sample before = example_sample();
  before.state.documents = 10;
  before.state.tokens = 400;
  before.state.input_bytes = 3000;
  before.seconds = 2;
  const std::string text = metrics_json(example_sample(), before);
  EXPECT_EQ(number(text, "/documents_per_second"), 10);
  EXPECT_EQ(number(text, "/tokens_per_second"), 250);
  EXPECT_EQ(number(text, "/input_bytes_per_second"), 500);
}

TEST_F(MetricsJson, HasNoRateWithoutTime) {
  EXPECT_EQ(number(metrics_json(example_sample(), example_sample()), "/documents_per_second"), 0);
}

// The output follows Prometheus's format. The test is a small parser for the parts that are used:
// each sample belongs to the metric of the HELP and TYPE lines before it, and values are numbers.
TEST(MetricsPrometheus, IsReadAsItsFormatSays) {
  const std::regex help(R"(# HELP ([a-z_]+) [A-Z].*\.)");
  const std::regex type(R"(# TYPE ([a-z_]+) (counter|gauge))");
  const std::regex sample(R"re(([a-z_]+)(\{stage="([a-z_]+)"\})? ([-+0-9.e]+))re");
  std::map<std::string, double> values;
  std::string helped;
  std::string typed;
  std::set<std::string> seen;
  std::istringstream lines(metrics_prometheus(example_sample()));
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      helped = match[1];
      EXPECT_TRUE(seen.insert(helped).second) << "twice: " << line;
    } else if (std::regex_match(line, match, type)) {
      typed = match[1];
      EXPECT_EQ(typed, helped);
      EXPECT_EQ(typed.ends_with("_total"), match[2] == "counter") << line;
    } else if (std::regex_match(line, match, sample)) {
      EXPECT_EQ(match[1], typed);
      values[match[1].str() + match[3].str()] = std::stod(match[4]);
    } else {
      ADD_FAILURE() << "not of the format: " << line;
    }
  }
  const std::map<std::string, double> expected = {
      {"millrace_preprocess_documents_total", 30},
      {"millrace_preprocess_tokens_total", 900},
      {"millrace_preprocess_input_bytes_total", 4000},
      {"millrace_preprocess_read_bytes_total", 1000},
      {"millrace_preprocess_output_bytes_total", 1800},
      {"millrace_preprocess_bad_records_total", 2},
      {"millrace_preprocess_busy_seconds_totalread", 0.5},
      {"millrace_preprocess_busy_seconds_totalread_spans", 3.25},
      {"millrace_preprocess_busy_seconds_totalencode", 7.25},
      {"millrace_preprocess_busy_seconds_totalwrite", 1.5},
      {"millrace_preprocess_busy_seconds_totalsync", 0.125},
      {"millrace_preprocess_elapsed_seconds_total", 4},
      {"millrace_preprocess_blocks_in_flight", 5},
      {"millrace_preprocess_input_size_bytes", 10000},
      {"millrace_preprocess_finished", 0}};
  EXPECT_EQ(values, expected);
}

TEST(MetricsPrometheus, SaysWhenARunHasFinished) {
  metrics_sample sample = example_sample();
  sample.finished = true;
  EXPECT_THAT(metrics_prometheus(sample), testing::HasSubstr("\nmillrace_preprocess_finished 1\n"));
}

}  // namespace

}  // namespace millrace::preprocess
