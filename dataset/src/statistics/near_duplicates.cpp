// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <millrace/dataset/statistics.hpp>
#include <millrace/error.hpp>

#include "documents.hpp"
#include "min_hash.hpp"
#include "ngram_hash.hpp"

namespace millrace::dataset {

namespace detail {

/// The signatures of all documents with at least one n-gram.
class signature_table {
 public:
  signature_table(const document_list& documents, std::span<const indexed_dataset> data,
                  const near_duplicate_options& near, const statistics_options& options)
      : hashes_(static_cast<std::size_t>(near.hashes)) {
    for (std::size_t i = 0; i < hashes_; ++i) {
      const std::uint64_t random = mixed(near.seed * 0x9e3779b97f4a7c15 + 2 * i + 1);
      factors_.push_back(static_cast<std::uint32_t>(random) | 1);
      terms_.push_back(static_cast<std::uint32_t>(random >> 32));
    }
    std::int64_t number = 0;
    for (std::size_t i = 0; i < data.size(); ++i) {
      for (std::int64_t d = 0; d < data[i].document_count(); ++d, ++number) {
        const document_place place{static_cast<std::int64_t>(i), d};
        if (documents.tokens(place).size() >= near.n) places_.push_back(place);
      }
    }
    least_.assign(places_.size() * hashes_, std::numeric_limits<std::uint32_t>::max());
    fill(documents, near.n, options);
  }

  std::size_t size() const noexcept { return places_.size(); }
  const document_place& place(std::size_t i) const noexcept { return places_[i]; }
  std::span<const std::uint32_t> signature(std::size_t i) const noexcept {
    return std::span(least_).subspan(i * hashes_, hashes_);
  }

  /// The share of hash functions whose least values are equal, which estimates the Jaccard index.
  double similarity(std::size_t a, std::size_t b) const noexcept {
    const auto left = signature(a);
    const auto right = signature(b);
    std::size_t same = 0;
    for (std::size_t i = 0; i < hashes_; ++i) same += left[i] == right[i] ? 1U : 0U;
    return static_cast<double>(same) / static_cast<double>(hashes_);
  }

 private:
  void fill(const document_list& documents, std::int64_t n, const statistics_options& options) {
    struct worker {
      signature_table* own;
      const document_list* documents;
      std::int64_t n;
      min_hash hash;
      std::vector<std::uint32_t> numbers = {};

      std::int64_t operator()(std::int64_t block) {
        std::int64_t tokens = 0;
        const auto first = static_cast<std::size_t>(block) * documents_at_once;
        const std::size_t last = std::min(first + documents_at_once, own->size());
        for (std::size_t i = first; i < last; ++i) {
          tokens += sign(i);
          documents->check_there(own->places_[i].dataset);
        }
        return tokens;
      }
      std::int64_t sign(std::size_t i) {
        const token_view view = documents->tokens(own->places_[i]);
        std::uint32_t* const least = own->least_.data() + i * own->hashes_;
        const min_hash_functions functions{own->factors_, own->terms_};
        const auto flush = [&] {
          hash(numbers, functions, least);
          numbers.clear();
        };
        with_integers(view, [&]<class T>(std::span<const T> ids) {
          for_each_ngram(ids, n, [&](std::uint64_t ngram, std::size_t) {
            numbers.push_back(static_cast<std::uint32_t>(ngram >> 32));
            if (numbers.size() == 2048) flush();  // fits the L1 cache
          });
        });
        flush();
        return view.size();
      }
      void finish() {}
    };
    const auto blocks =
        static_cast<std::int64_t>((size() + documents_at_once - 1) / documents_at_once);
    std::int64_t done = 0;
    for_each_block(
        blocks, options.workers,
        [&] {
          return worker{this, &documents, n, min_hash_with(best_scan_set())};
        },
        [&](std::int64_t tokens) {
          done += tokens;
          if (options.progress) options.progress(done, documents.token_count());
        });
  }

  static constexpr std::size_t documents_at_once = 64;

  std::size_t hashes_;
  std::vector<std::uint32_t> factors_;
  std::vector<std::uint32_t> terms_;
  std::vector<document_place> places_;
  std::vector<std::uint32_t> least_;
};

inline bool is_more_similar(const similar_documents& a, const similar_documents& b) {
  if (a.jaccard != b.jaccard) return a.jaccard > b.jaccard;
  return std::tie(a.later, a.earlier) < std::tie(b.later, b.earlier);
}

inline void check(const near_duplicate_options& near) {
  const auto refuse = [](const std::string& what) {
    throw config_error("near duplicates: " + what);
  };
  if (near.n < 1) refuse("n-grams of " + std::to_string(near.n) + " ids: expected 1 or more");
  if (near.hashes < 32 || near.hashes % 32 != 0 || near.hashes > 4096) {
    refuse(std::to_string(near.hashes) + " hash functions: expected a multiple of 32 up to 4096");
  }
  if (near.bands < 1 || near.hashes % near.bands != 0) {
    refuse(std::to_string(near.bands) + " bands: expected a divisor of the " +
           std::to_string(near.hashes) + " hash functions");
  }
  if (!(near.threshold > 0 && near.threshold <= 1))
    refuse("the threshold must be above 0 and at most 1");
}

}  // namespace detail

MILLRACE_INLINE double near_duplicate_options::chance(double jaccard) const {
  const double all_rows = std::pow(jaccard, static_cast<double>(hashes) / bands);
  return 1 - std::pow(1 - all_rows, bands);
}

MILLRACE_INLINE near_duplicates find_near_duplicates(std::span<const indexed_dataset> data,
                                                     const near_duplicate_options& near,
                                                     const statistics_options& options) {
  detail::check(near);
  const detail::document_list documents(data);
  const detail::signature_table table(documents, data, near, options);
  near_duplicates found;
  found.compared = static_cast<std::int64_t>(table.size());
  std::vector<bool> is_similar(table.size());
  const auto compare = [&](std::size_t earlier, std::size_t later) {
    const double jaccard = table.similarity(earlier, later);
    if (jaccard < near.threshold) return;
    is_similar[later] = true;
    const double error = std::sqrt(jaccard * (1 - jaccard) / near.hashes);
    found.pairs.push_back({table.place(earlier), table.place(later), jaccard, error});
  };
  const auto keep_best = [&] {
    std::ranges::sort(found.pairs, detail::is_more_similar);
    const auto end = std::unique(
        found.pairs.begin(), found.pairs.end(),
        [](const auto& a, const auto& b) { return a.earlier == b.earlier && a.later == b.later; });
    found.pairs.erase(end, found.pairs.end());
    if (found.pairs.size() > near.most_pairs) found.pairs.resize(near.most_pairs);
  };
  // Documents that share rows [first, last) of their signatures, next to each other.
  std::vector<bool> is_copy(table.size());
  std::vector<detail::hashed_document> bucket;
  const auto share_rows = [&](std::size_t first, std::size_t last) {
    bucket.clear();
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (is_copy[i]) continue;
      std::uint64_t hash = first;
      for (const std::uint32_t row : table.signature(i).subspan(first, last - first)) {
        hash = detail::mixed(hash ^ row) * 0x9e3779b97f4a7c15;
      }
      bucket.push_back({hash, static_cast<std::int64_t>(i)});
    }
    std::ranges::sort(bucket);
  };
  // First those with the same signature, so that none of them is missed among many similar ones.
  const auto hashes = static_cast<std::size_t>(near.hashes);
  share_rows(0, hashes);
  std::size_t first = 0;
  for (std::size_t i = 1; i < bucket.size(); ++i) {
    if (bucket[i].hash != bucket[first].hash) {
      first = i;
      continue;
    }
    const auto earlier = static_cast<std::size_t>(bucket[first].number);
    const auto later = static_cast<std::size_t>(bucket[i].number);
    if (table.similarity(earlier, later) < 1) continue;  // the hashes collide
    is_copy[later] = true;
    compare(earlier, later);
    if (found.pairs.size() > 2 * near.most_pairs + 4096) keep_best();
  }
  const std::size_t rows = hashes / static_cast<std::size_t>(near.bands);
  for (std::size_t band = 0; band < hashes; band += rows) {
    share_rows(band, band + rows);
    first = 0;
    for (std::size_t i = 1; i < bucket.size(); ++i) {
      if (bucket[i].hash != bucket[first].hash) {
        first = i;
        continue;
      }
      const auto later = static_cast<std::size_t>(bucket[i].number);
      compare(static_cast<std::size_t>(bucket[first].number), later);
      if (i - first > 1) compare(static_cast<std::size_t>(bucket[i - 1].number), later);
      if (found.pairs.size() > 2 * near.most_pairs + 4096) keep_best();
    }
  }
  keep_best();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!is_similar[i]) continue;
    ++found.documents;
    found.tokens += documents.tokens(table.place(i)).size();
  }
  return found;
}

}  // namespace millrace::dataset
