// SPDX-License-Identifier: Apache-2.0
#include "token_filter.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::dataset::detail {

/// A query, prepared to be compared with the texts of many tokens.
class overlapped_query {
 public:
  explicit overlapped_query(std::string_view query) : query_(query) {
    for (std::size_t i = 0; i < query.size(); ++i) {
      places_[static_cast<unsigned char>(query[i])].push_back(i);
    }
  }

  /// Calls use(begin, end) for each way to lay the token over the query so that they agree where
  /// they overlap: at bytes [begin, end) of the query.
  template <class Use>
  void for_each_overlap(std::string_view token, Use&& use) const {
    if (token.empty()) return;
    for (const std::size_t at : places_[static_cast<unsigned char>(token.front())]) {
      const std::size_t size = std::min(token.size(), query_.size() - at);
      if (token.substr(0, size) == query_.substr(at, size)) use(at, at + size);
    }
    for (std::size_t skip = 1; skip < token.size(); ++skip) {
      if (token[skip] != query_.front()) continue;
      const std::size_t size = std::min(token.size() - skip, query_.size());
      if (token.substr(skip, size) == query_.substr(0, size)) use(std::size_t{0}, size);
    }
  }

 private:
  std::string_view query_;
  std::array<std::vector<std::size_t>, 256> places_;
};

MILLRACE_INLINE token_filter::token_filter(const formats::token_texts& texts,
                                           const std::vector<std::string>& queries,
                                           const token_sample& sample)
    : anchors_(queries.size(), 0) {
  // A query takes a few milliseconds here, and the more queries there are, the more tokens pass.
  constexpr std::size_t most_queries = 32;
  constexpr std::int64_t least_ratio = 20;  // of all tokens to those that pass
  if (queries.size() > most_queries || sample.size() == 0) return;
  std::vector<std::int64_t> frequency(texts.inner.size(), 0);
  for (const std::int64_t id : sample.ids()) ++frequency[texts.index_of(id)];
  std::vector<std::uint8_t> flags(texts.inner.size(), 0);
  const auto for_each_overlap = [&](const overlapped_query& query, auto&& use) {
    for (std::size_t i = 0; i < flags.size(); ++i) {
      const auto use_one = [&](std::size_t begin, std::size_t end) { use(i, begin, end); };
      query.for_each_overlap(texts.text(texts.inner[i]), use_one);
      if ((texts.flags[i] & formats::token_texts::is_byte) != 0) {
        query.for_each_overlap("\xEF\xBF\xBD", use_one);  // if the run is not UTF-8
      } else if (texts.first[i].begin != texts.inner[i].begin) {
        query.for_each_overlap(texts.text(texts.first[i]), use_one);
      }
    }
  };
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const overlapped_query query(queries[q]);
    // One more than the tokens of the sample, so that of two anchors without any token in the
    // sample, the one with fewer tokens in the vocabulary is better.
    constexpr std::int64_t unit = std::int64_t{1} << 24;
    std::vector<std::int64_t> changes(queries[q].size() + 1, 0);
    for_each_overlap(query, [&](std::size_t i, std::size_t begin, std::size_t end) {
      changes[begin] += frequency[i] * unit + 1;
      changes[end] -= frequency[i] * unit + 1;
    });
    std::int64_t cost = 0;
    std::int64_t least = 0;
    for (std::size_t at = 0; at < queries[q].size(); ++at) {
      cost += changes[at];
      if (at > 0 && cost >= least) continue;
      least = cost;
      anchors_[q] = at;
    }
    for_each_overlap(query, [&](std::size_t i, std::size_t begin, std::size_t end) {
      if (begin <= anchors_[q] && anchors_[q] < end) flags[i] = 1;
    });
  }
  std::int64_t passing = 0;
  for (std::size_t i = 0; i < flags.size(); ++i) passing += flags[i] != 0 ? frequency[i] : 0;
  if (passing * least_ratio > sample.size()) {
    std::ranges::fill(anchors_, std::size_t{0});
    return;
  }
  flags_ = std::move(flags);
}

}  // namespace millrace::dataset::detail
