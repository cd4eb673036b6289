// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/indexed_dataset.hpp>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using test::documents_of;
using testing::ElementsAre;
using testing::HasSubstr;

/// Compares everything that a dataset returns with the documents that were written.
template <class T>
void expect_holds(const indexed_dataset& data, const documents_of<T>& documents) {
  EXPECT_EQ(data.type(), formats::dtype_of<T>());
  ASSERT_EQ(data.document_count(), static_cast<std::int64_t>(documents.size()));
  std::vector<T> stream;
  std::int64_t sequence = 0;
  for (std::int64_t d = 0; d < data.document_count(); ++d) {
    SCOPED_TRACE(testing::Message() << "document " << d);
    const auto& document = documents[static_cast<std::size_t>(d)];
    const std::int64_t first = sequence;
    std::vector<T> whole;
    for (const auto& tokens : document) {
      ASSERT_LT(sequence, data.sequence_count());
      EXPECT_EQ(data.sequence_length(sequence), static_cast<std::int64_t>(tokens.size()));
      const auto found = data.tokens<T>(sequence);
      EXPECT_EQ(std::vector<T>(found.begin(), found.end()), tokens);
      whole.insert(whole.end(), tokens.begin(), tokens.end());
      ++sequence;
    }
    EXPECT_EQ(data.document(d), (document_range{first, sequence}));
    const auto found = data.document_tokens(d).template as<T>();
    EXPECT_EQ(std::vector<T>(found.begin(), found.end()), whole);
    stream.insert(stream.end(), whole.begin(), whole.end());
  }
  EXPECT_EQ(data.sequence_count(), sequence);
  EXPECT_EQ(data.token_count(), static_cast<std::int64_t>(stream.size()));
  const auto found = data.stream().template as<T>();
  EXPECT_EQ(std::vector<T>(found.begin(), found.end()), stream);
}

template <class T>
void expect_round_trip(const documents_of<T>& documents) {
  const test::temp_folder folder;
  test::write_dataset(folder / "data", documents);
  for (const auto level : {check_level::quick, check_level::full}) {
    expect_holds(indexed_dataset(folder / "data", {.check = level}), documents);
  }
}

template <class T>
class IndexedDatasetOf : public testing::Test {};
using AllTypes = testing::Types<std::uint8_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                double, float, std::uint16_t>;
TYPED_TEST_SUITE(IndexedDatasetOf, AllTypes);

TYPED_TEST(IndexedDatasetOf, HoldsWhatWasWritten) {
  using T = TypeParam;
  expect_round_trip<T>({{{T{1}, T{2}, T{3}}}, {{T{4}}, {T{5}, T{6}}}, {{T{7}}}});
}

TEST(IndexedDataset, OpensWithoutDocuments) {
  expect_round_trip<std::uint16_t>({});
}

TEST(IndexedDataset, KeepsEmptyDocumentsAnywhere) {
  expect_round_trip<std::uint16_t>({{}, {{1, 2}}});
  expect_round_trip<std::uint16_t>({{{1, 2}}, {}});
  expect_round_trip<std::uint16_t>({{}, {}, {}});
  expect_round_trip<std::int32_t>({{}, {{1}}, {}, {}, {{2}, {3}}, {}});
}

TEST(IndexedDataset, KeepsSequencesWithoutTokens) {
  expect_round_trip<std::uint16_t>({{{}}});
  expect_round_trip<std::uint16_t>({{{}, {1}, {}}, {{}}, {{2}, {}}});
  expect_round_trip<std::int64_t>({{{}, {}}, {{}}});
}

TEST(IndexedDataset, GivesPartsOfSequences) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{{1, 2, 3}, {4, 5, 6, 7}}});
  const indexed_dataset data(folder / "data");

  EXPECT_THAT(data.sequence(1, 1, 2).as<std::uint16_t>(), ElementsAre(5, 6));
  EXPECT_TRUE(data.sequence(1, 0, 4) == data.sequence(1));
  EXPECT_TRUE(data.sequence(1, 4, 0).empty());
}

TEST(IndexedDataset, RefusesTokensOfAnotherType) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{{1}}});
  const indexed_dataset data(folder / "data");
  EXPECT_THROW((void)data.tokens<std::int16_t>(0), config_error);
}

TEST(IndexedDataset, HasModesOnlyIfMultimodal) {
  const test::temp_folder folder;
  test::write_dataset<std::int32_t>(folder / "plain", {{{1}, {2}}});
  EXPECT_FALSE(indexed_dataset(folder / "plain").is_multimodal());

  const documents_of<std::int32_t> documents = {{{1}, {2, 3}}, {{4}}};
  test::write_dataset(folder / "modes", documents, {0, 1, -1});
  const indexed_dataset data(folder / "modes");
  EXPECT_TRUE(data.is_multimodal());
  EXPECT_EQ(data.mode(1), 1);
  EXPECT_EQ(data.mode(2), -1);
  expect_holds(data, documents);
}

TEST(IndexedDataset, NamesItsFiles) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "a.b", {{{1}}});  // ".b" is not an extension here
  const indexed_dataset data(folder / "a.b");
  EXPECT_EQ(data.prefix(), folder / "a.b");
  EXPECT_EQ(data.idx_path(), folder / "a.b.idx");
  EXPECT_EQ(data.bin_path(), folder / "a.b.bin");
  EXPECT_EQ(data.bin_size_bytes(), 2U);
  EXPECT_EQ(data.idx_size_bytes(), 34U + 12 + 16);
}

// If a prefix has an extension, the error says to drop the extension. An extension is the most
// common mistake, because shell completion appends it.
TEST(IndexedDataset, SaysToDropAnExtension) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{{1}}});
  for (const char* name : {"data.bin", "data.idx"}) {
    try {
      const indexed_dataset data(folder / name);
      ADD_FAILURE() << "accepted " << name;
    } catch (const config_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("without ." + std::string(name).substr(5) + ": " +
                                      (folder / "data").string()));
    }
  }
  // The extension is accepted if it is part of the prefix.
  test::write_dataset<std::uint16_t>(folder / "odd.bin", {{{1}}});
  EXPECT_EQ(indexed_dataset(folder / "odd.bin").token_count(), 1);
}

TEST(IndexedDataset, KeepsItsViewsWhenMoved) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{{1, 2}}, {{3}}});
  indexed_dataset first(folder / "data");
  const token_view before = first.sequence(0);
  const indexed_dataset second = std::move(first);
  EXPECT_EQ(before.bytes().data(), second.sequence(0).bytes().data());
  EXPECT_EQ(before[1], 2);
  expect_holds<std::uint16_t>(second, {{{1, 2}}, {{3}}});
}

TEST(IndexedDataset, IsReadByManyThreads) {
  const test::temp_folder folder;
  documents_of<std::uint16_t> documents;
  for (std::uint16_t i = 0; i < 500; ++i) documents.push_back({{i}, {i, i}});
  test::write_dataset(folder / "data", documents);
  const indexed_dataset data(folder / "data");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { expect_holds(data, documents); });
}

}  // namespace
}  // namespace millrace::dataset
