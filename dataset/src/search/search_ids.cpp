// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

#include "block_search.hpp"
#include "id_scan.hpp"

namespace millrace::dataset {

namespace detail {

/// A query in the type of the tokens. A scan looks for its anchor, the id that seems to be the
/// rarest.
template <class T>
struct typed_query {
  std::int64_t query = 0;  ///< index in the list of queries
  std::vector<T> ids;
  std::size_t anchor = 0;  ///< index in `ids`

  std::int64_t size() const noexcept { return std::ssize(ids); }
};

/// The queries whose ids all fit the type of the tokens; others have no hits.
template <class T>
std::vector<typed_query<T>> typed_queries(const std::vector<std::vector<std::int64_t>>& queries) {
  std::vector<typed_query<T>> all;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const auto fits = [](std::int64_t id) {
      return std::numeric_limits<T>::min() <= id && id <= std::numeric_limits<T>::max();
    };
    if (!std::ranges::all_of(queries[q], fits)) continue;
    all.push_back({static_cast<std::int64_t>(q), {}, 0});
    for (const std::int64_t id : queries[q]) all.back().ids.push_back(static_cast<T>(id));
  }
  return all;
}

/// Checks and counts the places that a scan finds.
template <class T>
class id_searcher {
 public:
  id_searcher(const searched_dataset& data, std::span<const T> tokens)
      : data_(&data), tokens_(tokens) {}

  /// Counts a hit if `query` is at the place where its anchor is at token `at`.
  void check(const typed_query<T>& query, std::int64_t at, search_tally& tally) {
    const std::int64_t begin = at - static_cast<std::int64_t>(query.anchor);
    if (begin < 0 || std::ssize(tokens_) - begin < query.size()) return;
    const auto place = tokens_.subspan(static_cast<std::size_t>(begin), query.ids.size());
    if (!std::ranges::equal(place, query.ids)) return;
    document_ = data_->document_at(begin, document_);
    if (document_.end - begin < query.size()) return;
    const std::int64_t token = begin - document_.begin;
    if (!tally.count(query.query, document_, token)) return;
    search_hit hit;
    hit.document = document_.document;
    hit.token = token;
    hit.query = query.query;
    hit.tokens = query.size();
    tally.keep(hit);
  }

 private:
  const searched_dataset* data_;
  std::span<const T> tokens_;
  document_tokens document_;
};

/// Tokens per call of a scan; their positions stay in the L1 or L2 cache.
inline constexpr std::int64_t scan_tokens = std::int64_t{1} << 13;

template <class T>
using unsigned_tokens = const std::make_unsigned_t<T>*;

/// Searches for one query: the scan compares two of its ids at once.
template <class T>
search_tally search_one(const searched_dataset& data, std::span<const T> tokens,
                        typed_query<T> query, const search_options& options, std::size_t queries) {
  using id = std::make_unsigned_t<T>;
  const token_sample sample(data.data().stream());
  std::vector<std::size_t> rarest(query.ids.size());
  std::iota(rarest.begin(), rarest.end(), std::size_t{0});
  std::ranges::stable_sort(rarest, {}, [&](std::size_t i) { return sample.count(query.ids[i]); });
  query.anchor = rarest[0];
  const std::size_t second = rarest[rarest.size() > 1 ? 1 : 0];
  const id_pair<id> wanted{
      static_cast<id>(query.ids[query.anchor]), static_cast<id>(query.ids[second]),
      static_cast<std::ptrdiff_t>(second) - static_cast<std::ptrdiff_t>(query.anchor)};
  // The anchors of hits that lie in the stream as a whole.
  const auto least = static_cast<std::int64_t>(query.anchor);
  const std::int64_t most = data.token_count() - query.size() + least + 1;
  const scan_pairs<id> scan = scan_pairs_with<id>(best_scan_set());
  return search_blocks(data, options, queries, [&] {
    return
        [&, check = id_searcher<T>(data, tokens), places = std::vector<std::uint32_t>(scan_tokens)](
            std::int64_t begin, std::int64_t end, bool /*is_last*/, search_tally& tally) mutable {
          end = std::min(end, most);
          for (std::int64_t at = std::max(begin, least); at < end; at += scan_tokens) {
            const auto count = static_cast<std::size_t>(std::min(scan_tokens, end - at));
            const std::size_t found = scan(reinterpret_cast<unsigned_tokens<T>>(tokens.data()) + at,
                                           count, wanted, places.data());
            for (std::size_t i = 0; i < found; ++i) check.check(query, at + places[i], tally);
          }
        };
  });
}

/// Queries by the id of their anchor.
template <class T>
class anchor_table {
 public:
  using id = std::make_unsigned_t<T>;

  anchor_table(std::vector<typed_query<T>> queries, const token_sample& sample)
      : queries_(std::move(queries)) {
    // Distributes queries of equally rare ids, so that no id has most of them.
    std::vector<std::int64_t> load(most_flags + 1);
    for (typed_query<T>& query : queries_) {
      const auto cost = [&](T each) { return (sample.count(each) + 1) * (1 + load[index(each)]); };
      query.anchor = static_cast<std::size_t>(std::ranges::min_element(query.ids, {}, cost) -
                                              query.ids.begin());
      ++load[index(anchor(query))];
    }
    std::ranges::stable_sort(queries_, {}, [&](const auto& q) { return index(anchor(q)); });
    starts_.assign(most_flags + 2, 0);
    for (const typed_query<T>& query : queries_) ++starts_[index(anchor(query)) + 1];
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    flags_.resize(most_flags + 1);
    for (std::size_t i = 0; i <= most_flags; ++i) flags_[i] = starts_[i] < starts_[i + 1] ? 1 : 0;
  }

  const std::uint8_t* flags() const noexcept { return flags_.data(); }
  static constexpr id last() noexcept { return static_cast<id>(most_flags); }

  /// The queries whose anchor may be this id.
  std::span<const typed_query<T>> of(T each) const noexcept {
    const std::size_t i = index(each);
    return std::span(queries_).subspan(starts_[i], starts_[i + 1] - starts_[i]);
  }

 private:
  /// Higher ids share an entry.
  static constexpr std::size_t most_flags =
      std::min<std::uint64_t>(std::numeric_limits<id>::max(), std::uint64_t{1} << 18);

  static T anchor(const typed_query<T>& query) noexcept { return query.ids[query.anchor]; }
  static std::size_t index(T each) noexcept {
    return static_cast<std::size_t>(std::min<id>(static_cast<id>(each), last()));
  }

  std::vector<typed_query<T>> queries_;
  std::vector<std::size_t> starts_;
  std::vector<std::uint8_t> flags_;
};

template <class T>
search_tally search_many(const searched_dataset& data, std::span<const T> tokens,
                         std::vector<typed_query<T>> typed, const search_options& options,
                         std::size_t queries) {
  const anchor_table<T> anchors(std::move(typed), token_sample(data.data().stream()));
  return search_blocks(data, options, queries, [&] {
    return
        [&, check = id_searcher<T>(data, tokens),
         places = std::vector<std::uint32_t>(scan_tokens + 8)](
            std::int64_t begin, std::int64_t end, bool /*is_last*/, search_tally& tally) mutable {
          for (std::int64_t at = begin; at < end; at += scan_tokens) {
            const auto count = static_cast<std::size_t>(std::min(scan_tokens, end - at));
            const std::size_t found =
                scan_flags(reinterpret_cast<unsigned_tokens<T>>(tokens.data()) + at, count,
                           anchors.flags(), anchors.last(), places.data());
            for (std::size_t i = 0; i < found; ++i) {
              const std::int64_t place = at + places[i];
              for (const auto& query : anchors.of(tokens[static_cast<std::size_t>(place)])) {
                check.check(query, place, tally);
              }
            }
          }
        };
  });
}

}  // namespace detail

MILLRACE_INLINE search_result search_ids(const indexed_dataset& data,
                                         const std::vector<std::vector<std::int64_t>>& queries,
                                         const search_options& options) {
  if (queries.empty()) throw config_error("a search needs at least one query");
  for (std::size_t q = 0; q < queries.size(); ++q) {
    if (!queries[q].empty()) continue;
    throw config_error("query " + std::to_string(q) + " has no ids; expected at least one");
  }
  const detail::searched_dataset searched(data);
  return detail::with_integers(data.stream(), [&]<class T>(std::span<const T> tokens) {
    auto typed = detail::typed_queries<T>(queries);
    if (typed.empty()) return detail::search_tally(queries.size(), 0).result(searched);
    if (typed.size() == 1) {
      return detail::search_one<T>(searched, tokens, std::move(typed.front()), options,
                                   queries.size())
          .result(searched);
    }
    return detail::search_many<T>(searched, tokens, std::move(typed), options, queries.size())
        .result(searched);
  });
}

}  // namespace millrace::dataset
