// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/filter.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/verify.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/odd_mask.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using ranges = std::vector<document_numbers>;

indexed_dataset opened(const std::filesystem::path& prefix) {
  return indexed_dataset(prefix, {.check = check_level::full});
}

TEST(DocumentNumbers, AreJoinedAndInverted) {
  EXPECT_EQ(joined_documents({{5, 7}, {3, 3}, {0, 2}, {2, 3}, {6, 9}}), (ranges{{0, 3}, {5, 9}}));
  EXPECT_EQ(joined_documents({}), ranges());
  EXPECT_EQ(other_documents({{0, 3}, {5, 9}}, 10), (ranges{{3, 5}, {9, 10}}));
  EXPECT_EQ(other_documents({{1, 2}}, 2), (ranges{{0, 1}}));
  EXPECT_EQ(other_documents({}, 2), (ranges{{0, 2}}));
  EXPECT_EQ(other_documents({{0, 2}}, 2), ranges());
}

// The new files must have the bytes that a writer makes of the kept documents alone.
TEST(FilterDocuments, WritesWhatTheKeptDocumentsGive) {
  const test::temp_folder folder(test::quick_folder());
  const std::uint64_t seed = test::seed(8);
  int with_modes = 0;
  int with_duplicates = 0;
  for (std::uint64_t n = 0; n < 300; ++n) {
    SCOPED_TRACE(testing::Message() << "MILLRACE_SEED=" << seed << ", case " << n);
    std::mt19937_64 random(seed + n);
    const auto below = [&](std::size_t end) {
      return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
    };
    test::documents_of<std::uint16_t> all;
    std::vector<std::int8_t> modes;
    const bool has_modes = below(3) == 0;
    for (std::size_t count = 1 + below(20); count > 0; --count) {
      auto& document = all.emplace_back();
      for (std::size_t sequences = below(4); sequences > 0; --sequences) {
        auto& sequence = document.emplace_back();
        modes.push_back(static_cast<std::int8_t>(below(2)));
        for (std::size_t size = below(3); size > 0; --size) {
          sequence.push_back(static_cast<std::uint16_t>(below(3)));
        }
      }
    }
    if (!has_modes || modes.empty()) modes.clear();
    with_modes += modes.empty() ? 0 : 1;
    test::write_dataset(folder.path() / "all", all, modes);
    const bool has_mask = below(2) == 0;
    std::filesystem::remove(folder.path() / "all.mask");
    if (has_mask) test::write_odd_mask(folder.path() / "all");
    const indexed_dataset data = opened(folder.path() / "all");

    // The first of equal documents is kept, or a random choice.
    ranges keep;
    test::documents_of<std::uint16_t> kept;
    std::vector<std::int8_t> kept_modes;
    std::map<std::pair<std::vector<std::vector<std::uint16_t>>, std::vector<std::int8_t>>, int>
        seen;
    const bool drop_duplicates = below(2) == 0;
    std::size_t sequence = 0;
    for (std::size_t d = 0; d < all.size(); ++d) {
      std::vector<std::int8_t> of_document;
      for (std::size_t s = 0; s < all[d].size(); ++s, ++sequence) {
        if (!modes.empty()) of_document.push_back(modes[sequence]);
      }
      const bool is_kept = drop_duplicates ? ++seen[{all[d], of_document}] == 1 : below(2) == 0;
      if (!is_kept) continue;
      keep.push_back({static_cast<std::int64_t>(d), static_cast<std::int64_t>(d) + 1});
      kept.push_back(all[d]);
      kept_modes.insert(kept_modes.end(), of_document.begin(), of_document.end());
    }
    if (kept.empty()) continue;
    keep = joined_documents(keep);
    if (drop_duplicates) {
      const auto copies = repeated_documents(data, static_cast<int>(1 + below(3)));
      ASSERT_EQ(other_documents(copies, data.document_count()), keep);
      with_duplicates += copies.empty() ? 0 : 1;
    }
    const filtered_dataset done =
        filter_documents(data, keep, folder.path() / "new", {.overwrite = true});
    // A dataset with modes but without sequences looks like one without modes.
    test::write_dataset(folder.path() / "expected", kept, kept_modes);
    for (const char* suffix : {".bin", ".idx"}) {
      ASSERT_EQ(test::read_bytes(test::suffixed(folder.path() / "new", suffix)),
                test::read_bytes(test::suffixed(folder.path() / "expected", suffix)))
          << suffix;
    }
    const indexed_dataset written = opened(folder.path() / "new");
    EXPECT_EQ(done.documents, written.document_count());
    EXPECT_EQ(done.sequences, written.sequence_count());
    EXPECT_EQ(done.tokens, written.token_count());
    EXPECT_EQ(verify_sums(folder.path() / "new").value().root, done.sum_root);
    EXPECT_EQ(std::filesystem::exists(folder.path() / "new.mask"), has_mask);
    if (!has_mask) continue;
    test::expect_odd_mask(folder.path() / "new");
    EXPECT_EQ(token_mask::find(written)->root(), done.mask_root);
  }
  EXPECT_GT(with_modes, 20);
  EXPECT_GT(with_duplicates, 20);
}

// A model learns other things from documents with other masks.
TEST(FilterDocuments, KeepsDocumentsThatDifferInTheirMask) {
  const test::temp_folder folder;
  const auto prefix = folder.path() / "a";
  test::write_dataset<std::uint16_t>(
      prefix, {{{9}}, {{1, 2, 3}}, {{1, 2, 3}}, {{1, 2}, {3}}, {{1, 2, 3}}, {{}}, {{}}});
  const auto repeated = [&] { return repeated_documents(opened(prefix), 1); };
  EXPECT_EQ(repeated(), (ranges{{2, 3}, {4, 5}, {6, 7}}));
  formats::bit_buffer bits;
  for (const int bit : {1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 1}) bits.append_run(bit != 0, 1);
  test::write_bytes(folder.path() / "a.mask", test::encode_mask(bits.bits()));
  EXPECT_EQ(repeated(), (ranges{{2, 3}, {6, 7}}));
}

TEST(FilterDocuments, RefusesWhatCannotBeWritten) {
  const test::temp_folder folder;
  const auto prefix = folder.path() / "a";
  test::write_dataset<std::uint16_t>(prefix, {{{1}}, {{2}}, {{3}}});
  const indexed_dataset data = opened(prefix);
  const auto message = [&](const ranges& keep, const std::filesystem::path& to) {
    try {
      (void)filter_documents(data, keep, to);
    } catch (const config_error& e) {
      return std::string(e.what()).substr(std::string(e.what()).find(": ") + 2);
    }
    return std::string("written");
  };
  const auto other = folder.path() / "b";
  EXPECT_EQ(message({}, other), "no document is kept, so there is nothing to write");
  EXPECT_EQ(message({{1, 4}}, other), "there is no document 3; it has documents 0 to 2");
  EXPECT_EQ(message({{0, 1}}, prefix),
            "the output is the input; write to another prefix, then rename the files");
  std::filesystem::create_symlink("a.idx", folder.path() / "link.idx");
  EXPECT_EQ(message({{0, 1}}, folder.path() / "link"),
            "the output is the input; write to another prefix, then rename the files");
  EXPECT_EQ(message({{0, 1}}, other), "written");
  EXPECT_NE(message({{0, 1}}, other), "written");  // it exists now
  // Nothing is left of those that were refused.
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder.path())) {
    ++files;
  }
  EXPECT_EQ(files, 2U + 1U + 3U);
}

// A callback that throws stands for a signal or an error in between.
TEST(FilterDocuments, LeavesNothingIfItIsStopped) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder.path() / "a", {{{1}}, {{2}}, {{3}}});
  const indexed_dataset data = opened(folder.path() / "a");
  (void)filter_documents(data, {{0, 1}}, folder.path() / "b");
  const auto before = test::read_bytes(folder.path() / "b.idx");
  filter_options options;
  options.overwrite = true;
  options.progress = [](std::int64_t) { throw error("stopped"); };
  EXPECT_THROW((void)filter_documents(data, {{0, 3}}, folder.path() / "b", options), error);
  options.progress = {};
  options.meta = [](const filtered_dataset&) -> std::string { throw error("stopped"); };
  EXPECT_THROW((void)filter_documents(data, {{0, 3}}, folder.path() / "b", options), error);
  EXPECT_EQ(test::read_bytes(folder.path() / "b.idx"), before);
  for (const auto& each : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_NE(each.path().extension(), ".partial") << each.path();
  }
}

}  // namespace
}  // namespace millrace::dataset
