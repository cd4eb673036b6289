// SPDX-License-Identifier: Apache-2.0
#include "watch/metrics.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <millrace/error.hpp>

#include "support/paths.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::EndsWith;
using testing::Eq;
using testing::HasSubstr;
using testing::IsEmpty;
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
  // Waits until `ready()` returns true, at most ten seconds. Returns whether it did.
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
  // At any time, the file with this name is complete.
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

// A path that is not a regular file is left alone. Renaming a file to this path would replace the
// device.
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
}  // namespace millrace::preprocess
