// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/token_texts.hpp>

#include "support/naive_decode.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using formats::token_texts;

/// Searches of random documents, compared with naive ones.
class SearchModel {
 public:
  explicit SearchModel(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

  std::string text(std::size_t most) {
    std::string made;
    // Few letters, so that queries are found; and characters of several bytes.
    static const std::vector<std::string> letters = {"a", "b",        " ",
                                                     "a", "\xC3\xA9", "\xE5\xAD\x97"};
    for (std::size_t size = below(most + 1); size > 0; --size)
      made += letters[below(letters.size())];
    return made;
  }

  token_texts vocabulary() {
    token_texts all;
    all.start = static_cast<token_texts::first_rule>(below(3));
    all.runs = static_cast<token_texts::byte_rule>(below(3));
    if (below(2) == 0) {
      all.strip = below(2) == 0 ? " " : "a";
      all.strip_times = 1 + below(3);
    }
    const std::size_t size = 5 + below(60);
    for (std::size_t id = 0; id < size; ++id) {
      if (all.runs != token_texts::byte_rule::none && below(4) == 0) {
        static const std::string bytes = "\xC3\xA9\xE5\xAD\x97 a";
        all.add(std::string(1, bytes[below(bytes.size())]), token_texts::is_byte);
        continue;
      }
      const std::string inner = text(4);
      std::string first = inner;
      std::uint8_t flag = 0;
      if (all.start != token_texts::first_rule::none) {
        if (below(2) == 0 && first.starts_with(' ')) first.erase(0, 1);
        if (below(8) == 0) first = text(3);
        if (below(4) == 0) flag = token_texts::ends_start;
      }
      all.add(inner, first, flag);
    }
    all.end("\xEF\xBF\xBD", below(2) == 0 ? "\xEF\xBF\xBD" : "?");
    return all;
  }

  template <class T>
  test::documents_of<T> documents(std::size_t vocabulary) {
    test::documents_of<T> all;
    // Low ids are frequent, and some ids are outside the vocabulary.
    std::geometric_distribution<std::int64_t> ids(3.0 / static_cast<double>(vocabulary));
    for (std::size_t count = below(12); count > 0; --count) {
      auto& document = all.emplace_back();
      for (std::size_t sequences = below(4); sequences > 0; --sequences) {
        auto& sequence = document.emplace_back();
        for (std::size_t size = below(below(10) == 0 ? 300 : 20); size > 0; --size) {
          std::int64_t id = ids(random_);
          if (below(100) == 0) id = std::is_signed_v<T> ? -1 - id : 250;
          sequence.push_back(static_cast<T>(std::min<std::int64_t>(id, 127)));
        }
      }
    }
    return all;
  }

  search_options options() {
    return {.workers = static_cast<int>(1 + below(3)),
            .most_hits = static_cast<std::int64_t>(below(2) == 0 ? below(8) : 100'000),
            .context_bytes = below(2) == 0 ? 0 : below(20),
            .block_tokens = static_cast<std::int64_t>(1 + below(below(2) == 0 ? 20 : 500))};
  }

 private:
  std::mt19937_64 random_;
};

template <class T>
std::vector<std::vector<std::int64_t>> flat(const test::documents_of<T>& documents) {
  std::vector<std::vector<std::int64_t>> all;
  for (const auto& document : documents) {
    auto& ids = all.emplace_back();
    for (const auto& sequence : document) ids.insert(ids.end(), sequence.begin(), sequence.end());
  }
  return all;
}

/// Hits of all queries, in order; and the counts that a search must report.
struct expected_hits {
  std::vector<search_hit> hits;
  std::vector<query_count> queries;
  std::int64_t documents = 0;

  explicit expected_hits(std::size_t count) : queries(count) {}

  void finish() {
    std::ranges::sort(hits);
    std::vector<std::int64_t> last(queries.size(), -1);
    std::int64_t last_document = -1;
    for (const search_hit& hit : hits) {
      const auto q = static_cast<std::size_t>(hit.query);
      ++queries[q].hits;
      if (last[q] != hit.document) ++queries[q].documents;
      last[q] = hit.document;
      if (last_document != hit.document) ++documents;
      last_document = hit.document;
    }
  }
};

void expect_same(const search_result& found, expected_hits expected,
                 const search_options& options) {
  ASSERT_EQ(found.queries.size(), expected.queries.size());
  for (std::size_t q = 0; q < found.queries.size(); ++q) {
    ASSERT_EQ(found.queries[q].hits, expected.queries[q].hits) << "query " << q;
    ASSERT_EQ(found.queries[q].documents, expected.queries[q].documents) << "query " << q;
  }
  ASSERT_EQ(found.hit_count, std::ssize(expected.hits));
  ASSERT_EQ(found.hit_documents, expected.documents);
  expected.hits.resize(std::min(expected.hits.size(), static_cast<std::size_t>(options.most_hits)));
  ASSERT_EQ(found.hits.size(), expected.hits.size());
  for (std::size_t i = 0; i < found.hits.size(); ++i) {
    const search_hit& hit = found.hits[i];
    const search_hit& wanted = expected.hits[i];
    SCOPED_TRACE(testing::Message() << "hit " << i << " of document " << wanted.document
                                    << ", token " << wanted.token << ", query " << wanted.query);
    ASSERT_EQ(std::tie(hit.document, hit.token, hit.skip, hit.query),
              std::tie(wanted.document, wanted.token, wanted.skip, wanted.query));
    ASSERT_EQ(std::tie(hit.tokens, hit.begin, hit.end, hit.ends_inside),
              std::tie(wanted.tokens, wanted.begin, wanted.end, wanted.ends_inside));
  }
}

/// The hit at bytes [begin, end) of a document.
search_hit place(const test::naive_text& text, std::size_t document, std::size_t query,
                 std::size_t begin, std::size_t end) {
  const auto token_of = [&](std::size_t byte) {
    std::size_t token = 0;
    while (token < text.ends.size() && text.ends[token] <= byte) ++token;
    return token;
  };
  search_hit hit;
  hit.document = static_cast<std::int64_t>(document);
  hit.query = static_cast<std::int64_t>(query);
  const std::size_t token = token_of(begin);
  hit.token = static_cast<std::int64_t>(token);
  hit.skip = static_cast<std::int64_t>(begin - (token == 0 ? 0 : text.ends[token - 1]));
  hit.begin = static_cast<std::int64_t>(begin);
  hit.end = static_cast<std::int64_t>(end);
  if (begin < end) {
    const std::size_t last = token_of(end - 1);
    hit.tokens = static_cast<std::int64_t>(last - token + 1);
    hit.ends_inside = text.ends[last] > end;
  }
  return hit;
}

void expect_context(const search_result& found, const std::vector<test::naive_text>& texts,
                    std::size_t context) {
  for (const search_hit& hit : found.hits) {
    const std::string& text = texts[static_cast<std::size_t>(hit.document)].text;
    const auto begin = static_cast<std::size_t>(hit.begin);
    const auto end = static_cast<std::size_t>(hit.end);
    ASSERT_LE(hit.before.size(), context);
    ASSERT_LE(hit.after.size(), context);
    ASSERT_EQ(hit.before, text.substr(begin - hit.before.size(), hit.before.size()));
    ASSERT_EQ(hit.after, text.substr(end, hit.after.size()));
    ASSERT_EQ(hit.text, text.substr(begin, hit.text.size()));
    // At most the rest of a character is missing.
    ASSERT_GE(hit.before.size() + 3, std::min(context, begin));
    ASSERT_GE(hit.after.size() + 3, std::min(context, text.size() - end));
    ASSERT_GE(hit.text.size() + 3, std::min(context, end - begin));
    if (end - begin <= context) {
      ASSERT_EQ(hit.text.size(), end - begin);
    }
  }
}

/// Matches of "a+b?" and, with `may_be_empty`, of "a*", without a library.
std::pair<std::size_t, std::size_t> naive_match(std::string_view text, std::size_t from,
                                                bool may_be_empty) {
  for (std::size_t begin = from; begin <= text.size(); ++begin) {
    std::size_t end = begin;
    while (end < text.size() && text[end] == 'a') ++end;
    if (!may_be_empty && end > begin && end < text.size() && text[end] == 'b') ++end;
    if (end > begin || may_be_empty) return {begin, end};
  }
  return {std::string_view::npos, 0};
}

template <class T>
void search_random(SearchModel& model, const std::filesystem::path& prefix) {
  const auto texts = std::make_shared<token_texts>(model.vocabulary());
  const auto documents = model.documents<T>(texts->inner.size());
  test::write_dataset<T>(prefix, documents);
  const indexed_dataset data(prefix);
  const auto ids = flat(documents);
  std::vector<test::naive_text> decoded;
  for (const auto& document : ids) decoded.push_back(test::naive_decode(*texts, document));
  const search_options options = model.options();

  std::vector<std::string> queries;
  for (std::size_t count = 1 + model.below(model.below(3) == 0 ? 40 : 4); count > 0; --count) {
    std::string query = model.text(model.below(2) == 0 ? 2 : 9);
    if (!decoded.empty() && model.below(2) == 0) {
      const std::string& text = decoded[model.below(decoded.size())].text;
      if (!text.empty()) query = text.substr(model.below(text.size()), 1 + model.below(12));
    }
    if (model.below(30) == 0) query = std::string(70, 'a');
    if (!query.empty()) queries.push_back(query);
  }
  if (queries.empty()) queries.push_back("a");
  expected_hits expected(queries.size());
  for (std::size_t d = 0; d < decoded.size(); ++d) {
    for (std::size_t q = 0; q < queries.size(); ++q) {
      const std::string& text = decoded[d].text;
      for (std::size_t at = text.find(queries[q]); at != std::string::npos;
           at = text.find(queries[q], at + 1)) {
        expected.hits.push_back(place(decoded[d], d, q, at, at + queries[q].size()));
      }
    }
  }
  expected.finish();
  const auto found = text_search(queries, {texts}).in(data, options);
  expect_same(found, expected, options);
  if (testing::Test::HasFatalFailure()) return;
  if (options.context_bytes > 0) expect_context(found, decoded, options.context_bytes);
  if (testing::Test::HasFatalFailure()) return;
  // The same, with a function that decodes. Runs of bytes may give fewer bytes when they are whole,
  // so the function alone does not tell where each token ends.
  if (texts->runs == token_texts::byte_rule::none && texts->strip_times == 0 &&
      texts->start != token_texts::first_rule::until_text) {
    const text_rules by_function = {nullptr, [&](std::span<const std::int64_t> some) {
                                      return test::naive_decode(*texts, some).text;
                                    }};
    expect_same(text_search(queries, by_function).in(data, options), expected, options);
    if (testing::Test::HasFatalFailure()) return;
  }

  const bool may_be_empty = model.below(2) == 0;
  expected_hits matches(1);
  for (std::size_t d = 0; d < decoded.size(); ++d) {
    const std::string& text = decoded[d].text;
    bool after_empty = false;
    for (std::size_t from = 0; from <= text.size();) {
      auto [begin, end] = naive_match(text, from, may_be_empty);
      if (begin == std::string::npos) break;
      if (after_empty && begin == from && end == begin) {
        after_empty = false;
        ++from;
        continue;
      }
      matches.hits.push_back(place(decoded[d], d, 0, begin, end));
      after_empty = begin == end;
      from = end;
    }
  }
  matches.finish();
  const auto by_pattern = search_pattern(
      data,
      [&]() -> find_match {
        return [&](std::string_view text, std::size_t from, bool not_empty) {
          auto [begin, end] = naive_match(text, from, may_be_empty);
          if (not_empty && begin == from && end == from && from <= text.size()) {
            std::tie(begin, end) = from < text.size()
                                       ? naive_match(text, from + 1, may_be_empty)
                                       : std::pair(std::string_view::npos, std::size_t{0});
          }
          using result = std::optional<std::pair<std::size_t, std::size_t>>;
          return begin == std::string_view::npos ? result() : result(std::pair(begin, end));
        };
      },
      {texts}, options);
  expect_same(by_pattern, matches, options);
  if (testing::Test::HasFatalFailure()) return;

  std::vector<std::vector<std::int64_t>> sequences;
  for (std::size_t count = 1 + model.below(model.below(3) == 0 ? 40 : 2); count > 0; --count) {
    auto& sequence = sequences.emplace_back();
    for (std::size_t size = 1 + model.below(3); size > 0; --size) {
      sequence.push_back(static_cast<std::int64_t>(model.below(8)));
    }
    if (model.below(20) == 0) sequence.push_back(1'000'000'000'000);
    if (model.below(20) == 0) sequence.back() = -1 - static_cast<std::int64_t>(model.below(4));
  }
  expected_hits by_ids(sequences.size());
  for (std::size_t d = 0; d < ids.size(); ++d) {
    for (std::size_t q = 0; q < sequences.size(); ++q) {
      for (auto at = ids[d].begin();; ++at) {
        at = std::search(at, ids[d].end(), sequences[q].begin(), sequences[q].end());
        if (at == ids[d].end()) break;
        search_hit hit;
        hit.document = static_cast<std::int64_t>(d);
        hit.query = static_cast<std::int64_t>(q);
        hit.token = at - ids[d].begin();
        hit.tokens = std::ssize(sequences[q]);
        by_ids.hits.push_back(hit);
      }
    }
  }
  by_ids.finish();
  expect_same(search_ids(data, sequences, options), by_ids, options);
}

TEST(SearchModel, AgreesWithNaiveSearches) {
  SearchModel model(test::seed(20261126));
  const test::temp_folder folder;
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    switch (i % 5) {
      case 0:
        search_random<std::uint16_t>(model, folder / "data");
        break;
      case 1:
        search_random<std::int32_t>(model, folder / "data");
        break;
      case 2:
        search_random<std::uint8_t>(model, folder / "data");
        break;
      case 3:
        search_random<std::int8_t>(model, folder / "data");
        break;
      default:
        search_random<std::int64_t>(model, folder / "data");
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace millrace::dataset
