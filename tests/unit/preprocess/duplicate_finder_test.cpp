// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "merge/duplicate_finder.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::preprocess {
namespace {

/// A document of a test: its key, and the content that decides.
struct test_document {
  content_key key;
  int content = 0;
};

// Documents with one content have one size. A few are large.
std::uint64_t size_of(const test_document& document) {
  const auto size = static_cast<std::uint64_t>(document.content % 100);
  return size == 99 ? std::uint64_t{1} << 40 : size;
}

// Adds all documents, and compares every result with a map.
void expect_as_map(const std::vector<test_document>& documents, std::uint64_t memory_bytes) {
  const test::temp_folder folder;
  duplicate_finder finder(folder / "keys", documents.size(), memory_bytes);
  for (std::uint64_t i = 0; i < documents.size(); ++i) {
    finder.add(documents[i].key, 3 * i, size_of(documents[i]));
  }
  finder.find([&](const content_place& first, const content_place& later) {
    EXPECT_LT(first.document, later.document);
    EXPECT_EQ(first.begin, 3 * first.document);
    EXPECT_EQ(later.begin, 3 * later.document);
    EXPECT_EQ(later.bytes, size_of(documents[later.document]));
    EXPECT_EQ(first.bytes, std::min(later.bytes, content_place::unstored_bytes));
    return documents[first.document].content == documents[later.document].content;
  });
  std::map<int, std::uint64_t> firsts;  // a content has one key
  std::uint64_t kept = 0;
  std::uint64_t duplicates = 0;
  for (std::uint64_t i = 0; i < documents.size(); ++i) {
    ASSERT_EQ(finder.number_of(i), kept) << i;
    const auto [first, is_new] = firsts.emplace(documents[i].content, i);
    ASSERT_EQ(finder.is_duplicate(i), !is_new) << i;
    if (is_new) {
      ++kept;
      continue;
    }
    ++duplicates;
    const duplicate found = finder.next();
    ASSERT_EQ(found.document, i);
    ASSERT_EQ(found.first, first->second);
  }
  EXPECT_EQ(finder.count(), duplicates);
  EXPECT_TRUE(std::filesystem::exists(folder / "keys.partial"));
}

TEST(DuplicateFinder, FindsWhatAMapFinds) {
  std::mt19937_64 random(test::seed(221));
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const std::uint64_t contents = 1 + random() % 6000;
    // Some contents share a key with others, and all keys may be near each other.
    const std::uint64_t keys = 1 + random() % (2 * contents);
    const std::uint64_t spread =
        random() % 3 == 0 ? 1 : std::numeric_limits<std::uint64_t>::max() / keys;
    std::vector<test_document> documents(random() % 12'000);
    for (test_document& each : documents) {
      const std::uint64_t content = random() % contents;
      each.content = static_cast<int>(content);
      const std::uint64_t key = content % keys;
      each.key = {key * spread, (key * 0x9E3779B97F4A7C15) ^ key};
    }
    expect_as_map(documents, random() % 4 == 0 ? 1 << 20 : random() % 50'000);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DuplicateFinder, TakesNoDocumentAndOne) {
  expect_as_map({}, 0);
  expect_as_map({{}}, 0);
  expect_as_map({{}, {}}, 0);
}

// All documents are alike, so one bucket has all of them, and its table a single key.
TEST(DuplicateFinder, TakesManyTimesTheSame) {
  expect_as_map(std::vector<test_document>(50'000, {{7, 9}, 3}), 10'000);
}

// All keys fall into one bucket, for whose keys one table is too small.
TEST(DuplicateFinder, TakesUnevenKeys) {
  std::vector<test_document> documents;
  for (int i = 0; i < 20'000; ++i) {
    const auto low = static_cast<std::uint64_t>(i % 15'000) << 49;
    documents.push_back({{5, low + static_cast<std::uint64_t>(i % 15'000)}, i % 15'000});
  }
  expect_as_map(documents, 10'000);
}

TEST(DuplicateFinder, RemovesItsFileAndStops) {
  const test::temp_folder folder;
  const std::atomic<int> stop = 15;
  {
    duplicate_finder finder(folder / "keys", 1, 0, stop_flag(&stop, "nothing was done"));
    finder.add({});
    EXPECT_THROW(finder.find([](const auto&, const auto&) { return true; }), stopped);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace millrace::preprocess
