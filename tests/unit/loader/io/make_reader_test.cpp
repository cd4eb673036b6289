// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/make_reader.hpp>
#include <millrace/loader/detail/io/uring_probe.hpp>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;

/// A list of one file. The environment variable MILLRACE_IO is not set.
class MakeReader : public testing::Test {
 protected:
  MakeReader() {
    ::unsetenv("MILLRACE_IO");
    test::write_bytes(files_[0].path, std::vector<std::byte>(10'000, std::byte{7}));
  }
  ~MakeReader() override { ::unsetenv("MILLRACE_IO"); }

  reader_report report_of(const std::string& back_end) {
    io_options options;
    options.back_end = back_end;
    const auto reader = make_reader(files_, options);
    std::vector<std::byte> memory(5000);
    const read_request request{{0, 5000, 5000}, memory.data()};
    reader->gather({&request, 1});
    EXPECT_EQ(memory, std::vector<std::byte>(5000, std::byte{7}));
    return reader->report();
  }

  test::temp_folder folder_;
  std::vector<data_file> files_{{folder_ / "tokens.bin", 10'000}};
};

TEST_F(MakeReader, MakesTheOneThatIsAskedFor) {
  for (const std::string name : {"mmap", "pread"}) {
    const reader_report report = report_of(name);
    EXPECT_EQ(report.asked, name);
    EXPECT_EQ(report.granted, name);
    EXPECT_EQ(report.why, "requested by name");
  }
}

TEST_F(MakeReader, MakesIoUringWhereItMay) {
  const uring_probe probe = probe_uring();
  EXPECT_NE(probe.why, "");
  const reader_report report = report_of("io_uring");
  EXPECT_EQ(report.asked, "io_uring");
  if (probe.usable) {
    EXPECT_EQ(report.granted, "io_uring");
  } else {
    EXPECT_EQ(report.granted, "pread");
    EXPECT_EQ(report.why, "requested by name, but: " + probe.why);
  }
}

TEST_F(MakeReader, ChoosesByItselfAndSaysWhy) {
  const reader_report report = report_of("");
  EXPECT_EQ(report.asked, "auto");
  EXPECT_EQ(report.granted, "mmap");  // 10 KB fit into any memory
  EXPECT_NE(report.why, "");
  EXPECT_NE(report.why, "requested by name");
  EXPECT_FALSE(report.grants.empty());
  for (const grant& each : report.grants) EXPECT_NE(each.why, "requested by name") << each.asked;
}

TEST_F(MakeReader, TheEnvironmentIsAskedWhereNobodyElseSaysAnything) {
  ::setenv("MILLRACE_IO", "pread", 1);
  reader_report report = report_of("");
  EXPECT_EQ(report.asked, "pread");
  EXPECT_EQ(report.granted, "pread");
  EXPECT_EQ(report.why, "requested by MILLRACE_IO");

  EXPECT_EQ(report_of("mmap").granted, "mmap");
  report = report_of("auto");  // an explicit "auto" is also reported
  EXPECT_EQ(report.asked, "auto");
  EXPECT_EQ(report.granted, "mmap");

  ::setenv("MILLRACE_IO", "", 1);
  EXPECT_EQ(report_of("").asked, "auto");
}

TEST_F(MakeReader, NamesThatAreNoneAreRefused) {
  const auto message = [&](const std::string& back_end) -> std::string {
    try {
      (void)report_of(back_end);
    } catch (const config_error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(message("mmpa"), HasSubstr("the back end for reading is 'mmpa', expected auto"));
  ::setenv("MILLRACE_IO", "fast", 1);
  EXPECT_THAT(message(""), HasSubstr("MILLRACE_IO in the environment is 'fast', expected auto"));
}

TEST_F(MakeReader, FactsAreThoseOfTheFiles) {
  files_.push_back({folder_ / "absent.bin", 77});
  const reader_facts facts = facts_of(files_, {});
  EXPECT_EQ(facts.files, 2);
  EXPECT_EQ(facts.bytes, 10'077u);
  EXPECT_EQ(facts.maps, 2);
  EXPECT_GT(facts.most_maps, 0);
  EXPECT_EQ(facts.network_files, 0);
  ASSERT_TRUE(facts.available.has_value());
  EXPECT_NE(facts.available_by, "");
}

TEST_F(MakeReader, FilesInMemoryAreSeen) {
  if (test::quick_folder() != "/dev/shm") GTEST_SKIP() << "needs /dev/shm";
  const test::temp_folder memory("/dev/shm");
  test::write_bytes(memory / "tokens.bin", std::vector<std::byte>(100));
  EXPECT_EQ(facts_of({{memory / "tokens.bin", 100}}, {}).memory_files, 1);
}

TEST_F(MakeReader, AReportIsOneLine) {
  const std::string text = line(report_of("pread"));
  EXPECT_THAT(text, HasSubstr("reads by pread (requested: pread, requested by name)"));
  EXPECT_THAT(text, HasSubstr("1 gathers of 1 requests, 5000 bytes, 5000 read, 0 retries"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace millrace::loader
