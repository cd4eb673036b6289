// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mount.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>

#include "merge/merge.hpp"
#include "merge/shuffle_documents.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/summed_dataset.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;

/// Two parts (datasets to merge) that have 400 kB of tokens together. A test can damage the tokens
/// of a part. The merge notices this damage only when it reads these tokens.
class MergeSpace : public testing::Test {
 protected:
  MergeSpace() {
    fs::create_directory(folder_ / "in");
    fs::create_directory(folder_ / "out");
    write("a");
    write("b");
  }

  void write(const std::string& name) const {
    const std::vector<std::int32_t> lengths(100, 1000);
    const std::vector<std::int64_t> ends = {0, 50, 70, 100};
    test::write_bytes(folder_ / "in" / (name + ".bin"), std::vector<std::byte>(200'000));
    test::write_bytes(folder_ / "in" / (name + ".idx"),
                      formats::encode_mmidx(formats::dtype::uint16, lengths, ends));
    test::write_sums(folder_ / "in" / name);
  }

  /// Mounts a disk of the given size and runs `work` on it. Returns the message of the error that
  /// `work` throws, or "" if it succeeds. Exits if such a disk cannot be mounted, so call it in a
  /// child process.
  std::string refusal(const std::string& size,
                      const std::function<void(const merge_options&)>& work) {
    const fs::path out = folder_ / "out";
    if (::mount("none", out.c_str(), "tmpfs", 0, ("size=" + size).c_str()) != 0) {
      ::_exit(test::cannot_try);
    }
    std::string what;
    try {
      work({.input = folder_ / "in", .output_prefix = out / "whole"});
    } catch (const error& e) {
      what = e.what();
      if (!fs::is_empty(out)) what = "files were left by: " + what;
    }
    if (::umount(out.c_str()) != 0) ::_exit(test::cannot_try);
    return what;
  }

  static std::string size_of(std::uint64_t bytes) { return std::to_string(bytes / 1024) + "k"; }

  // Expects that the merge checks the disk space before it reads tokens. The tokens are damaged. So
  // an error about missing space, not about the damage, shows that the merge has not copied
  // anything.
  //
  // @param needed  bytes that the merge needs, rounded up to pages
  // @param begun  bytes of `needed` that headers already occupy at the time of the check
  void expect_told_first(const std::string& what, std::uint64_t needed, std::uint64_t begun,
                         const std::function<void(const merge_options&)>& work) {
    const int status = test::in_child([&] {
      if (::unshare(CLONE_NEWNS) != 0 ||
          ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return test::cannot_try;
      }
      const auto sentence = [&](std::uint64_t free) {
        return (folder_ / "out" / "whole").string() + ": not enough disk space for " + what + ": " +
               std::to_string(needed - begun) + " bytes are needed, " +
               std::to_string(free - begun) + " are free, " + std::to_string(needed - free) +
               " are missing; nothing was copied yet; free disk space, then start again";
      };
      EXPECT_EQ(refusal(size_of(needed), work), "");
      test::flip_bit(folder_ / "in/a.bin", 150'000);
      EXPECT_NE(refusal(size_of(needed), work).find("a.bin"), std::string::npos);
      for (const std::uint64_t free :
           {std::uint64_t{4096}, std::uint64_t{262'144}, needed - 4096}) {
        EXPECT_EQ(refusal(size_of(free), work), sentence(free));
      }
      return HasFailure() ? 1 : 0;
    });
    if (status == test::cannot_try) GTEST_SKIP() << "NOT tested: may not mount a small tmpfs here";
    EXPECT_EQ(status, 0);
  }

  test::temp_folder folder_;
};

// The merge needs these pages of 4096 bytes: 98 for the tokens, one for the index of 2490 bytes,
// and one for the checksums.
TEST_F(MergeSpace, IsKnownToBeTooLittleBeforeAnythingIsCopied) {
  expect_told_first("the merged dataset", std::uint64_t{100} * 4096, 0,
                    [](const merge_options& options) { (void)merge(options); });
}

// The merge needs the pages of the previous test and 98 pages for the temporary copy of the
// documents. In this copy, each document also has a header of 64 bytes and the lengths of its
// sequences. The header of P.sum is written before the check.
TEST_F(MergeSpace, IsKnownToBeTooLittleBeforeAnythingIsShuffled) {
  expect_told_first("the shuffled dataset and the temporary copy of the documents",
                    std::uint64_t{198} * 4096, 4096,
                    [](const merge_options& options) { (void)merge_shuffled(options, 7); });
}

}  // namespace
}  // namespace millrace::preprocess
