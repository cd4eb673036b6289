// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/statistics.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using ids = std::vector<std::int64_t>;

/// Random datasets, and naive statistics of them.
class StatisticsModel {
 public:
  explicit StatisticsModel(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

  /// Writes a dataset with repeated documents and passages.
  template <class T>
  void write(const std::filesystem::path& prefix) {
    test::documents_of<T> documents;
    std::vector<ids> flat;
    const std::size_t kinds = 1 + below(8);
    for (std::size_t count = below(30); count > 0; --count) {
      auto& document = documents.emplace_back();
      ids& whole = flat.emplace_back();
      if (!documents_.empty() && below(4) == 0) {
        copy_of(documents_[below(documents_.size())], document, whole);
        continue;
      }
      for (std::size_t sequences = below(3); sequences > 0; --sequences) {
        auto& sequence = document.emplace_back();
        for (std::size_t size = below(below(5) == 0 ? 80 : 8); size > 0; --size) {
          sequence.push_back(any<T>(kinds));
          whole.push_back(static_cast<std::int64_t>(sequence.back()));
        }
      }
    }
    test::write_dataset<T>(prefix, documents);
    for (const auto& document : documents) {
      for (const auto& sequence : document) sequence_lengths_.push_back(std::ssize(sequence));
    }
    documents_.insert(documents_.end(), flat.begin(), flat.end());
    for (std::size_t d = 0; d < flat.size(); ++d) {
      places_.push_back({datasets_, static_cast<std::int64_t>(d)});
    }
    ++datasets_;
  }

  const std::vector<ids>& documents() const { return documents_; }
  const std::vector<document_place>& places() const { return places_; }
  const std::vector<std::int64_t>& sequence_lengths() const { return sequence_lengths_; }

 private:
  template <class T>
  T any(std::size_t kinds) {
    if (below(200) == 0) return std::numeric_limits<T>::max();
    if (below(200) == 0) return std::numeric_limits<T>::min();
    return static_cast<T>(below(kinds));
  }
  template <class T>
  void copy_of(const ids& from, std::vector<std::vector<T>>& document, ids& whole) {
    for (const std::int64_t id : from) {
      if (id < std::int64_t{std::numeric_limits<T>::min()} ||
          id > static_cast<std::int64_t>(std::numeric_limits<T>::max()))
        return;
    }
    whole = from;
    auto& sequence = document.emplace_back();
    for (const std::int64_t id : from) sequence.push_back(static_cast<T>(id));
  }

  std::mt19937_64 random_;
  std::vector<ids> documents_;
  std::vector<document_place> places_;
  std::vector<std::int64_t> sequence_lengths_;
  std::int64_t datasets_ = 0;
};

void expect_lengths(const length_counts& found, std::vector<std::int64_t> lengths) {
  std::ranges::sort(lengths);
  ASSERT_EQ(found.count(), std::ssize(lengths));
  if (lengths.empty()) return;
  ASSERT_EQ(found.min(), lengths.front());
  ASSERT_EQ(found.max(), lengths.back());
  for (const double q : {0.0, 0.01, 0.25, 0.5, 0.9, 1.0}) {
    // The least length so that at least a fraction q does not exceed it.
    std::size_t i = 0;
    while (static_cast<double>(i + 1) < q * static_cast<double>(lengths.size())) ++i;
    ASSERT_EQ(found.quantile(q), lengths[i]) << q;
  }
  std::map<std::size_t, std::int64_t> powers;
  for (const std::int64_t length : lengths) {
    std::size_t power = 0;
    while ((std::int64_t{1} << power) <= length) ++power;
    ++powers[power];
  }
  const auto counts = found.by_power_of_two();
  for (std::size_t power = 0; power < counts.size(); ++power)
    ASSERT_EQ(counts[power], powers[power]);
  ASSERT_EQ(counts.size(), powers.rbegin()->first + 1);
}

void expect_counts(const dataset_statistics& found, const StatisticsModel& model) {
  std::map<std::int64_t, std::int64_t> counts;
  std::vector<std::int64_t> lengths;
  for (const ids& document : model.documents()) {
    lengths.push_back(std::ssize(document));
    for (const std::int64_t id : document) ++counts[id];
  }
  expect_lengths(found.document_lengths, lengths);
  expect_lengths(found.sequence_lengths, model.sequence_lengths());
  ASSERT_EQ(found.ids.distinct(), std::ssize(counts));
  double entropy = 0;
  for (const auto& [id, times] : counts) {
    ASSERT_EQ(found.ids.count(id), times) << id;
    const double share = static_cast<double>(times) / static_cast<double>(found.tokens);
    entropy -= share * std::log2(share);
  }
  ASSERT_NEAR(found.ids.entropy(), entropy, 1e-9);
}

void expect_duplicates(const duplicate_documents& found, const StatisticsModel& model,
                       const duplicate_limits& limits) {
  std::map<ids, std::vector<document_place>> by_ids;
  for (std::size_t d = 0; d < model.documents().size(); ++d) {
    if (!model.documents()[d].empty()) by_ids[model.documents()[d]].push_back(model.places()[d]);
  }
  std::vector<std::pair<std::int64_t, const std::vector<document_place>*>> groups;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  for (const auto& [document, places] : by_ids) {
    if (places.size() < 2) continue;
    const std::int64_t repeated = (std::ssize(places) - 1) * std::ssize(document);
    documents += std::ssize(places) - 1;
    tokens += repeated;
    groups.emplace_back(-repeated, &places);
  }
  std::ranges::sort(groups, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->front() < b.second->front();
  });
  ASSERT_EQ(found.documents, documents);
  ASSERT_EQ(found.tokens, tokens);
  ASSERT_EQ(found.group_count, std::ssize(groups));
  ASSERT_EQ(found.groups.size(), std::min(groups.size(), limits.groups));
  for (std::size_t g = 0; g < found.groups.size(); ++g) {
    std::vector<document_place> places = *groups[g].second;
    ASSERT_EQ(found.groups[g].copies, std::ssize(places));
    places.resize(std::min(places.size(), limits.places));
    ASSERT_EQ(found.groups[g].places, places);
  }
}

void expect_ngrams(const repeated_ngrams& found, const StatisticsModel& model,
                   const ngram_options& options) {
  struct naive {
    std::int64_t count = 0;
    document_place place;
    std::int64_t token = 0;
  };
  std::map<ids, naive> counts;
  std::int64_t positions = 0;
  for (std::size_t d = 0; d < model.documents().size(); ++d) {
    const ids& document = model.documents()[d];
    for (std::ptrdiff_t i = 0; i + options.n <= std::ssize(document); ++i) {
      naive& entry = counts[ids(document.begin() + i, document.begin() + i + options.n)];
      if (entry.count++ == 0) entry = {1, model.places()[d], i};
      ++positions;
    }
  }
  std::vector<std::pair<ids, naive>> all;
  for (const auto& each : counts) {
    if (each.second.count > 1) all.push_back(each);
  }
  std::ranges::sort(all, [](const auto& a, const auto& b) {
    if (a.second.count != b.second.count) return a.second.count > b.second.count;
    return std::pair(a.second.place, a.second.token) < std::pair(b.second.place, b.second.token);
  });
  if (all.size() > options.most) all.resize(options.most);
  ASSERT_EQ(found.positions, positions);
  ASSERT_EQ(found.distinct, std::ssize(counts));
  ASSERT_EQ(found.ngrams.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(found.ngrams[i].ids, all[i].first) << i;
    ASSERT_EQ(found.ngrams[i].count, all[i].second.count);
    ASSERT_EQ(found.ngrams[i].first, all[i].second.place);
    ASSERT_EQ(found.ngrams[i].first_token, all[i].second.token);
  }
}

std::set<ids> ngrams_of(const ids& document, std::int64_t n) {
  std::set<ids> all;
  for (std::ptrdiff_t i = 0; i + n <= std::ssize(document); ++i) {
    all.insert(ids(document.begin() + i, document.begin() + i + n));
  }
  return all;
}

void expect_contamination(const contamination& found, const StatisticsModel& model,
                          const std::vector<ids>& texts, std::int64_t n, std::size_t most) {
  std::vector<std::set<ids>> of_texts;
  for (const ids& text : texts) of_texts.push_back(ngrams_of(text, n));
  std::vector<contaminated_document> worst;
  std::set<ids> in_data;
  std::int64_t tokens = 0;
  for (std::size_t d = 0; d < model.documents().size(); ++d) {
    const ids& document = model.documents()[d];
    contaminated_document one{.place = model.places()[d], .tokens = std::ssize(document)};
    for (std::ptrdiff_t i = 0; i + n <= std::ssize(document); ++i) {
      const ids ngram(document.begin() + i, document.begin() + i + n);
      in_data.insert(ngram);
      const auto text = std::ranges::find_if(
          of_texts, [&](const std::set<ids>& each) { return each.contains(ngram); });
      if (text == of_texts.end()) continue;
      if (one.ngrams++ == 0) {
        one.token = i;
        one.text = text - of_texts.begin();
      }
    }
    if (one.ngrams == 0) continue;
    tokens += one.tokens;
    worst.push_back(one);
  }
  ASSERT_EQ(found.documents, std::ssize(worst));
  ASSERT_EQ(found.tokens, tokens);
  std::ranges::stable_sort(worst, std::greater<>(), &contaminated_document::ngrams);
  worst.resize(std::min(worst.size(), most));
  ASSERT_EQ(found.worst.size(), worst.size());
  for (std::size_t i = 0; i < worst.size(); ++i) {
    ASSERT_EQ(found.worst[i].place, worst[i].place) << i;
    ASSERT_EQ(found.worst[i].ngrams, worst[i].ngrams);
    ASSERT_EQ(found.worst[i].token, worst[i].token);
    ASSERT_EQ(found.worst[i].text, worst[i].text);
  }
  ASSERT_EQ(found.texts.size(), texts.size());
  for (std::size_t t = 0; t < texts.size(); ++t) {
    text_overlap expected;
    for (std::ptrdiff_t i = 0; i + n <= std::ssize(texts[t]); ++i) {
      ++expected.ngrams;
      expected.found +=
          in_data.contains(ids(texts[t].begin() + i, texts[t].begin() + i + n)) ? 1 : 0;
    }
    ASSERT_EQ(found.texts[t].ngrams, expected.ngrams) << t;
    ASSERT_EQ(found.texts[t].found, expected.found) << t;
  }
}

/// What holds for every result: equal sets are found with an index of 1, and sets without a common
/// n-gram are not.
void expect_near_duplicates(const near_duplicates& found, const StatisticsModel& model,
                            const near_duplicate_options& options) {
  std::map<std::set<ids>, std::int64_t> sets;
  std::int64_t compared = 0;
  std::int64_t repeated = 0;
  for (const ids& document : model.documents()) {
    const auto ngrams = ngrams_of(document, options.n);
    if (ngrams.empty()) continue;
    ++compared;
    repeated += sets[ngrams]++ > 0 ? 1 : 0;
  }
  ASSERT_EQ(found.compared, compared);
  ASSERT_GE(found.documents, repeated);
  const auto document_at = [&](const document_place& place) -> const ids& {
    return model.documents()[static_cast<std::size_t>(std::ranges::find(model.places(), place) -
                                                      model.places().begin())];
  };
  for (const similar_documents& pair : found.pairs) {
    ASSERT_LT(pair.earlier, pair.later);
    ASSERT_GE(pair.jaccard, options.threshold);
    ASSERT_NEAR(pair.error, std::sqrt(pair.jaccard * (1 - pair.jaccard) / options.hashes), 1e-12);
    const auto a = ngrams_of(document_at(pair.earlier), options.n);
    const auto b = ngrams_of(document_at(pair.later), options.n);
    const auto common = std::ranges::count_if(a, [&](const ids& each) { return b.contains(each); });
    if (a == b) {
      ASSERT_EQ(pair.jaccard, 1);
    }
    ASSERT_GT(common, 0);
  }
}

TEST(StatisticsModelTest, AgreesWithNaiveCounts) {
  const std::uint64_t seed = test::seed(20261127);
  for (std::uint64_t round = 0; round < 250; ++round) {
    SCOPED_TRACE(round);
    const test::temp_folder folder;
    StatisticsModel model(seed + round);
    std::vector<indexed_dataset> data;
    for (std::size_t count = 1 + model.below(3); count > 0; --count) {
      const auto prefix = folder / std::to_string(count);
      switch (model.below(6)) {
        case 0:
          model.write<std::uint8_t>(prefix);
          break;
        case 1:
          model.write<std::int8_t>(prefix);
          break;
        case 2:
          model.write<std::int16_t>(prefix);
          break;
        case 3:
          model.write<std::uint16_t>(prefix);
          break;
        case 4:
          model.write<std::int32_t>(prefix);
          break;
        default:
          model.write<std::int64_t>(prefix);
          break;
      }
      data.emplace_back(prefix);
    }
    statistics_options options{.workers = static_cast<int>(1 + model.below(4)),
                               .block_tokens = static_cast<std::int64_t>(1 + model.below(60))};
    std::int64_t last = 0;
    std::int64_t total = 0;
    options.progress = [&](std::int64_t done, std::int64_t of) {
      EXPECT_LE(last, done);
      last = done;
      total = of;
    };
    dataset_statistics all;
    for (const indexed_dataset& each : data) {
      last = total = 0;
      all += statistics_of(each, options);
      ASSERT_EQ(last, total);
    }
    expect_counts(all, model);

    last = total = 0;
    const duplicate_limits limits{.groups = model.below(4), .places = 1 + model.below(3)};
    expect_duplicates(find_duplicates(data, limits, options), model, limits);
    ASSERT_EQ(last, total);

    last = total = 0;
    // With little memory, there are several passes.
    const ngram_options ngrams{.n = static_cast<std::int64_t>(1 + model.below(12)),
                               .most = 1 + model.below(20),
                               .memory_bytes = model.below(2) == 0 ? 0 : std::size_t{1} << 20};
    expect_ngrams(find_repeated_ngrams(data, ngrams, options), model, ngrams);
    ASSERT_EQ(last, total);

    last = total = 0;
    const std::int64_t n = static_cast<std::int64_t>(1 + model.below(6));
    std::vector<ids> texts;
    for (std::size_t count = model.below(5); count > 0; --count) {
      ids& text = texts.emplace_back();
      if (!model.documents().empty() && model.below(2) == 0) {
        text = model.documents()[model.below(model.documents().size())];
      }
      for (std::size_t size = model.below(8); size > 0; --size) {
        text.push_back(static_cast<std::int64_t>(model.below(9)));
      }
    }
    const std::size_t most = model.below(6);
    expect_contamination(find_contamination(data, texts, n, most, options), model, texts, n, most);
    ASSERT_EQ(last, total);

    last = 0;
    const near_duplicate_options near{.n = static_cast<std::int64_t>(1 + model.below(5)),
                                      .hashes = model.below(2) == 0 ? 32 : 128,
                                      .bands = model.below(2) == 0 ? 32 : 8,
                                      .threshold = 0.3 + 0.1 * static_cast<double>(model.below(8)),
                                      .seed = model.below(1000),
                                      .most_pairs = 1 + model.below(30)};
    const auto similar = find_near_duplicates(data, near, options);
    expect_near_duplicates(similar, model, near);
    const auto again = find_near_duplicates(data, near);
    ASSERT_EQ(again.documents, similar.documents);
    ASSERT_EQ(again.pairs.size(), similar.pairs.size());
    for (std::size_t i = 0; i < again.pairs.size(); ++i) {
      ASSERT_EQ(again.pairs[i].later, similar.pairs[i].later);
      ASSERT_EQ(again.pairs[i].jaccard, similar.pairs[i].jaccard);
    }
  }
}

// The tables of 32-bit counters grow with the ids, and ids far apart are counted differently.
TEST(StatisticsModelTest, CountsAnyInt32) {
  std::mt19937_64 random(test::seed(5));
  const test::temp_folder folder;
  std::vector<std::int32_t> tokens(300'000);
  std::map<std::int64_t, std::int64_t> counts;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto bits = 1 + i * 22 / tokens.size();
    tokens[i] = static_cast<std::int32_t>(random() >> (64 - bits));
    if (i % 20'000 == 19'999) tokens[i] = static_cast<std::int32_t>(random());
    ++counts[tokens[i]];
  }
  test::write_dataset<std::int32_t>(folder / "data", {{tokens}});
  for (const int workers : {1, 3}) {
    const auto found = statistics_of(indexed_dataset(folder / "data"),
                                     {.workers = workers, .block_tokens = 10'000});
    ASSERT_EQ(found.ids.distinct(), std::ssize(counts));
    for (const auto& [id, times] : counts) ASSERT_EQ(found.ids.count(id), times) << id;
  }
}

// Estimates of the Jaccard index are unbiased, with the standard error that they state, for every
// instruction set. The share of the pairs that are found is the one that the bands predict.
TEST(StatisticsModelTest, EstimatesSimilarity) {
  std::mt19937_64 random(test::seed(7));
  const test::temp_folder folder;
  constexpr std::size_t pairs = 400;
  test::documents_of<std::int32_t> documents;
  std::vector<double> exact;
  for (std::size_t p = 0; p < pairs; ++p) {
    // Tokens that occur nowhere else, so 1-grams are a set, and only partners are similar.
    std::vector<std::int32_t> a(200);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::int32_t>(1000 * p + i);
    auto b = a;
    const std::size_t other = random() % 100;
    for (std::size_t i = 0; i < other; ++i) b[i] += 500;
    exact.push_back(static_cast<double>(a.size() - other) / static_cast<double>(a.size() + other));
    documents.push_back({a});
    documents.push_back({b});
  }
  test::write_dataset<std::int32_t>(folder / "data", documents);
  std::vector<indexed_dataset> data;
  data.emplace_back(folder / "data");
  const near_duplicate_options near{
      .n = 1, .hashes = 256, .bands = 128, .threshold = 0.01, .most_pairs = 10'000};
  std::vector<double> first;
  for (const char* isa : {"portable", "avx2", ""}) {
    ::setenv("MILLRACE_ISA", isa, 1);
    const auto found = find_near_duplicates(data, near, {.workers = 2});
    ::unsetenv("MILLRACE_ISA");
    double sum = 0;
    std::size_t partners = 0;
    std::vector<double> estimates;
    for (const similar_documents& pair : found.pairs) {
      if (pair.later.document != pair.earlier.document + 1 || pair.later.document % 2 == 0)
        continue;
      const double jaccard = exact[static_cast<std::size_t>(pair.earlier.document / 2)];
      const double error = std::sqrt(jaccard * (1 - jaccard) / near.hashes);
      ASSERT_LE(std::abs(pair.jaccard - jaccard), 6 * error + 1e-9) << pair.earlier.document;
      sum += pair.jaccard - jaccard;
      ++partners;
      estimates.push_back(pair.jaccard);
    }
    EXPECT_EQ(partners, pairs);  // an index above 1/3 is found but for a chance of 10^-6
    EXPECT_LT(std::abs(sum / static_cast<double>(partners)), 0.01);
    if (first.empty()) first = estimates;
    EXPECT_EQ(estimates, first) << isa;
  }
}

// Many n-grams, so that tables grow and n-grams are counted in several passes.
TEST(StatisticsModelTest, FindsNgramsInSeveralPasses) {
  std::mt19937_64 random(test::seed(6));
  const test::temp_folder folder;
  std::vector<std::uint16_t> tokens(60'000);
  for (auto& token : tokens) token = static_cast<std::uint16_t>(random() % 8);
  test::write_dataset<std::uint16_t>(folder / "data", {{tokens}});
  std::vector<indexed_dataset> data;
  data.emplace_back(folder / "data");
  std::map<std::vector<std::uint16_t>, std::int64_t> counts;
  for (std::size_t i = 0; i + 6 <= tokens.size(); ++i) {
    ++counts[{tokens.begin() + static_cast<std::ptrdiff_t>(i),
              tokens.begin() + static_cast<std::ptrdiff_t>(i) + 6}];
  }
  for (const std::size_t memory : {std::size_t{1} << 16, std::size_t{1} << 30}) {
    const auto found = find_repeated_ngrams(data, {.n = 6, .most = 100, .memory_bytes = memory},
                                            {.workers = 2, .block_tokens = 5'000});
    ASSERT_EQ(found.distinct, std::ssize(counts));
    ASSERT_EQ(found.passes > 5, memory < std::size_t{1} << 20) << found.passes;
    for (const repeated_ngram& each : found.ngrams) {
      ASSERT_EQ(each.count, counts.at({each.ids.begin(), each.ids.end()}));
    }
    std::vector<std::int64_t> sorted;
    for (const auto& [ids, count] : counts) sorted.push_back(count);
    std::ranges::sort(sorted, std::greater<>());
    for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(found.ngrams[i].count, sorted[i]);
  }
}

}  // namespace
}  // namespace millrace::dataset
