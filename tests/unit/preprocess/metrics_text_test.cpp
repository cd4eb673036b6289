// SPDX-License-Identifier: Apache-2.0
#include "watch/metrics_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace millrace::preprocess {
namespace {

metrics_sample example() {
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
  const std::string text = metrics_json(example(), {});
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
  metrics_sample before = example();
  before.state.documents = 10;
  before.state.tokens = 400;
  before.state.input_bytes = 3000;
  before.seconds = 2;
  const std::string text = metrics_json(example(), before);
  EXPECT_EQ(number(text, "/documents_per_second"), 10);
  EXPECT_EQ(number(text, "/tokens_per_second"), 250);
  EXPECT_EQ(number(text, "/input_bytes_per_second"), 500);
}

TEST_F(MetricsJson, HasNoRateWithoutTime) {
  EXPECT_EQ(number(metrics_json(example(), example()), "/documents_per_second"), 0);
}

// The output follows Prometheus's format. This is a small parser of the parts that are used: each
// sample belongs to the metric of the HELP and TYPE lines before it, and values are numbers.
TEST(MetricsPrometheus, IsReadAsItsFormatSays) {
  const std::regex help(R"(# HELP ([a-z_]+) [A-Z].*\.)");
  const std::regex type(R"(# TYPE ([a-z_]+) (counter|gauge))");
  const std::regex sample(R"re(([a-z_]+)(\{stage="([a-z_]+)"\})? ([-+0-9.e]+))re");
  std::map<std::string, double> values;
  std::string helped;
  std::string typed;
  std::set<std::string> seen;
  std::istringstream lines(metrics_prometheus(example()));
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
  metrics_sample sample = example();
  sample.finished = true;
  EXPECT_THAT(metrics_prometheus(sample), testing::HasSubstr("\nmillrace_preprocess_finished 1\n"));
}

}  // namespace
}  // namespace millrace::preprocess
