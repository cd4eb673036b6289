// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

/// Sets an environment variable for the lifetime of this object.
class set_variable {
 public:
  set_variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~set_variable() { ::unsetenv(name_); }
  set_variable(const set_variable&) = delete;
  set_variable& operator=(const set_variable&) = delete;

 private:
  const char* name_;
};

std::shared_ptr<const formats::token_texts> letters() {
  formats::token_texts texts;
  for (char letter = 'a'; letter <= 'z'; ++letter) texts.add(std::string(1, letter));
  texts.end("?");
  return std::make_shared<const formats::token_texts>(std::move(texts));
}

class Search : public testing::Test {
 protected:
  template <class T>
  indexed_dataset stored(const test::documents_of<T>& documents) {
    test::write_dataset<T>(prefix_, documents);
    return indexed_dataset(prefix_);
  }

  template <class Call>
  static std::string refusal(Call&& call) {
    try {
      call();
    } catch (const config_error& e) {
      return e.what();
    }
    return "accepted";
  }

  test::temp_folder folder_;
  std::filesystem::path prefix_ = folder_ / "data";
};

TEST_F(Search, TellsWhereAHitIs) {
  formats::token_texts texts;
  for (const char* text : {"Hel", "lo wor", "ld", " Hello"}) texts.add(text);
  texts.end("?");
  const auto table = std::make_shared<const formats::token_texts>(std::move(texts));
  const auto data = stored<std::uint16_t>({{{3}}, {{2, 0}, {1, 2}}, {}});
  const auto found = text_search({"Hello", "or"}, {table}).in(data, {.context_bytes = 4});
  ASSERT_EQ(found.hits.size(), 3U);
  EXPECT_EQ(found.queries[0].hits, 2);
  EXPECT_EQ(found.queries[1].hits, 1);
  EXPECT_EQ(found.hit_documents, 2);
  EXPECT_EQ(found.documents, 3);
  EXPECT_EQ(found.tokens, 5);
  EXPECT_EQ(found.hits[0], (search_hit{.document = 0,
                                       .token = 0,
                                       .skip = 1,
                                       .query = 0,
                                       .tokens = 1,
                                       .begin = 1,
                                       .end = 6,
                                       .before = " ",
                                       .text = "Hell"}));
  EXPECT_EQ(found.hits[1], (search_hit{.document = 1,
                                       .token = 1,
                                       .skip = 0,
                                       .query = 0,
                                       .tokens = 2,
                                       .begin = 2,
                                       .end = 7,
                                       .ends_inside = true,
                                       .before = "ld",
                                       .text = "Hell",
                                       .after = " wor"}));
  EXPECT_EQ(found.hits[2], (search_hit{.document = 1,
                                       .token = 2,
                                       .skip = 4,
                                       .query = 1,
                                       .tokens = 1,
                                       .begin = 9,
                                       .end = 11,
                                       .before = "lo w",
                                       .text = "or",
                                       .after = "ld"}));
}

// Long enough for several blocks, vectors of every width, and their ends at every offset.
template <class T>
void find_pairs(const std::filesystem::path& prefix) {
  for (const std::size_t size :
       std::vector<std::size_t>{0, 1, 2, 63, 64, 65, 1000, 8192, 8193, 20000}) {
    std::vector<T> tokens(size);
    for (std::size_t i = 0; i < size; ++i) tokens[i] = static_cast<T>(i * i % 101 % 7);
    test::write_dataset<T>(prefix, {{tokens}});
    const indexed_dataset data(prefix);
    for (const std::vector<std::int64_t>& ids :
         {std::vector<std::int64_t>{4}, {5, 1}, {1, 5}, {2, 0, 6}, {0, 0, 0}, {6, 6}}) {
      std::vector<std::int64_t> places;
      for (auto at = tokens.begin();; ++at) {
        at = std::search(at, tokens.end(), ids.begin(), ids.end());
        if (at == tokens.end()) break;
        places.push_back(at - tokens.begin());
      }
      const auto found = search_ids(data, {ids}, {.most_hits = 100'000});
      std::vector<std::int64_t> hits;
      for (const search_hit& hit : found.hits) hits.push_back(hit.token);
      ASSERT_EQ(hits, places) << "of " << size << " tokens, " << testing::PrintToString(ids);
    }
  }
}

// A set that this machine lacks is not used, so that the test is the same as for the widest one.
TEST_F(Search, FindsTheSameIdsWithEveryInstructionSet) {
  for (const char* set : {"portable", "avx2", "avx512", "neon", ""}) {
    SCOPED_TRACE(set);
    const set_variable isa("MILLRACE_ISA", set);
    find_pairs<std::uint8_t>(prefix_);
    find_pairs<std::int8_t>(prefix_);
    find_pairs<std::uint16_t>(prefix_);
    find_pairs<std::int16_t>(prefix_);
    find_pairs<std::int32_t>(prefix_);
    find_pairs<std::int64_t>(prefix_);
  }
}

TEST_F(Search, FindsALongQueryInARepetitiveText) {
  const std::string query(1000, 'a');
  const auto data = stored<std::uint16_t>({{std::vector<std::uint16_t>(100'000, 0)}});
  EXPECT_EQ(text_search({query}, {letters()}).in(data).hit_count, 99'001);
}

// Large enough for the filter of tokens, which must know the texts at the start of documents, and
// those of runs of bytes that are not UTF-8.
TEST_F(Search, FindsRareTextsThatDependOnThePlaceOfAToken) {
  formats::token_texts texts;
  texts.start = formats::token_texts::first_rule::first_token;
  texts.runs = formats::token_texts::byte_rule::run;
  texts.add("x");
  texts.add("inner", "First", 0);
  texts.add("\xC3", formats::token_texts::is_byte);
  texts.end("?");
  const auto table = std::make_shared<const formats::token_texts>(std::move(texts));
  const std::vector<std::uint16_t> much(5000, 0);
  std::vector<std::uint16_t> document(100, 0);
  document[50] = 2;
  document[60] = 1;
  const auto data = stored<std::uint16_t>({{much}, {{1, 0}}, {document}, {much}});
  const search_options options{.workers = 2, .block_tokens = 1000};
  for (const auto& [query, document_of_hit, token] :
       {std::tuple("irstx", 1, 0), std::tuple("x\xEF\xBF\xBDx", 2, 49),
        std::tuple("xinn", 2, 59)}) {
    SCOPED_TRACE(query);
    const auto found = text_search({query}, {table}).in(data, options);
    ASSERT_EQ(found.hits.size(), 1U);
    EXPECT_EQ(found.hits[0].document, document_of_hit);
    EXPECT_EQ(found.hits[0].token, token);
  }
}

TEST_F(Search, FindsEachOfEqualQueries) {
  const auto data = stored<std::uint16_t>({{{0, 1}}, {{0, 1}}});
  const auto found = text_search({"ab", "b", "ab"}, {letters()}).in(data);
  for (const query_count& each : found.queries) {
    EXPECT_EQ(each.hits, 2);
    EXPECT_EQ(each.documents, 2);
  }
  EXPECT_EQ(found.hit_count, 6);
  EXPECT_EQ(found.hit_documents, 2);
}

TEST_F(Search, RefusesWhatItCannotSearch) {
  const auto data = stored<std::uint16_t>({{{1}}});
  EXPECT_THAT(refusal([&] { search_ids(data, {}); }), HasSubstr("at least one query"));
  EXPECT_THAT(refusal([&] { search_ids(data, {{1}, {}}); }), HasSubstr("query 1 has no ids"));
  EXPECT_THAT(refusal([] { text_search({}, {letters()}); }), HasSubstr("at least one query"));
  EXPECT_THAT(refusal([] { text_search({"a", ""}, {letters()}); }), HasSubstr("an empty text"));
  EXPECT_THAT(refusal([] { text_search({"a"}, {}); }), HasSubstr("texts of the tokens"));
  const auto floats = stored<float>({{{1.5F}}});
  EXPECT_THAT(refusal([&] { search_ids(floats, {{1}}); }), HasSubstr("the tokens are float32"));
  EXPECT_THAT(refusal([&] { text_search({"a"}, {letters()}).in(floats); }), HasSubstr("float32"));
}

TEST_F(Search, CanBeStopped) {
  const auto data = stored<std::uint16_t>({{std::vector<std::uint16_t>(1000, 0)}});
  std::int64_t told = 0;
  search_options options{.workers = 2, .block_tokens = 10};
  options.progress = [&](std::int64_t tokens) { told = tokens; };
  EXPECT_EQ(search_ids(data, {{0}}, options).hit_count, 1000);
  EXPECT_EQ(told, 1000);
  options.progress = [&](std::int64_t) { throw std::runtime_error("stop"); };
  EXPECT_THROW(search_ids(data, {{0}}, options), std::runtime_error);
}

// An index that was not checked when it was opened must not make a search read other memory.
TEST_F(Search, ChecksTheIndex) {
  (void)stored<std::uint16_t>({{{1, 2}, {3}}, {{4, 5}}, {{6}}});
  const auto idx = std::filesystem::path(prefix_) += ".idx";
  std::vector<std::byte> bytes = test::read_bytes(idx);
  bytes[34 + 4 * 4 + 8] = std::byte{77};  // the pointer of the second sequence
  test::write_bytes(idx, bytes);
  const indexed_dataset data(prefix_);
  try {
    (void)search_ids(data, {{4}});
    FAIL() << "accepted";
  } catch (const format_error& e) {
    EXPECT_EQ(e.path(), idx);
    EXPECT_THAT(e.what(), HasSubstr("pointer of sequence 1 is 77"));
  }
}

#if !defined(MILLRACE_NO_SIGBUS_GUARD)
TEST_F(Search, ReportsAFileThatWasTruncated) {
  using search = search_result(const indexed_dataset&, const search_options&);
  const std::vector<std::function<search>> searches = {
      [](const auto& data, const auto& options) { return search_ids(data, {{1}}, options); },
      [](const auto& data, const auto& options) {
        return text_search({"bb"}, {letters()}).in(data, options);
      }};
  for (const int workers : {1, 3}) {
    for (const auto& each : searches) {
      const auto data = stored<std::uint16_t>({{std::vector<std::uint16_t>(100'000, 1)}});
      std::filesystem::resize_file(data.bin_path(), 8192);
      try {
        (void)each(data, {.workers = workers, .block_tokens = 1000});
        FAIL() << "nothing was said";
      } catch (const io_error& e) {
        EXPECT_EQ(e.path(), data.bin_path());
      }
    }
  }
}
#endif

}  // namespace
}  // namespace millrace::dataset
