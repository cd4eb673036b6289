// SPDX-License-Identifier: Apache-2.0
#include "support/merge_fault.hpp"

#include <fstream>
#include <iostream>

#include <millrace/formats/mmidx.hpp>

#include "merge/content_key.hpp"
#include "support/small_disk.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::file_set;
using test::files_of;
using test::strings;

class MergeLimits : public test::merge_fault {
 protected:
  void expect_refusal(const test::program_result& result, const std::string& part) {
    expect_sentence(result, part);
    EXPECT_TRUE(files_of(out()).empty());
  }
};

TEST_F(MergeLimits, AFileSizeLimitLeavesNothing) {
  for (const strings& more : {strings{}, shuffled, dropping}) {
    if (more == dropping && !has_xxhash()) continue;
    const file_set wanted = undisturbed(more);
    test::program_options options;
    int failed = 0;
    for (::rlim_t limit = 0;; limit = limit * 3 / 2 + 300) {
      SCOPED_TRACE(limit);
      empty_out();
      options.file_size = limit;
      const auto result = test::run_program(command(more), options);
      if (result.status == 0) break;
      ++failed;
      EXPECT_EQ(result.status, 1);
      EXPECT_TRUE(files_of(out()).empty());
      // The limit also applies to the file that receives stderr. So the message is complete only if
      // the limit is high enough.
      if (limit > 600) expect_refusal(result, std::generic_category().message(EFBIG));
      if (HasFailure()) return;
    }
    expect_files(wanted);
    EXPECT_GT(failed, 10);
  }
}

// A real merge can have so many parts that one open descriptor per part would exceed the limit.
TEST_F(MergeLimits, ThirtyTwoDescriptorsDoForAnyNumberOfParts) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors, and takes their lack for a fault";
#endif
  make_parts(40);
  test::program_options options;
  for (const strings& more : {strings{}, shuffled, dropping}) {
    if (more == dropping && !has_xxhash()) continue;
    const file_set wanted = undisturbed(more);
    options.descriptors = 32;
    empty_out();
    const auto result = test::run_program(command(more), options);
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
    for (::rlim_t limit = 4; limit < 32; ++limit) {
      SCOPED_TRACE(limit);
      empty_out();
      options.descriptors = limit;
      const auto fewer = test::run_program(command(more), options);
      if (fewer.status == 0) {
        expect_files(wanted);
      } else if (limit < 8) {  // the dynamic linker may fail first, with its own message
        EXPECT_TRUE(files_of(out()).empty());
      } else {
        expect_refusal(fewer, std::generic_category().message(EMFILE));
      }
      if (HasFailure()) return;
    }
  }
}

// Three million documents of one token each, all different. Their keys take 100 MB at once.
TEST_F(MergeLimits, DuplicatesAreFoundInTheMemoryThatIsGiven) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer takes memory of its own";
#endif
  if (!has_xxhash()) GTEST_SKIP() << "this build has no xxHash";
  constexpr std::uint64_t documents = 3'000'000;
  fs::remove_all(parts());
  fs::create_directory(parts());
  {
    std::ofstream bin(parts() / "a.bin", std::ios::binary);
    std::ofstream idx(parts() / "a.idx", std::ios::binary);
    const auto header = formats::encode_mmidx_header(formats::dtype::int32, documents, documents);
    idx.write(reinterpret_cast<const char*>(header.data()), std::ssize(header));
    const auto write = [](std::ofstream& to, std::uint64_t count, auto&& number) {
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto value = number(i);
        to.write(reinterpret_cast<const char*>(&value), sizeof value);
      }
    };
    write(bin, documents, [](std::uint64_t i) { return static_cast<std::uint32_t>(i); });
    write(idx, documents, [](std::uint64_t) { return std::int32_t{1}; });
    write(idx, documents, [](std::uint64_t i) { return 4 * i; });
    write(idx, documents + 1, [](std::uint64_t i) { return i; });
  }
  const auto peak_with = [&](const char* megabytes) {
    empty_out();
    const auto result = run({"--drop-duplicates", "--memory", megabytes});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(fs::file_size(out() / "whole.bin"), 4 * documents);
    return result.peak_rss_bytes >> 20;
  };
  const std::uint64_t little = peak_with("4");
  const std::uint64_t enough = peak_with("1024");
  std::cout << little << " MiB with --memory 4, " << enough << " MiB with --memory 1024\n";
  EXPECT_LT(little, 50U);
  EXPECT_GT(enough, 80U);
}

TEST_F(MergeLimits, AFolderThatMayNotBeWrittenIsTold) {
  const file_set wanted = undisturbed({});
  test::program_options options;
  options.ordinary_user = true;
  fs::permissions(out(), fs::perms::owner_read | fs::perms::owner_exec);
  const auto result = test::run_program(command({}), options);
  fs::permissions(out(), fs::perms::owner_all);
  if (result.status == test::cannot_become) GTEST_SKIP() << "cannot become an ordinary user";
  expect_refusal(result, (out() / "whole").string());
  ASSERT_EQ(run({}).status, 0);
  expect_files(wanted);
}

TEST_F(MergeLimits, PartsThatMayNotBeReadAreTold) {
  test::program_options options;
  options.ordinary_user = true;
  for (const char* end : {".bin", ".idx", ".sum", ".src", ".meta"}) {
    const fs::path path = parts() / (part_name(1) + end);
    fs::permissions(path, fs::perms::none);
    const auto result = test::run_program(command({}), options);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    if (result.status == test::cannot_become) GTEST_SKIP() << "cannot become an ordinary user";
    expect_refusal(result, path.string());
  }
}

// Tries disks of growing sizes until the merge fits. If the disk has too few bytes, the merge
// refuses before it copies anything. If the disk has too few inodes, the merge may fail later, even
// at its last sidecar (a file next to the `.bin`, such as P.sum). In both cases, the merge leaves
// no files.
TEST_F(MergeLimits, AFullDiskLeavesNothing) {
  const int status = test::in_child([&] {
    if (!test::enter_mount_namespace()) return test::cannot_try;
    for (const strings& more : {strings{}, shuffled, dropping}) {
      if (more == dropping && !has_xxhash()) continue;
      const file_set wanted = undisturbed(more);
      std::uintmax_t total = 0;
      for (const auto& [name, bytes] : wanted) total += bytes.size();
      if (!more.empty()) total *= 2;  // a shuffle temporarily needs twice the space
      int failed = 0;
      const auto try_disk = [&](const std::string& limits, const std::string& sentence,
                                bool& fits) {
        SCOPED_TRACE(limits);
        if (!test::mount_memory(out(), limits)) return test::cannot_try;
        const auto result = run(more);
        fits = result.status == 0;
        if (fits) {
          expect_files(wanted);
        } else {
          ++failed;
          expect_sentence(result, sentence);
          EXPECT_TRUE(files_of(out()).empty());
        }
        if (::umount(out().c_str()) != 0) return test::cannot_try;
        return HasFailure() ? 1 : 0;
      };
      bool fits = false;
      // The smallest disk has space for the headers of P.sum and P.src. Close to the total size,
      // the test tries every number of pages.
      for (std::uintmax_t size = 8192; !fits;
           size += size < total * 95 / 100 && size > 40'960 ? 409'600 : 4096) {
        const std::string limits = "size=" + std::to_string(size);
        if (const int problem = try_disk(limits, "bytes are needed, ", fits)) return problem;
        if (size > total * 15 / 10) return 3;  // this space must suffice
      }
      fits = false;
      for (int inodes = 1; !fits; ++inodes) {
        const std::string limits = "nr_inodes=" + std::to_string(inodes);
        if (const int problem = try_disk(limits, std::generic_category().message(ENOSPC), fits)) {
          return problem;
        }
      }
      std::cout << failed << " full disks" << std::endl;
      if (failed < 20) return 2;
    }
    return 0;
  });
  if (status == test::cannot_try) GTEST_SKIP() << "NOT tested: may not mount a small tmpfs here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace millrace::preprocess
