// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/token_mask.hpp>
#include <millrace/dataset/statistics.hpp>
#include <millrace/error.hpp>

#include "documents.hpp"

namespace millrace::dataset {

namespace detail {

/// Counts ids of type T, on one thread.
template <class T>
class id_counter {
 public:
  void count(std::span<const T> tokens) {
    // The tokens of a part stay in the L1 cache between the two loops over them.
    constexpr std::size_t most = 4096;
    for (std::size_t first = 0; first < tokens.size(); first += most) {
      count_part(tokens.subspan(first, std::min(most, tokens.size() - first)));
    }
  }

  /// Adds all counts to `all`.
  void add_to(token_counts& all) {
    flush();
    if constexpr (is_small) {
      // An id of 8 or 16 bits has its place at its unsigned value.
      if constexpr (std::is_signed_v<T>) {
        for (std::size_t i = totals_.size() / 2; i < totals_.size(); ++i) {
          if (totals_[i] != 0) others_[static_cast<T>(static_cast<id>(i))] += totals_[i];
          totals_[i] = 0;
        }
      }
    }
    while (!totals_.empty() && totals_.back() == 0) totals_.pop_back();
    if (all.by_id.size() < totals_.size()) all.by_id.resize(totals_.size());
    for (std::size_t i = 0; i < totals_.size(); ++i) all.by_id[i] += totals_[i];
    for (const auto& [each, times] : others_) all.others[each] += times;
    check_others(all.others.size());
  }

 private:
  using id = std::make_unsigned_t<T>;
  static constexpr bool is_small = sizeof(T) <= 2;
  /// Tables that take turns, so that an increment need not wait for the one before it if
  /// neighboring tokens are equal. More tables take more of the L2 cache.
  static constexpr std::size_t tables = 4;

  static void check_others(std::size_t count) {
    if (count < std::size_t{1} << 20) return;
    throw config_error(
        "2^20 different tokens are negative or at least 2^22, so they are not ids of a vocabulary");
  }

  void count_part(std::span<const T> tokens) {
    if constexpr (is_small) {
      if (size_ == 0) grow(std::size_t{1} << (8 * sizeof(T)));
    } else {
      id largest = 0;  // a negative id is larger than all others
      for (const T token : tokens) largest = std::max(largest, static_cast<id>(token));
      if (largest >= static_cast<id>(token_counts::most_by_id)) {
        count_slowly(tokens);
        return;
      }
      if (largest >= size_)
        grow(std::max<std::size_t>(std::bit_ceil(std::size_t{largest} + 1), 1U << 16));
    }
    constexpr std::uint64_t most_pending = std::uint64_t{1} << 31;
    if (pending_ + tokens.size() > most_pending) flush();
    pending_ += tokens.size();
    std::uint32_t* const a = counts_.data();
    std::uint32_t* const b = a + size_;
    std::uint32_t* const c = b + size_;
    std::uint32_t* const d = c + size_;
    std::size_t i = 0;
    for (; i + tables <= tokens.size(); i += tables) {
      ++a[static_cast<id>(tokens[i])];
      ++b[static_cast<id>(tokens[i + 1])];
      ++c[static_cast<id>(tokens[i + 2])];
      ++d[static_cast<id>(tokens[i + 3])];
    }
    for (; i < tokens.size(); ++i) ++a[static_cast<id>(tokens[i])];
  }

  void count_slowly(std::span<const T> tokens) {
    for (const T token : tokens) {
      const auto each = static_cast<std::int64_t>(token);
      if (each < 0 || each >= token_counts::most_by_id) {
        ++others_[each];
        continue;
      }
      const auto at = static_cast<std::size_t>(each);
      if (totals_.size() <= at) totals_.resize(std::bit_ceil(at + 1));
      ++totals_[at];
    }
    check_others(others_.size());
  }

  void grow(std::size_t size) {
    flush();
    size_ = size;
    counts_.assign(tables * size, 0);
  }

  /// Moves the 32-bit counts to the totals.
  void flush() {
    if (pending_ == 0) return;
    pending_ = 0;
    if (totals_.size() < size_) totals_.resize(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t table = 0; table < tables; ++table) {
        totals_[i] += std::exchange(counts_[table * size_ + i], 0);
      }
    }
  }

  std::size_t size_ = 0;               // entries of a table
  std::vector<std::uint32_t> counts_;  // all tables
  std::uint64_t pending_ = 0;          // tokens in counts_
  std::vector<std::int64_t> totals_;
  std::map<std::int64_t, std::int64_t> others_;
};

/// Calls add(length) for the lengths of entries [first, last) of one kind.
template <class Add>
void for_lengths(const searched_dataset& data, std::int64_t first, std::int64_t last, Add&& add) {
  std::int64_t begin = data.begin_of(first);
  for (std::int64_t d = first; d < last; ++d) {
    const std::int64_t end = data.begin_of(d + 1);
    add(std::max<std::int64_t>(end - begin, 0));
    begin = end;
  }
}

/// What one thread counts.
template <class T>
class statistics_worker {
 public:
  statistics_worker(const searched_dataset& data, std::span<const T> tokens,
                    std::int64_t block_tokens, std::int64_t blocks, dataset_statistics& all)
      : data_(&data), tokens_(tokens), block_tokens_(block_tokens), blocks_(blocks), all_(&all) {}

  /// Counts a block of tokens, and a block of the index. Returns the number of tokens.
  std::int64_t operator()(std::int64_t block) {
    const std::int64_t begin = block * block_tokens_;
    const std::int64_t count = std::min(block_tokens_, std::ssize(tokens_) - begin);
    ids_.count(tokens_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
    const auto part = [&](std::int64_t of, std::int64_t at) {
      return of / blocks_ * at + std::min(at, of % blocks_);
    };
    const std::int64_t documents = data_->document_count();
    for_lengths(*data_, part(documents, block), part(documents, block + 1),
                [&](std::int64_t length) { documents_.add(length); });
    const formats::mmidx_view& idx = data_->data().index();
    const std::int64_t sequences = idx.sequence_count();
    for (std::int64_t i = part(sequences, block); i < part(sequences, block + 1); ++i) {
      sequences_.add(std::max<std::int64_t>(idx.lengths[static_cast<std::size_t>(i)], 0));
    }
    data_->check_there();
    return count;
  }

  void finish() {
    ids_.add_to(all_->ids);
    all_->document_lengths += documents_;
    all_->sequence_lengths += sequences_;
  }

 private:
  const searched_dataset* data_;
  std::span<const T> tokens_;
  std::int64_t block_tokens_;
  std::int64_t blocks_;
  dataset_statistics* all_;
  id_counter<T> ids_;
  length_counts documents_;
  length_counts sequences_;
};

}  // namespace detail

MILLRACE_INLINE token_counts& token_counts::operator+=(const token_counts& other) {
  if (by_id.size() < other.by_id.size()) by_id.resize(other.by_id.size());
  for (std::size_t i = 0; i < other.by_id.size(); ++i) by_id[i] += other.by_id[i];
  for (const auto& [id, times] : other.others) others[id] += times;
  return *this;
}

MILLRACE_INLINE std::int64_t token_counts::count(std::int64_t id) const {
  if (0 <= id && id < std::ssize(by_id)) return by_id[static_cast<std::size_t>(id)];
  const auto found = others.find(id);
  return found == others.end() ? 0 : found->second;
}

MILLRACE_INLINE std::int64_t token_counts::total() const noexcept {
  std::int64_t sum = 0;
  for (const std::int64_t times : by_id) sum += times;
  for (const auto& [id, times] : others) sum += times;
  return sum;
}

MILLRACE_INLINE std::int64_t token_counts::distinct() const noexcept {
  return std::ranges::count_if(by_id, [](std::int64_t times) { return times != 0; }) +
         std::ssize(others);
}

MILLRACE_INLINE std::int64_t token_counts::distinct_below(std::int64_t end) const noexcept {
  std::int64_t found = 0;
  for (std::int64_t id = 0; id < std::min(end, std::ssize(by_id)); ++id) {
    found += by_id[static_cast<std::size_t>(id)] != 0 ? 1 : 0;
  }
  return found + std::ranges::count_if(
                     others, [&](const auto& each) { return 0 <= each.first && each.first < end; });
}

MILLRACE_INLINE std::int64_t token_counts::tokens_outside(std::int64_t end) const noexcept {
  std::int64_t found = 0;
  for (std::int64_t id = std::max<std::int64_t>(end, 0); id < std::ssize(by_id); ++id) {
    found += by_id[static_cast<std::size_t>(id)];
  }
  for (const auto& [id, times] : others) found += id < 0 || id >= end ? times : 0;
  return found;
}

MILLRACE_INLINE double token_counts::entropy() const {
  // log2(N) - sum(c log2 c) / N. The counts are added highest first, so the sum does not depend on
  // which id has which count.
  const std::vector<std::int64_t> counts = ranked();
  if (counts.empty()) return 0;
  double sum = 0;
  double all = 0;
  for (const std::int64_t times : counts) {
    const auto number = static_cast<double>(times);
    sum += number * std::log2(number);
    all += number;
  }
  return std::max(0.0, std::log2(all) - sum / all);
}

MILLRACE_INLINE std::vector<std::pair<std::int64_t, std::int64_t>> token_counts::most_frequent(
    std::size_t most) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (std::size_t i = 0; i < by_id.size(); ++i) {
    if (by_id[i] != 0) all.emplace_back(static_cast<std::int64_t>(i), by_id[i]);
  }
  all.insert(all.end(), others.begin(), others.end());
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
  std::partial_sort(all.begin(), end, all.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  all.erase(end, all.end());
  return all;
}

MILLRACE_INLINE std::vector<std::int64_t> token_counts::ranked() const {
  std::vector<std::int64_t> all;
  for (const std::int64_t times : by_id) {
    if (times != 0) all.push_back(times);
  }
  for (const auto& [id, times] : others) all.push_back(times);
  std::ranges::sort(all, std::greater<>());
  return all;
}

MILLRACE_INLINE std::optional<std::vector<input_share>> shares_of_inputs(
    const indexed_dataset& data) {
  const auto sources = document_sources::find(data);
  if (!sources) return std::nullopt;
  const detail::searched_dataset checked(data);
  std::vector<input_share> shares(sources->input_count());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i].input = sources->input_name(static_cast<std::uint32_t>(i));
  }
  std::int64_t document = 0;
  std::int64_t begin = checked.begin_of(0);
  sources->for_each([&](std::int64_t, const formats::source_place& place) {
    const std::int64_t end = checked.begin_of(++document);
    input_share& share = shares.at(place.input);
    ++share.documents;
    share.tokens += end - std::exchange(begin, end);
  });
  checked.check_there();
  return shares;
}

MILLRACE_INLINE dataset_statistics& dataset_statistics::operator+=(
    const dataset_statistics& other) {
  documents += other.documents;
  sequences += other.sequences;
  tokens += other.tokens;
  ids += other.ids;
  document_lengths += other.document_lengths;
  sequence_lengths += other.sequence_lengths;
  return *this;
}

MILLRACE_INLINE dataset_statistics statistics_of(const indexed_dataset& data,
                                                 const statistics_options& options) {
  detail::require_integers(data);
  const detail::searched_dataset checked(data);
  dataset_statistics all;
  all.documents = data.document_count();
  all.sequences = data.sequence_count();
  all.tokens = data.token_count();
  const std::int64_t block_tokens = std::max<std::int64_t>(options.block_tokens, 1);
  // At least one block, because there may be empty documents.
  const std::int64_t blocks =
      std::max<std::int64_t>((data.token_count() + block_tokens - 1) / block_tokens, 1);
  std::int64_t done = 0;
  detail::with_integers(data.stream(), [&]<class T>(std::span<const T> tokens) {
    detail::for_each_block(
        blocks, options.workers,
        [&] { return detail::statistics_worker<T>(checked, tokens, block_tokens, blocks, all); },
        [&](std::int64_t tokens_done) {
          done += tokens_done;
          if (options.progress) options.progress(done, data.token_count());
        });
  });
  return all;
}

MILLRACE_INLINE std::optional<length_counts> trained_lengths_of(const indexed_dataset& data) {
  const auto mask = token_mask::find(data);
  if (!mask) return std::nullopt;
  const lost_page_watch watch(mask->bytes());
  length_counts lengths;
  std::int64_t token = 0;  // documents follow one another in the .bin
  for (std::int64_t d = 0; d < data.document_count(); ++d) {
    const std::int64_t first = token;
    const document_range range = data.document(d);
    for (std::int64_t s = range.first; s < range.last; ++s) token += data.sequence_length(s);
    if (token > data.token_count()) {
      throw format_error(data.idx_path(), 0,
                         "document " + std::to_string(d) + " ends at token " +
                             std::to_string(token) + ", but the .bin has " +
                             std::to_string(data.token_count()));
    }
    lengths.add(static_cast<std::int64_t>(
        mask->bits().count(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(token))));
  }
  watch.check_there(mask->path());
  return lengths;
}

}  // namespace millrace::dataset
