// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/detail/io/mmap_reader.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>

#include "support/faulty_calls.hpp"
#include "support/paths.hpp"

// Tests results that the real kernel does not return on demand. After a short result, a reader must
// continue to read. After an error, it must repeat the call if that may help, and otherwise report
// the error to the caller.
namespace millrace::loader {
namespace {

using test::fault_scope;
using testing::HasSubstr;

constexpr std::int64_t nfs = 0x6969;
constexpr std::uint64_t file_bytes = 50'000;

class ReadFaults : public testing::Test {
 protected:
  ReadFaults() {
    options_.files = std::make_shared<open_files>();
    options_.retry = {.attempts = 4,
                      .first_wait = std::chrono::milliseconds(1),
                      .most_wait = std::chrono::milliseconds(2)};
    for (std::size_t i = 0; i < 12; ++i) {
      std::vector<std::byte> contents(file_bytes);
      for (std::size_t k = 0; k < contents.size(); ++k) {
        contents[k] = static_cast<std::byte>((k * 31 + i * 7 + k / 251) & 0xff);
      }
      const auto path = folder_ / ("file_" + std::to_string(i) + ".bin");
      test::write_bytes(path, contents);
      files_.push_back({path, file_bytes});
      contents_.push_back(std::move(contents));
    }
  }

  /// Reads one range of each file in a single gather. Returns whether all bytes are right.
  bool gathers_all(range_reader& reader, std::size_t files = 12) const {
    std::vector<std::vector<std::byte>> found(files, std::vector<std::byte>(9000, std::byte{0xAB}));
    std::vector<read_request> requests;
    for (std::size_t i = 0; i < files; ++i) {
      requests.push_back({{static_cast<std::int64_t>(i), 100 + i, 9000}, found[i].data()});
    }
    reader.gather(requests);
    for (std::size_t i = 0; i < files; ++i) {
      if (!std::equal(found[i].begin(), found[i].end(),
                      contents_[i].begin() + static_cast<std::ptrdiff_t>(100 + i))) {
        return false;
      }
    }
    return true;
  }

  /// Returns the code of the error that gathers_all() throws. Returns 0 if it succeeds, or -1 if it
  /// reads wrong bytes.
  int code_of(range_reader& reader) const {
    try {
      return gathers_all(reader) ? 0 : -1;
    } catch (const io_error& e) {
      return e.code();
    }
  }

  std::string message_of(range_reader& reader) const {
    try {
      return gathers_all(reader) ? "" : "other bytes";
    } catch (const io_error& e) {
      return e.what();
    }
  }

  static std::string grants_of(const range_reader& reader) {
    std::string text;
    for (const grant& g : reader.report().grants) {
      text += g.asked + ": " + g.granted + " (" + g.why + ")\n";
    }
    return text;
  }

  test::temp_folder folder_;
  std::vector<data_file> files_;
  std::vector<std::vector<std::byte>> contents_;
  reader_options options_;
};

TEST_F(ReadFaults, ShortReadsAreGoneOnWith) {
  for (const std::size_t most : {1u, 7u, 4096u, 8999u}) {
    pread_reader reader(files_, options_);
    const fault_scope faults;
    test::longest_read = most;
    EXPECT_TRUE(gathers_all(reader)) << most;
  }
}

TEST_F(ReadFaults, InterruptedCallsAreRepeatedAndNotCounted) {
  pread_reader reader(files_, options_);
  const fault_scope faults(test::read_fault, EINTR, 50);
  test::nowait_code = EAGAIN;
  EXPECT_TRUE(gathers_all(reader));
  EXPECT_EQ(test::read_fault.failed, 50);
  test::fault_scope::set(test::open_fault, EINTR, 5);
  pread_reader other(files_, options_);
  options_.files->set_limits({.files = 4});
  EXPECT_TRUE(gathers_all(other));
  EXPECT_EQ(reader.report().retries + other.report().retries, 0);
}

TEST_F(ReadFaults, WithoutCallsThatDoNotWaitAllIsRead) {
  for (const int code : {EAGAIN, EOPNOTSUPP, EINVAL}) {
    const fault_scope faults;
    test::nowait_code = code;
    pread_reader reader(files_, options_);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(gathers_all(reader)) << code;
  }
}

// A non-blocking read that returns no bytes does not mean that the file ends there. Only a blocking
// read can tell.
TEST_F(ReadFaults, NothingReadWithoutWaitingIsNoEndOfAFile) {
  const fault_scope faults;
  test::nowait_code = -1;
  pread_reader reader(files_, options_);
  EXPECT_TRUE(gathers_all(reader));
}

TEST_F(ReadFaults, AFileSystemWithoutCallsThatDoNotWaitIsInTheReport) {
  const auto said = [&](int code) {
    const fault_scope faults;
    test::nowait_code = code;
    pread_reader reader(files_, options_);
    EXPECT_TRUE(gathers_all(reader)) << code;
    const reader_report report = reader.report();
    return std::ranges::any_of(report.grants, [](const grant& g) {
      return g.asked == "RWF_NOWAIT" && g.granted == "no" && !g.why.empty();
    });
  };
  EXPECT_TRUE(said(EOPNOTSUPP));
  EXPECT_FALSE(said(EAGAIN));
  EXPECT_FALSE(said(EIO)) << "of one read, and not of the file system";
}

TEST_F(ReadFaults, AnErrorOfALocalDiskIsSaidAtOnceWithItsPlace) {
  pread_reader reader(files_, options_);
  {
    const fault_scope faults(test::read_fault, EIO);
    test::nowait_code = EAGAIN;
    EXPECT_THAT(message_of(reader), HasSubstr("file_"));
    EXPECT_THAT(message_of(reader), HasSubstr(".bin: read: Input/output error (at byte 1"));
    EXPECT_EQ(reader.report().retries, 0);
  }
  EXPECT_TRUE(gathers_all(reader));  // the reader can still be used
}

TEST_F(ReadFaults, AnErrorOfANetworkIsTriedAgainAndCounted) {
  for (const int code : {EIO, ESTALE, ETIMEDOUT, EAGAIN, EHOSTUNREACH}) {
    options_.files = std::make_shared<open_files>();
    pread_reader reader(files_, options_);
    const fault_scope faults(test::read_fault, code, 2);
    test::nowait_code = EOPNOTSUPP;
    test::pretended_magic = nfs;
    EXPECT_TRUE(gathers_all(reader)) << code;
    EXPECT_EQ(reader.report().retries, 2) << code;
  }
}

TEST_F(ReadFaults, ANetworkThatStaysBrokenIsGivenUp) {
  options_.gather_threads = 1;
  pread_reader reader(files_, options_);
  const fault_scope faults(test::read_fault, ETIMEDOUT);
  test::pretended_magic = nfs;
  EXPECT_THAT(message_of(reader), HasSubstr("given up after 4 attempts"));
  EXPECT_EQ(reader.report().retries, 3);
  EXPECT_EQ(test::read_fault.failed, 4);
}

TEST_F(ReadFaults, AFileThatIsGoneIsNotTriedAgain) {
  std::filesystem::remove(files_[3].path);
  pread_reader reader(files_, options_);
  const fault_scope faults;
  test::pretended_magic = nfs;
  EXPECT_EQ(code_of(reader), ENOENT);
  EXPECT_EQ(reader.report().retries, 0);
}

TEST_F(ReadFaults, AnOpenOfANetworkIsTriedAgain) {
  for (const bool mapped : {false, true}) {
    options_.files = std::make_shared<open_files>();
    const auto reader = [&]() -> std::unique_ptr<range_reader> {
      if (mapped) return std::make_unique<mmap_reader>(files_, options_);
      return std::make_unique<pread_reader>(files_, options_);
    }();
    const fault_scope faults(test::open_fault, ESTALE, 3);
    test::pretended_magic = nfs;
    EXPECT_TRUE(gathers_all(*reader)) << mapped;
    EXPECT_GE(reader->report().retries, 1);
  }
}

// If any call fails, the reader must report the failure and stay usable. The test makes the first
// call fail, then the second, and so on, until a run ends before it reaches the failing call. This
// method finds most bugs of this kind.
TEST_F(ReadFaults, WhicheverCallFailsIsSaidAndTheReaderGoesOn) {
  for (test::call_fault* const fault : {&test::open_fault, &test::read_fault}) {
    for (const bool mapped : {false, true}) {
      if (mapped && fault == &test::read_fault) continue;  // mmap does not call read
      int said = 0;
      for (int k = 0;; ++k) {
        ASSERT_LT(k, 200);
        options_.files = std::make_shared<open_files>(open_file_limits{.files = 6, .maps = 3});
        const auto reader = [&]() -> std::unique_ptr<range_reader> {
          if (mapped) return std::make_unique<mmap_reader>(files_, options_);
          return std::make_unique<pread_reader>(files_, options_);
        }();
        const fault_scope faults(*fault, EIO, 1, k);
        test::nowait_code = EAGAIN;
        const int code = code_of(*reader);
        if (fault->failed == 0) {
          EXPECT_EQ(code, 0);
          break;
        }
        // If a file cannot be mapped, it is read instead, so the gather may succeed.
        EXPECT_TRUE(code == EIO || (mapped && code == 0)) << "call " << k << ": " << code;
        said += code == EIO;
        EXPECT_TRUE(gathers_all(*reader)) << "after call " << k;
      }
      EXPECT_GT(said, mapped ? 0 : 11);
    }
  }
}

// If the process has many other open files, the readers must close the least recently used of their
// own files.
TEST_F(ReadFaults, WithoutDescriptorsTheLeastUsedAreClosed) {
  pread_reader reader(files_, options_);
  EXPECT_TRUE(gathers_all(reader, 6));
  EXPECT_EQ(options_.files->usage().files, 6);
  const fault_scope faults(test::open_fault, EMFILE, 3);
  EXPECT_TRUE(gathers_all(reader));
  EXPECT_EQ(options_.files->usage().refusals, 3);
  EXPECT_LE(options_.files->usage().files, 9);
  // This reader has no open file that it could close.
  const auto none = std::make_shared<open_files>();
  options_.files = none;
  pread_reader other(files_, options_);
  test::fault_scope::set(test::open_fault, EMFILE);
  EXPECT_THAT(message_of(other), HasSubstr("raise the limit (ulimit -n)"));
}

// WekaFS refuses mmap after some hundreds of maps. A file that cannot be mapped must be read
// instead.
TEST_F(ReadFaults, MapsThatAreRefusedAreRead) {
  for (const int code : {EPERM, ENOMEM, EAGAIN, ENODEV}) {
    options_.files = std::make_shared<open_files>();
    mmap_reader reader(files_, options_);
    const fault_scope faults(test::map_fault, code, INT_MAX, 5);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(gathers_all(reader)) << code;
    EXPECT_LE(options_.files->usage().maps, 5);
    EXPECT_GE(options_.files->usage().maps, 4);
    EXPECT_THAT(grants_of(reader), HasSubstr("it is read instead"));
    EXPECT_THAT(grants_of(reader), HasSubstr(std::generic_category().message(code)));
    EXPECT_LE(test::map_fault.failed, 14);  // a refused map is not retried for every read
  }
}

TEST_F(ReadFaults, OneMapThatIsRefusedTakesAnothersPlace) {
  mmap_reader reader(files_, options_);
  EXPECT_TRUE(gathers_all(reader, 6));
  const fault_scope faults(test::map_fault, ENOMEM, 1);
  EXPECT_TRUE(gathers_all(reader, 7));
  EXPECT_EQ(options_.files->usage().maps, 6);
  EXPECT_EQ(options_.files->usage().mmaps, 7);
}

}  // namespace
}  // namespace millrace::loader
