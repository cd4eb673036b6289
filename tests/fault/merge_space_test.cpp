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

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;

/// Two parts of 400 kB of tokens together, one of which is found damaged when it is copied.
class MergeSpace : public testing::Test {
 protected:
  MergeSpace() {
    fs::create_directory(folder_ / "in");
    fs::create_directory(folder_ / "out");
    write("a", false);
    write("b", false);
  }

  void write(const std::string& name, bool damaged) const {
    const std::vector<std::int32_t> lengths(100, 1000);
    const std::vector<std::int64_t> ends = {0, 50, damaged ? 40 : 70, 100};
    test::write_bytes(folder_ / "in" / (name + ".bin"), std::vector<std::byte>(200'000));
    test::write_bytes(folder_ / "in" / (name + ".idx"),
                      formats::encode_mmidx(formats::dtype::uint16, lengths, ends));
  }

  /// What `work` is refused with on a disk of so many bytes, "" for nothing; with no disk to try
  /// it on, ends this process, a child.
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

  // Space first, damage second: nothing was read, and so nothing copied, before the first refusal.
  void expect_told_first(const std::function<void(const merge_options&)>& work) {
    const int status = test::in_child([&] {
      if (::unshare(CLONE_NEWNS) != 0 ||
          ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return test::cannot_try;
      }
      const std::string sentence = (folder_ / "out" / "whole").string() +
                                   ": the disk has no room for the whole, at least 40";
      EXPECT_EQ(refusal("4m", work), "");
      EXPECT_TRUE(refusal("256k", work).starts_with(sentence)) << refusal("256k", work);
      write("a", true);
      EXPECT_NE(refusal("4m", work).find("a document ends before sequence"), std::string::npos);
      EXPECT_TRUE(refusal("256k", work).starts_with(sentence)) << refusal("256k", work);
      EXPECT_TRUE(refusal("392k", work).starts_with(sentence)) << "the index does not fit";
      return HasFailure() ? 1 : 0;
    });
    if (status == test::cannot_try) GTEST_SKIP() << "NOT tested: may not mount a small tmpfs here";
    EXPECT_EQ(status, 0);
  }

  test::temp_folder folder_;
};

TEST_F(MergeSpace, IsKnownToBeTooLittleBeforeAnythingIsCopied) {
  expect_told_first([](const merge_options& options) { (void)merge(options); });
}

TEST_F(MergeSpace, IsKnownToBeTooLittleBeforeAnythingIsShuffled) {
  expect_told_first([](const merge_options& options) { (void)merge_shuffled(options, 7); });
}

}  // namespace
}  // namespace millrace::preprocess
