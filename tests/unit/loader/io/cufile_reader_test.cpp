// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/cufile_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/child_process.hpp"
#include "support/fail_kth_allocation.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// A file of 5 MB. The reader uses the fake of NVIDIA's libraries in tests/support/fake_cufile.cpp.
class CufileReader : public testing::Test {
 protected:
  CufileReader() : contents_(5'000'000) {
    for (std::size_t i = 0; i < contents_.size(); ++i) {
      contents_[i] = static_cast<std::byte>(i * 2654435761U >> 16U);
    }
    test::write_bytes(files_[0].path, contents_);
    how_.names = {test::fake_cufile(), test::fake_cufile(), "/"};
    set("", "1");
  }
  ~CufileReader() override {
    ::unsetenv("FAKE_CUFILE");
    ::unsetenv("FAKE_CUDA");
  }

  static void set(const std::string& cufile, const std::string& cuda = "1") {
    ::setenv("FAKE_CUFILE", cufile.c_str(), 1);
    ::setenv("FAKE_CUDA", cuda.c_str(), 1);
  }

  std::unique_ptr<cufile_reader> reader() const {
    return std::make_unique<cufile_reader>(files_, reader_options{}, how_);
  }

  void expect_bytes(range_reader& reader, const std::vector<file_range>& ranges) const {
    for (const file_range& r : ranges) {
      std::vector<std::byte> memory(r.bytes);
      const read_request request{r, memory.data()};
      reader.prefetch({&r, 1});
      reader.gather({&request, 1});
      EXPECT_EQ(std::memcmp(memory.data(), contents_.data() + r.offset, r.bytes), 0);
    }
  }

  static std::string by_cufile(const reader_report& report) {
    for (const grant& g : report.grants) {
      if (g.asked.starts_with("cuFile for requests")) return g.granted;
    }
    return "nothing said";
  }

  test::temp_folder folder_;
  std::vector<data_file> files_{{folder_ / "weights.bin", 5'000'000}};
  std::vector<std::byte> contents_;
  cufile_options how_;
};

TEST_F(CufileReader, ReadsLargeRequestsByCufileAndSmallOnesByPread) {
  set("module");
  const auto r = reader();
  expect_bytes(*r, {{0, 3, mib}, {0, 7, mib - 1}, {0, 0, 5'000'000}});
  const reader_report report = r->report();
  EXPECT_EQ(report.granted, "cufile");
  EXPECT_EQ(by_cufile(report), "2 of 3 requests");
}

TEST_F(CufileReader, ShortReadsAreReadOn) {
  set("p2p short");
  const auto r = reader();
  expect_bytes(*r, {{0, 1001, 4 * mib}});
  EXPECT_EQ(by_cufile(r->report()), "1 of 1 requests");
}

TEST_F(CufileReader, WhatItCannotReadPreadReads) {
  for (const std::string fault : {"no_handles", "no_reads short", "errno"}) {
    SCOPED_TRACE(fault);
    set("module " + fault);
    const auto r = reader();
    expect_bytes(*r, {{0, 1001, 2 * mib}});
    const reader_report report = r->report();
    EXPECT_EQ(by_cufile(report), "0 of 1 requests");
    EXPECT_EQ(report.retries >= 1, fault != "no_handles");  // without handles, nothing is retried
    bool is_said = false;
    for (const grant& g : report.grants) {
      is_said = is_said || (g.granted == "no" && g.why.find("weights.bin: ") != std::string::npos);
    }
    EXPECT_TRUE(is_said);
  }
}

// If an allocation fails, no file may stay registered. The fake library aborts if it is closed
// while a file is still registered.
TEST_F(CufileReader, AFailedAllocationLeavesNoFileRegistered) {
  set("module");
  const int status = test::in_child([&] {
    std::vector<std::byte> memory(2 * mib);
    const read_request request{{0, 1001, 2 * mib}, memory.data()};
    bool failed = true;
    for (std::int64_t k = 1; failed; ++k) {
      test::arm({.k = k});
      try {
        const auto r = reader();
        r->gather({&request, 1});
      } catch (const std::bad_alloc&) {
      }
      failed = test::disarm() >= k;
      reader()->gather({&request, 1});
      if (std::memcmp(memory.data(), contents_.data() + 1001, memory.size()) != 0) return 1;
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(CufileReader, EveryRefusalHasItsReason) {
  const struct {
    const char* cufile;
    const char* cuda;
    const char* why;
  } cases[] = {{"module", "broken", "cuInit returned error 100 (no device)"},
               {"module", "0", "cuDeviceGetCount returned 0 devices"},
               {"no_start", "1", "cuFileDriverOpen returned error 5001"},
               {"", "1", "in compatibility mode"},
               {"module", "1", "nowhere/udev cannot be read"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.why);
    set(c.cufile, c.cuda);
    if (std::string(c.why).starts_with("nowhere")) how_.names.udev = "nowhere/udev";
    const auto r = reader();
    expect_bytes(*r, {{0, 1001, 2 * mib}});
    const reader_report report = r->report();
    EXPECT_EQ(report.asked, "cufile");
    EXPECT_EQ(report.granted, "pread");
    EXPECT_THAT(report.why, HasSubstr(c.why));
  }
}

TEST_F(CufileReader, CompatibilityModeIsUsedIfOneInsists) {
  how_.compatibility_mode = true;
  const auto r = reader();
  expect_bytes(*r, {{0, 1001, 2 * mib}});
  EXPECT_EQ(r->report().granted, "cufile");
  EXPECT_THAT(line(r->report()),
              HasSubstr("in compatibility mode"));  // the report must say so
}

TEST_F(CufileReader, MoreFilesThanAreKeptOpen) {
  set("module");
  how_.least_bytes = 100;
  for (int i = 1; i < 100; ++i) {
    files_.push_back({folder_ / std::to_string(i), 1000});
    std::filesystem::copy_file(files_[0].path, files_.back().path);
  }
  const auto r = reader();
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < 100; ++i) expect_bytes(*r, {{i, 11, 500}});
  }
  EXPECT_EQ(by_cufile(r->report()), "200 of 200 requests");
}

/// Returns the path of NVIDIA's own library. The environment variable MILLRACE_CUFILE can set this
/// path. The default is where `scripts/setup --cufile` installs the library.
std::filesystem::path real_library() {
  if (const char* given = std::getenv("MILLRACE_CUFILE"); given != nullptr) return given;
  const auto root = test::source_folder() / "build/cufile/lib";
  std::error_code absent;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root, absent)) {
    if (entry.path().filename() == "libcufile.so.0") return entry.path();
  }
  return {};
}

class RealCufile : public testing::Test {
 protected:
  void SetUp() override {
    if (library_.empty()) {
      GTEST_SKIP() << "needs NVIDIA's libcufile.so.0: scripts/setup --cufile brings it";
    }
  }
  const std::filesystem::path library_ = real_library();
};

TEST_F(RealCufile, IsLoadedAndHasTheFunctionsThatWeCall) {
  // Use a child process in its own folder, because the library writes a log to the working
  // directory.
  const test::temp_folder folder;
  const int status = test::in_child([&] {
    std::filesystem::current_path(folder.path());
    const cufile_functions found = load_cufile(library_.string());
    if (!found.complete) {
      std::cerr << found.why << '\n';
      return 1;
    }
    return found.why.find(" version 1.") != std::string::npos ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

// Without a GPU, the library must not be started: without a driver, the start of version 1.20 never
// returns. The check for a driver must not leave a log in the working directory either.
TEST_F(RealCufile, IsNotStartedWithoutAGpu) {
  if (probe_gpu().usable) GTEST_SKIP() << "there is a GPU here";
  const test::temp_folder folder;
  const int status = test::in_child([&] {
    ::alarm(30);
    std::filesystem::current_path(folder.path());
    test::write_bytes("weights.bin", std::vector<std::byte>(2 * mib, std::byte{5}));
    cufile_options how;
    how.names.cufile = library_.string();
    cufile_reader r({{std::filesystem::path("weights.bin"), 2 * mib}}, {}, how);
    std::vector<std::byte> memory(2 * mib);
    const read_request request{{0, 0, 2 * mib}, memory.data()};
    r.gather({&request, 1});
    if (memory != std::vector<std::byte>(2 * mib, std::byte{5})) return 1;
    const reader_report report = r.report();
    if (report.granted != "pread") return 2;
    if (report.why.find("driver") == std::string::npos &&
        report.why.find("cuInit") == std::string::npos) {
      return 3;
    }
    return std::filesystem::exists("cufile.log") ? 4 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(LoadCufile, SaysWhatIsMissing) {
  EXPECT_THAT(load_cufile("libno-such-thing.so.7").why, HasSubstr("libno-such-thing.so.7"));
  const cufile_functions other = load_cufile("libm.so.6");
  EXPECT_FALSE(other.complete);
  EXPECT_THAT(other.why, HasSubstr("libm.so.6 lacks cuFileDriverOpen, "));
}

}  // namespace
}  // namespace millrace::loader
