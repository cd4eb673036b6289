// SPDX-License-Identifier: Apache-2.0
#include "merge/shuffle_documents.hpp"

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/instant/feistel.hpp>
#include <millrace/dataset/indexed_dataset.hpp>

#include "merge/shuffle_spill.hpp"
#include "merge/sized_dataset.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/odd_mask.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::preprocess {
namespace {

using documents = test::documents_of<std::uint16_t>;

documents read_back(const std::filesystem::path& prefix) {
  const dataset::indexed_dataset data(prefix, {.check = dataset::check_level::full});
  documents out;
  for (std::int64_t d = 0; d < data.document_count(); ++d) {
    auto& document = out.emplace_back();
    for (std::int64_t s = data.document(d).first; s < data.document(d).last; ++s) {
      const auto tokens = data.tokens<std::uint16_t>(s);
      document.emplace_back(tokens.begin(), tokens.end());
    }
  }
  return out;
}

// Reference implementation. Keeps all documents in memory, and moves each to the place that the
// permutation gives.
documents shuffled(const documents& in, std::uint64_t seed) {
  if (in.empty()) return {};
  const dataset::feistel order(
      static_cast<std::int64_t>(in.size()),
      dataset::keys_of(dataset::absorb(
          dataset::order_hash(dataset::shuffle_of::documents, seed, dataset::name_hash("")), 0)));
  documents out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    out.push_back(in[static_cast<std::size_t>(order(static_cast<std::int64_t>(i)))]);
  }
  return out;
}

TEST(ShuffleDocuments, PutsEveryDocumentWhereThePermutationSays) {
  std::mt19937_64 random(test::seed(1));
  for (const int most : {0, 1, 3, 300, 301}) {
    const bool has_mask = most != 300;
    const test::temp_folder folder(test::quick_folder());
    std::filesystem::create_directory(folder / "in");
    documents all;
    for (const char* name : {"in/a", "in/b", "in/c"}) {
      documents part(most == 0 ? 0 : random() % static_cast<std::uint64_t>(most + 1));
      for (auto& document : part) {
        document.resize(random() % 4);
        for (auto& sequence : document) {
          sequence.resize(random() % 50 == 0 ? 700'000 : random() % 9);
          for (auto& token : sequence) token = static_cast<std::uint16_t>(random());
        }
      }
      test::write_dataset<std::uint16_t>(folder / name, part);
      if (has_mask) test::write_odd_mask(folder / name);
      all.insert(all.end(), part.begin(), part.end());
    }
    const std::uint64_t seed = random();
    const merge_summary summary =
        merge_shuffled({.input = folder / "in", .output_prefix = folder / "out"}, seed);
    EXPECT_EQ(summary.documents, static_cast<std::int64_t>(all.size()));
    ASSERT_EQ(read_back(folder / "out"), shuffled(all, seed)) << all.size();
    if (has_mask) test::expect_odd_mask(folder / "out");
    EXPECT_EQ(std::filesystem::exists(folder / "out.mask"), has_mask);
    EXPECT_FALSE(std::filesystem::exists(folder / "out.shuffle.partial"));
  }
}

TEST(ShuffleDocuments, CarriesModes) {
  const test::temp_folder folder(test::quick_folder());
  std::filesystem::create_directory(folder / "in");
  test::write_dataset<std::uint16_t>(folder / "in/a", {{{10}, {11}}, {}, {{12}}, {{13}}},
                                     {10, 11, 12, 13});
  (void)merge_shuffled(
      {.input = folder / "in", .output_prefix = folder / "out", .multimodal = true}, 5);
  const dataset::indexed_dataset data(folder / "out");
  ASSERT_TRUE(data.is_multimodal());
  for (std::int64_t s = 0; s < 4; ++s) EXPECT_EQ(data.mode(s), data.sequence(s)[0]);
}

// All documents come back in order. Real parts are far larger; in this test, each has three
// documents.
TEST(ShuffleSpill, GivesBackAllInOrder) {
  std::mt19937_64 random(test::seed(2));
  const test::temp_folder folder(test::quick_folder());
  constexpr std::uint64_t count = 100;
  std::vector<std::vector<std::byte>> tokens(count);
  std::vector<std::vector<std::int32_t>> lengths(count);
  std::vector<std::uint64_t> sizes((count + 2) / 3);
  for (std::uint64_t i = 0; i < count; ++i) {
    tokens[i].resize(random() % 40'000, static_cast<std::byte>(i));
    lengths[i].resize(random() % 5, static_cast<std::int32_t>(i));
    sizes[i / 3] += shuffle_spill::size_of(lengths[i].size(), false, tokens[i].size(), 0);
  }
  shuffle_spill spill(folder / "spill", 3, sizes);
  spill.begin();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t turn = (i * 37 + 11) % count;
    spill.add({.turn = turn,
               .place = {7, static_cast<std::int64_t>(turn) + 1, turn, turn + 9},
               .lengths = lengths[turn],
               .modes = {},
               .tokens = tokens[turn]});
  }
  std::uint64_t next = 0;
  spill.read([&](const spilled_document& document) {
    ASSERT_EQ(document.turn, next);
    EXPECT_TRUE(std::ranges::equal(document.tokens, tokens[next]));
    EXPECT_TRUE(std::ranges::equal(document.lengths, lengths[next]));
    EXPECT_EQ(document.place,
              (formats::source_place{7, static_cast<std::int64_t>(next) + 1, next, next + 9}));
    ++next;
  });
  EXPECT_EQ(next, count);
}

// A document that exceeds the planned size of its part is refused, because it would overwrite the
// next part. This happens if an input is replaced between the two passes.
TEST(ShuffleSpill, RefusesMoreThanItsPartsWereToHold) {
  const test::temp_folder folder(test::quick_folder());
  const std::vector<std::byte> tokens(80);
  const std::vector<std::int32_t> lengths{40};
  const std::uint64_t size = shuffle_spill::size_of(1, false, tokens.size(), 0);
  shuffle_spill spill(folder / "spill", 1, std::vector{size, size - 8});
  spill.begin();
  spill.add({.turn = 0, .place = {}, .lengths = lengths, .modes = {}, .tokens = tokens});
  for (const std::uint64_t turn : {0U, 1U}) {
    const spilled_document other{turn, {}, lengths, {}, tokens, {}};
    EXPECT_THROW(spill.add(other), io_error);
  }
}

TEST(SizedDataset, RefusesToEndWithOtherDocumentsThanItWasToHave) {
  const test::temp_folder folder(test::quick_folder());
  const std::vector<std::byte> tokens(4);
  const std::vector<std::int32_t> lengths{2};
  {
    sized_dataset output(folder / "out",
                         {.type = formats::dtype::uint16, .sequences = 2, .documents = 1});
    output.begin();
    output.append_tokens(tokens);
    output.end_document(lengths, {}, {});
    std::optional<formats::dataset_meta> meta;
    EXPECT_THROW(output.finish({}, meta), io_error);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ShuffleSpill, MakesPartsOfBoundedSize) {
  EXPECT_EQ(shuffle_spill::turns_of_part(0, 0), 1U);
  EXPECT_EQ(shuffle_spill::turns_of_part(10, 100), 10U);
  const std::uint64_t terabyte = std::uint64_t{1} << 40;
  EXPECT_LE(shuffle_spill::turns_of_part(1'000'000'000, terabyte), 250'000U);
  EXPECT_LE(shuffle_spill::turns_of_part(std::uint64_t{1} << 33, 1), shuffle_spill::part_documents);
}

}  // namespace
}  // namespace millrace::preprocess
