// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/row_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/megatron/numpy_random.hpp>
#include <millrace/dataset/detail/packing/best_fit.hpp>
#include <millrace/dataset/detail/packing/level_bitmap.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// Rows for first fit: a tree of maxima. Each leaf is the room of a row; each inner node is the
/// larger of its two children.
class first_fit_rows {
 public:
  explicit first_fit_rows(std::uint32_t room) : empty_(room), tree_(2, 0) {}

  std::uint32_t count() const noexcept { return count_; }

  /// Puts a length into the first row that has room for it, or into a new row. Returns the row.
  std::uint32_t put(std::uint32_t length) {
    if (count_ != 0 && tree_[1] >= length) {
      std::size_t at = 1;
      while (at < leaves()) {
        at *= 2;
        if (tree_[at] < length) ++at;
      }
      set(at, tree_[at] - length);
      return static_cast<std::uint32_t>(at - leaves());
    }
    if (count_ == leaves()) grow();
    set(leaves() + count_, empty_ - length);
    return count_++;
  }

 private:
  std::size_t leaves() const noexcept { return tree_.size() / 2; }

  void set(std::size_t at, std::uint32_t room) noexcept {
    tree_[at] = room;
    for (at /= 2; at != 0; at /= 2) {
      const std::uint32_t most = std::max(tree_[2 * at], tree_[2 * at + 1]);
      if (tree_[at] == most) return;
      tree_[at] = most;
    }
  }

  void grow() {
    const std::size_t before = leaves();
    std::vector<std::uint32_t> larger(4 * before, 0);
    std::copy(tree_.begin() + static_cast<std::ptrdiff_t>(before), tree_.end(),
              larger.begin() + static_cast<std::ptrdiff_t>(2 * before));
    tree_.swap(larger);
    for (std::size_t at = leaves() - 1; at != 0; --at) {
      tree_[at] = std::max(tree_[2 * at], tree_[2 * at + 1]);
    }
  }

  std::uint32_t empty_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> tree_;  // tree_[1] is the root; the second half are the leaves
};

/// Sorts items by their rows. Items of the same row keep their order.
///
/// @param row_of  the row of each item
/// @return where each row begins, and the number of items
MILLRACE_INLINE std::vector<std::uint32_t> sort_by_row(std::vector<std::uint32_t>& items,
                                                       std::vector<std::uint32_t>&& row_of,
                                                       std::uint32_t rows) {
  std::vector<std::uint32_t> begins(std::size_t{rows} + 1, 0);
  for (const std::uint32_t row : row_of) ++begins[row];
  // Each entry becomes the end of its row. Taking items from the last to the first turns it into
  // the begin of the row.
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::uint32_t> sorted(items.size());
  for (std::size_t i = items.size(); i-- > 0;) sorted[--begins[row_of[i]]] = items[i];
  items.swap(sorted);
  std::vector<std::uint32_t>().swap(row_of);
  return begins;
}

/// The documents of a dataset, by length.
class documents_by_length {
 public:
  documents_by_length(std::int64_t seq_len, std::int64_t documents,
                      const row_plan::lengths_reader& lengths)
      : documents_(documents), lengths_(lengths), ends_(static_cast<std::size_t>(seq_len) + 2, 0) {
    for_each([&](std::int64_t document, std::int64_t length) {
      if (length <= seq_len) {
        ++ends_[static_cast<std::size_t>(length) + 1];
      } else if (overlong++ == 0) {
        first_overlong = document;
        first_overlong_length = length;
      }
    });
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  }

  /// The number of documents with this length.
  std::uint32_t count(std::size_t length) const noexcept {
    return ends_[length + 1] - ends_[length];
  }
  std::uint32_t total() const noexcept { return ends_.back(); }
  std::size_t longest() const noexcept { return ends_.size() - 2; }
  std::uint32_t begin(std::size_t length) const noexcept { return ends_[length]; }

  /// Returns all documents that are not overlong, the shortest first, else in stored order.
  std::vector<std::uint32_t> sorted() const {
    std::vector<std::uint32_t> all(total());
    std::vector<std::uint32_t> at(ends_.begin(), ends_.end() - 1);
    std::uint32_t found = 0;
    bool have_changed = false;
    for_each([&](std::int64_t document, std::int64_t length) {
      const auto l = static_cast<std::size_t>(length);
      if (l > longest()) return;
      have_changed = have_changed || at[l] == ends_[l + 1];
      if (have_changed) return;
      all[at[l]++] = static_cast<std::uint32_t>(document);
      ++found;
    });
    if (have_changed || found != total()) {
      throw config_error("the lengths of documents changed while they were packed");
    }
    return all;
  }

  std::int64_t overlong = 0;
  std::int64_t first_overlong = 0;
  std::int64_t first_overlong_length = 0;

 private:
  template <class Visit>
  void for_each(const Visit& visit) const {
    constexpr std::int64_t at_once = 1 << 14;
    std::vector<std::int64_t> some;
    for (std::int64_t first = 0; first < documents_; first += at_once) {
      const std::int64_t last = std::min(documents_, first + at_once);
      lengths_(first, last, some);
      for (std::int64_t d = first; d < last; ++d) {
        visit(d, some[static_cast<std::size_t>(d - first)]);
      }
    }
  }

  std::int64_t documents_;
  const row_plan::lengths_reader& lengths_;
  std::vector<std::uint32_t> ends_;  // [length]: number of documents that are shorter
};

/// Rows of documents, as a plan stores them.
struct packed_documents {
  std::vector<std::uint32_t> documents;
  std::vector<std::uint32_t> begins;
};

MILLRACE_INLINE packed_documents pack_first_fit(const row_plan_options& options,
                                                const documents_by_length& by_length) {
  // Megatron-Bridge packs lengths first, and draws the documents of each length afterwards.
  std::vector<std::uint32_t> items;
  items.reserve(by_length.total());
  for (std::size_t length = 0; length <= by_length.longest(); ++length) {
    items.insert(items.end(), by_length.count(length), static_cast<std::uint32_t>(length));
  }
  numpy_random random(options.seed);
  if (options.algorithm == packing_algorithm::first_fit_shuffle) {
    random.shuffle(std::span(items));
  } else {
    std::ranges::reverse(items);
  }

  std::uint32_t rows = 0;
  std::vector<std::uint32_t> row_of(items.size());
  {
    first_fit_rows open(static_cast<std::uint32_t>(options.seq_len));
    for (std::size_t i = 0; i < items.size(); ++i) row_of[i] = open.put(items[i]);
    rows = open.count();
  }
  packed_documents packed;
  packed.begins = sort_by_row(items, std::move(row_of), rows);

  std::vector<std::uint32_t> left = by_length.sorted();
  std::vector<std::uint32_t> ends;  // [length]: end of the documents in `left`
  for (std::size_t length = 0; length <= by_length.longest(); ++length) {
    random.shuffle(std::span(left).subspan(by_length.begin(length), by_length.count(length)));
    ends.push_back(by_length.begin(length + 1));
  }
  // Documents without tokens are drawn, because the draws after them depend on it, but left out.
  std::uint32_t kept = 0;
  std::uint32_t i = 0;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint32_t end = packed.begins[row + std::size_t{1}];
    packed.begins[row] = kept;
    for (; i < end; ++i) {
      const std::uint32_t length = items[i];
      const std::uint32_t document = left[--ends[length]];
      if (length != 0) items[kept++] = document;
    }
  }
  packed.begins.back() = kept;
  items.resize(kept);
  if (kept == 0) packed.begins.assign(1, 0);  // no document has tokens
  packed.documents = std::move(items);
  return packed;
}

MILLRACE_INLINE packed_documents pack_one_per_row(const documents_by_length& by_length) {
  packed_documents packed{by_length.sorted(), {}};
  // Documents without tokens come first.
  packed.documents.erase(packed.documents.begin(),
                         packed.documents.begin() + by_length.count(std::size_t{0}));
  std::ranges::sort(packed.documents);
  packed.begins.resize(packed.documents.size() + 1);
  std::iota(packed.begins.begin(), packed.begins.end(), 0U);
  return packed;
}

/// Modified first-fit decreasing. The steps are those in the documentation of `row_plan`.
class modified_first_fit {
 public:
  explicit modified_first_fit(const documents_by_length& by_length)
      : seq_len_(by_length.longest()), left_(by_length.sorted()), lengths_(seq_len_) {
    for (std::size_t length = 0; length <= seq_len_; ++length) {
      fronts_.push_back(by_length.begin(length));
      backs_.push_back(by_length.begin(length + 1));
      if (length != 0 && by_length.count(length) != 0) lengths_.insert(length);
    }
    items_.reserve(left_.size());
    row_of_.reserve(left_.size());
  }

  packed_documents pack() {
    begin_large_rows();
    add_medium();
    add_small_pairs();
    fill_rows();
    pack_the_rest();
    std::vector<std::uint32_t>().swap(left_);
    packed_documents packed;
    packed.begins =
        sort_by_row(items_, std::move(row_of_), static_cast<std::uint32_t>(rooms_.size()));
    packed.documents = std::move(items_);
    return packed;
  }

 private:
  static constexpr std::size_t none = level_bitmap::none;

  bool has(std::size_t length) const noexcept { return fronts_[length] != backs_[length]; }

  /// The longest document that remains with a length from `least` to `most`; `none` if there is
  /// none.
  std::size_t longest(std::size_t least, std::size_t most) const noexcept {
    const std::size_t found = lengths_.at_most(most);
    return found == none || found < least ? none : found;
  }

  void put(std::size_t row, std::size_t length, std::uint32_t document) {
    items_.push_back(document);
    row_of_.push_back(static_cast<std::uint32_t>(row));
    rooms_[row] -= static_cast<std::uint32_t>(length);
    if (!has(length)) lengths_.erase(length);
  }
  void put_first_of(std::size_t row, std::size_t length) {
    put(row, length, left_[fronts_[length]++]);
  }
  void put_last_of(std::size_t row, std::size_t length) {
    put(row, length, left_[--backs_[length]]);
  }
  std::size_t new_row() {
    rooms_.push_back(static_cast<std::uint32_t>(seq_len_));
    return rooms_.size() - 1;
  }

  void begin_large_rows() {
    for (std::size_t length = seq_len_; length > half_; --length) {
      while (has(length)) put_first_of(new_row(), length);
    }
    large_rows_ = rooms_.size();
  }

  void add_medium() {
    for (std::size_t row = 0; row < large_rows_; ++row) {
      const std::size_t length = longest(third_ + 1, std::min<std::size_t>(rooms_[row], half_));
      if (length != none) put_first_of(row, length);
    }
  }

  void add_small_pairs() {
    // A row with a medium document has too little room for a small one.
    for (std::size_t row = large_rows_; row-- > 0;) {
      const std::size_t shortest = lengths_.at_least(sixth_ + 1);
      if (shortest == none || shortest > third_) return;
      const bool twice = backs_[shortest] - fronts_[shortest] > 1;
      const std::size_t next = twice ? shortest : lengths_.at_least(shortest + 1);
      if (next == none || next > third_) return;  // fewer than two small documents remain
      if (shortest + next > rooms_[row]) continue;
      put_first_of(row, shortest);
      put_last_of(row, longest(sixth_ + 1, std::min<std::size_t>(rooms_[row], third_)));
    }
  }

  void fill_rows() {
    for (std::size_t row = 0; row < large_rows_; ++row) {
      for (;;) {
        const std::size_t length = longest(1, rooms_[row]);
        if (length == none) break;
        put_first_of(row, length);
      }
    }
  }

  void pack_the_rest() {
    constexpr std::uint32_t no_next = row_plan::no_row;
    // The rows of this step, by their tokens. Rows with equal tokens form a queue.
    level_bitmap fills(seq_len_);
    std::vector<std::uint32_t> first(seq_len_ + 1);
    std::vector<std::uint32_t> last(seq_len_ + 1);
    std::vector<std::uint32_t> next;  // [rows of this step]
    const auto enqueue = [&](std::size_t fill, std::uint32_t row) {
      next[row] = no_next;
      if (fills.has(fill)) {
        next[last[fill]] = row;
      } else {
        first[fill] = row;
        fills.insert(fill);
      }
      last[fill] = row;
    };
    const auto dequeue = [&](std::size_t fill) {
      const std::uint32_t row = first[fill];
      first[fill] = next[row];
      if (first[fill] == no_next) fills.erase(fill);
      return row;
    };
    for (std::size_t length = lengths_.at_most(seq_len_); length != none;
         length = lengths_.at_most(length)) {
      while (has(length)) {
        std::size_t fill = fills.at_least(0);
        std::uint32_t row = 0;
        if (fill != none && length <= seq_len_ - fill) {
          row = dequeue(fill);
        } else {
          fill = 0;
          row = static_cast<std::uint32_t>(next.size());
          next.push_back(no_next);
          (void)new_row();
        }
        put_first_of(large_rows_ + row, length);
        enqueue(fill + length, row);
      }
    }
    // Renumber the rows of this step in the order of their tokens.
    std::vector<std::uint32_t> number(next.size());
    std::uint32_t numbered = 0;
    for (std::size_t fill = fills.at_least(0); fill != none; fill = fills.at_least(fill + 1)) {
      for (std::uint32_t row = first[fill]; row != no_next; row = next[row]) {
        number[row] = numbered++;
      }
    }
    const auto large = static_cast<std::uint32_t>(large_rows_);
    for (std::uint32_t& row : row_of_) {
      if (row >= large) row = large + number[row - large];
    }
  }

  std::size_t seq_len_;
  std::size_t half_ = seq_len_ / 2;  // the longest medium document, if rounded down; and so on
  std::size_t third_ = seq_len_ / 3;
  std::size_t sixth_ = seq_len_ / 6;
  std::vector<std::uint32_t> left_;    // documents by length; those that remain are between
  std::vector<std::uint32_t> fronts_;  // [length] this offset
  std::vector<std::uint32_t> backs_;   // [length] and this one
  level_bitmap lengths_;               // of the documents that remain
  std::vector<std::uint32_t> items_;   // documents, in the order in which they were packed
  std::vector<std::uint32_t> row_of_;  // the row of each
  std::vector<std::uint32_t> rooms_;   // [rows]
  std::size_t large_rows_ = 0;
};

}  // namespace detail

MILLRACE_INLINE row_plan::row_plan(const row_plan_options& options, std::int64_t documents,
                                   const lengths_reader& lengths) {
  check(best_fit_options{.seq_len = options.seq_len});
  if (documents >= no_row) {
    throw config_error(std::string(name(options.algorithm)) + " packs all documents at once, but " +
                       std::to_string(documents) + " are given, expected at most " +
                       std::to_string(no_row - 1) + ": use best_fit, which packs blocks");
  }
  const detail::documents_by_length by_length(options.seq_len, documents, lengths);
  overlong_ = by_length.overlong;
  first_overlong_ = by_length.first_overlong;
  first_overlong_length_ = by_length.first_overlong_length;
  detail::packed_documents packed =
      options.algorithm == packing_algorithm::one_per_row ? detail::pack_one_per_row(by_length)
      : options.algorithm == packing_algorithm::modified_first_fit_decreasing
          ? detail::modified_first_fit(by_length).pack()
          : detail::pack_first_fit(options, by_length);
  documents_ = std::move(packed.documents);
  begins_ = std::move(packed.begins);
  row_of_.assign(static_cast<std::size_t>(documents), no_row);
  for (std::int64_t row = 0; row < row_count(); ++row) {
    for (const std::uint32_t document : documents_of(row)) {
      row_of_[document] = static_cast<std::uint32_t>(row);
    }
  }
}

}  // namespace millrace::dataset
