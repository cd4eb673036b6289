// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/diff.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/document_content.hpp>
#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/dtype.hpp>

#include "../share_blocks.hpp"

namespace millrace::dataset {

namespace detail {

/// Index of the first byte that differs; the size of the shorter one if there is none.
inline std::size_t first_unequal_byte(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::size_t size = std::min(a.size(), b.size());
  constexpr std::size_t piece = std::size_t{1} << 12;
  for (std::size_t at = 0; at < size; at += piece) {
    const std::size_t count = std::min(piece, size - at);
    if (std::memcmp(a.data() + at, b.data() + at, count) == 0) continue;
    const auto from = static_cast<std::ptrdiff_t>(at);
    return static_cast<std::size_t>(
        std::mismatch(a.begin() + from, a.end(), b.begin() + from).first - a.begin());
  }
  return size;
}

/// Index of the last document that begins at or before a sequence.
/// @pre the document index is valid, and 0 <= sequence < sequence_count()
inline std::int64_t document_with(const indexed_dataset& data, std::int64_t sequence) {
  const auto& begins = data.index().document_index;
  std::int64_t low = 0;
  std::int64_t high = data.document_count();
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (begins[static_cast<std::size_t>(middle)] <= sequence ? low : high) = middle;
  }
  return low;
}

/// Offset of a sequence in the stream, in tokens.
inline std::int64_t first_token_of(const indexed_dataset& data, std::int64_t sequence) {
  if (sequence == data.sequence_count()) return data.token_count();
  return data.index().pointers[static_cast<std::size_t>(sequence)] /
         static_cast<std::int64_t>(formats::size_bytes(data.type()));
}

/// Documents [a, a + count) of A and [b, b + count) of B. They have the same lengths, or are equal.
struct aligned_documents {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t count = 1;
};

/// What differs between aligned documents.
struct aligned_difference {
  place_counts counts;
  std::vector<std::int64_t> documents;  ///< differing ones, counted from the first
};

/// One comparison of two datasets.
class dataset_comparison {
 public:
  dataset_comparison(const indexed_dataset& a, const indexed_dataset& b,
                     const diff_options& options)
      : a_(a),
        b_(b),
        options_(options),
        type_(common_id_type(a.type(), b.type())),
        modes_(a.is_multimodal() && b.is_multimodal()),
        watch_a_(a.stream().bytes()),
        watch_b_(b.stream().bytes()) {}

  dataset_difference run() {
    dataset_difference found;
    found.both_have_modes = a_.is_multimodal() == b_.is_multimodal();
    const std::int64_t all_a = a_.document_count();
    const std::int64_t all_b = b_.document_count();
    const std::int64_t front = equal_lengths_in_front();
    const std::int64_t back = equal_lengths_behind(front);
    const bool same_lengths = front == all_a && front == all_b;

    const aligned_difference head = compare({0, 0, front});
    const aligned_difference tail = compare({all_a - back, all_b - back, back});
    if (same_lengths) {
      found.in_place = head.counts;
    } else {
      found.in_place.reset();
    }
    if (!head.documents.empty() || !same_lengths) {
      found.first = first_difference_in(head.documents.empty() ? front : head.documents.front());
    }

    match(front, back, head.documents, tail.documents, found);
    if (found.moved == 0) return found;
    // Documents may be equal at the same place by chance, because there are copies. Then fewer may
    // have moved than it seems. So compare all by content that are not in front of the first
    // difference or after the last one.
    const auto equal_in_front = head.documents.empty() ? front : head.documents.front();
    std::int64_t equal_behind = back;
    if (same_lengths && !head.documents.empty()) {
      equal_behind = front - 1 - head.documents.back();
    } else if (!tail.documents.empty()) {
      equal_behind = back - 1 - tail.documents.back();
    }
    match(equal_in_front, equal_behind, {}, {}, found);
    return found;
  }

 private:
  /// Number of documents at the front whose sequences have the same lengths and modes.
  std::int64_t equal_lengths_in_front() const {
    const auto& x = a_.index();
    const auto& y = b_.index();
    std::int64_t equal = std::min(a_.document_count(), b_.document_count());
    // Entry d + 1 of a document index is the end of document d; entry 0 is 0.
    const std::size_t ends =
        first_unequal_byte(x.document_index.bytes(), y.document_index.bytes()) / 8;
    equal = std::min(equal, static_cast<std::int64_t>(ends) - 1);
    const auto stop_at = [&](std::size_t sequence) {
      // If one dataset has no more sequences, the ends of its documents differ already.
      if (sequence >= std::min(x.lengths.size(), y.lengths.size())) return;
      equal = std::min(equal, document_with(a_, static_cast<std::int64_t>(sequence)));
    };
    stop_at(first_unequal_byte(x.lengths.bytes(), y.lengths.bytes()) / 4);
    if (modes_) stop_at(first_unequal_byte(x.modes.bytes(), y.modes.bytes()));
    return equal;
  }

  /// Number of documents at the end, after the first `front`, whose sequences have the same lengths
  /// and modes.
  std::int64_t equal_lengths_behind(std::int64_t front) const {
    const std::int64_t most = std::min(a_.document_count(), b_.document_count()) - front;
    std::int64_t equal = 0;
    for (; equal < most; ++equal) {
      const document_range x = a_.document(a_.document_count() - 1 - equal);
      const document_range y = b_.document(b_.document_count() - 1 - equal);
      if (x.size() != y.size()) return equal;
      for (std::int64_t s = 0; s < x.size(); ++s) {
        if (a_.sequence_length(x.first + s) != b_.sequence_length(y.first + s)) return equal;
        if (modes_ && a_.mode(x.first + s) != b_.mode(y.first + s)) return equal;
      }
    }
    return equal;
  }

  /// What differs in one block of tokens. A document or sequence may continue in the next block.
  struct block_difference {
    std::int64_t tokens = 0;
    std::int64_t sequences = 0;
    std::int64_t first_sequence = -1;
    std::int64_t last_sequence = -1;
    std::vector<std::int64_t> documents = {};
  };

  aligned_difference compare(const aligned_documents& both) {
    aligned_difference all;
    const auto begin = [&](const indexed_dataset& data, std::int64_t document) {
      return first_token_of(data, data.index().document_index[static_cast<std::size_t>(document)]);
    };
    if (both.count == 0) return all;
    const std::int64_t from_a = begin(a_, both.a);
    const std::int64_t from_b = begin(b_, both.b);
    const std::int64_t tokens = begin(a_, both.a + both.count) - from_a;
    const token_view x = a_.stream().subview(from_a, tokens);
    const token_view y = b_.stream().subview(from_b, tokens);
    const std::int64_t block = std::max<std::int64_t>(options_.block, 1);
    const auto blocks = static_cast<std::uint64_t>((tokens + block - 1) / block);
    std::vector<block_difference> found(static_cast<std::size_t>(blocks));
    std::mutex mutex;
    share_blocks(blocks, options_.workers, [&] {
      return [&, buffer_x = std::vector<std::byte>(),
              buffer_y = std::vector<std::byte>()](std::uint64_t number) mutable {
        const std::int64_t first = static_cast<std::int64_t>(number) * block;
        const std::int64_t last = std::min(first + block, tokens);
        for (std::int64_t at = first; at < last; at += most_ids_as) {
          const std::int64_t count = std::min(most_ids_as, last - at);
          const auto part_x = ids_as(type_, x.subview(at, count), buffer_x);
          const auto part_y = ids_as(type_, y.subview(at, count), buffer_y);
          if (std::memcmp(part_x.data(), part_y.data(), part_x.size()) == 0) continue;
          add_difference(part_x, part_y, from_a + at, found[static_cast<std::size_t>(number)]);
        }
        check_there();
        const std::scoped_lock lock(mutex);
        compared_ += last - first;
        if (options_.progress) options_.progress(compared_);
      };
    });
    std::int64_t last_sequence = -1;
    for (const block_difference& each : found) {
      if (each.tokens == 0) continue;
      all.counts.tokens += each.tokens;
      all.counts.sequences += each.sequences - (each.first_sequence == last_sequence ? 1 : 0);
      last_sequence = each.last_sequence;
      for (const std::int64_t d : each.documents) {
        if (all.documents.empty() || all.documents.back() != d - both.a) {
          all.documents.push_back(d - both.a);
        }
      }
    }
    all.counts.documents = std::ssize(all.documents);
    return all;
  }

  /// Adds the ids that differ between two parts of the same size.
  /// @param at  offset of the parts in the stream of A, in tokens
  void add_difference(std::span<const std::byte> x, std::span<const std::byte> y, std::int64_t at,
                      block_difference& found) const {
    const std::size_t item = formats::size_bytes(type_);
    const auto count = static_cast<std::int64_t>(x.size() / item);
    const auto differs = [&](std::int64_t i) {
      const std::size_t byte = static_cast<std::size_t>(i) * item;
      return std::memcmp(x.data() + byte, y.data() + byte, item) != 0;
    };
    std::int64_t i = 0;
    while (true) {
      const std::size_t done = static_cast<std::size_t>(i) * item;
      i += static_cast<std::int64_t>(first_unequal_byte(x.subspan(done), y.subspan(done)) / item);
      if (i == count) return;
      const std::int64_t sequence = sequence_with(at + i);
      const std::int64_t end = std::min(first_token_of(a_, sequence + 1) - at, count);
      if (sequence != found.last_sequence) {
        ++found.sequences;
        if (found.first_sequence < 0) found.first_sequence = sequence;
        found.last_sequence = sequence;
        const std::int64_t document = document_with(a_, sequence);
        if (found.documents.empty() || found.documents.back() != document) {
          found.documents.push_back(document);
        }
      }
      for (; i < end; ++i) found.tokens += differs(i) ? 1 : 0;
    }
  }

  /// The sequence of A that contains a token of the stream.
  std::int64_t sequence_with(std::int64_t token) const {
    std::int64_t low = 0;
    std::int64_t high = a_.sequence_count();
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (first_token_of(a_, middle) <= token ? low : high) = middle;
    }
    return low;
  }

  /// The first difference, which is in this document.
  first_difference first_difference_in(std::int64_t document) {
    first_difference at;
    at.document = document;
    const auto byte_of_end = [&](const indexed_dataset& data, std::int64_t end) {
      return data.index().document_index_offset() + 8 * static_cast<std::uint64_t>(end);
    };
    if (document == a_.document_count() || document == b_.document_count()) {
      constexpr std::uint64_t document_index_size_offset = 26;
      at.kind = difference_kind::document_count;
      at.sequence = (document == a_.document_count() ? a_ : b_).sequence_count();
      at.a = a_.document_count();
      at.b = b_.document_count();
      at.a_offset = at.b_offset = document_index_size_offset;
      return at;
    }
    const document_range x = a_.document(document);
    const document_range y = b_.document(document);
    for (std::int64_t s = 0; s < std::min(x.size(), y.size()); ++s) {
      at.sequence = x.first + s;  // the same in both, since all before is equal
      if (find_token(at)) return at;
      const std::int64_t in_a = a_.sequence_length(at.sequence);
      const std::int64_t in_b = b_.sequence_length(at.sequence);
      if (in_a != in_b) {
        at.kind = difference_kind::sequence_length;
        at.token = std::min(in_a, in_b);
        at.document_token += at.token;
        at.a = in_a;
        at.b = in_b;
        const std::uint64_t in_array = 4 * static_cast<std::uint64_t>(at.sequence);
        at.a_offset = a_.index().lengths_offset() + in_array;
        at.b_offset = b_.index().lengths_offset() + in_array;
        return at;
      }
      if (modes_ && a_.mode(at.sequence) != b_.mode(at.sequence)) {
        at.kind = difference_kind::mode;
        at.token = 0;
        at.a = a_.mode(at.sequence);
        at.b = b_.mode(at.sequence);
        at.a_offset = a_.index().modes_offset() + static_cast<std::uint64_t>(at.sequence);
        at.b_offset = b_.index().modes_offset() + static_cast<std::uint64_t>(at.sequence);
        return at;
      }
      at.document_token += in_a;
    }
    at.kind = difference_kind::sequence_count;
    at.sequence = x.first + std::min(x.size(), y.size());
    at.token = 0;
    at.a = x.size();
    at.b = y.size();
    at.a_offset = byte_of_end(a_, document + 1);
    at.b_offset = byte_of_end(b_, document + 1);
    return at;
  }

  /// Finds the first token of `at.sequence` that differs.
  bool find_token(first_difference& at) const {
    const token_view x = a_.sequence(at.sequence);
    const token_view y = b_.sequence(at.sequence);
    std::vector<std::byte> buffer_x;
    std::vector<std::byte> buffer_y;
    const std::int64_t all = std::min(x.size(), y.size());
    for (std::int64_t from = 0; from < all; from += most_ids_as) {
      const std::int64_t count = std::min(most_ids_as, all - from);
      const auto part_x = ids_as(type_, x.subview(from, count), buffer_x);
      const auto part_y = ids_as(type_, y.subview(from, count), buffer_y);
      const auto unequal = static_cast<std::int64_t>(first_unequal_byte(part_x, part_y) /
                                                     formats::size_bytes(type_));
      if (unequal == count) continue;
      at.kind = difference_kind::token;
      at.token = from + unequal;
      at.document_token += at.token;
      at.a = x[at.token];
      at.b = y[at.token];
      const auto byte_of = [&](const indexed_dataset& data) {
        return static_cast<std::uint64_t>(first_token_of(data, at.sequence) + at.token) *
               formats::size_bytes(data.type());
      };
      at.a_offset = byte_of(a_);
      at.b_offset = byte_of(b_);
      return true;
    }
    return false;
  }

  /// Remembers the aligned documents that are equal: those between the ones that differ.
  void add_in_place(const aligned_documents& both, const std::vector<std::int64_t>& differing) {
    std::int64_t next = 0;
    const auto add_until = [&](std::int64_t end) {
      if (next < end) in_place_.push_back({both.a + next, both.b + next, end - next});
      in_place_count_ += end - next;
      next = end + 1;
    };
    for (const std::int64_t d : differing) add_until(d);
    add_until(both.count);
  }

  /// Compares documents by content: all but the first `front` and the last `back`, of which only
  /// the given ones are compared; the others are equal at their places.
  void match(std::int64_t front, std::int64_t back, const std::vector<std::int64_t>& in_front,
             const std::vector<std::int64_t>& behind, dataset_difference& found) {
    const std::int64_t all_a = a_.document_count();
    const std::int64_t all_b = b_.document_count();
    in_place_.clear();
    in_place_count_ = 0;
    add_in_place({0, 0, front}, in_front);
    add_in_place({all_a - back, all_b - back, back}, behind);
    std::vector<listed_document> rest;
    const auto add = [&](std::int64_t dataset, std::int64_t all) {
      for (const std::int64_t d : in_front) rest.push_back({dataset, d});
      for (std::int64_t d = front; d < all - back; ++d) rest.push_back({dataset, d});
      for (const std::int64_t d : behind) rest.push_back({dataset, all - back + d});
    };
    add(0, all_a);
    add(1, all_b);
    const indexed_dataset* const both[] = {&a_, &b_};
    group_equal_documents(both, rest,
                          {.workers = options_.workers, .modes = modes_, .progress = {}});
    const auto middle = std::ranges::find(rest, std::int64_t{1}, &listed_document::dataset);
    const std::span<const listed_document> in_a(rest.begin(), middle);
    const std::span<const listed_document> in_b(middle, rest.end());
    // Copies of a document can be paired in several ways. The choice changes only how many seem to
    // have moved, and which of them are listed.
    std::vector<aligned_documents> best = paired(in_a, in_b, false);
    found.moved = moved_of(best);
    const auto try_pairs = [&](std::vector<aligned_documents> pairs) {
      if (pairs.size() != best.size()) return;
      const std::int64_t moved = moved_of(pairs);
      if (moved >= found.moved) return;
      found.moved = moved;
      best = std::move(pairs);
    };
    if (found.moved > 0) try_pairs(paired(in_a, in_b, true));
    if (found.moved > 0) try_pairs(subsequence(in_a, in_b));
    found.common = in_place_count_ + std::ssize(best);
    found.only_in_a = all_a - found.common;
    found.only_in_b = all_b - found.common;
    list_unpaired(in_a, best, &aligned_documents::a, found.first_only_in_a);
    list_unpaired(in_b, best, &aligned_documents::b, found.first_only_in_b);
  }

  /// Pairs the n-th copies of each document, counted from the front or from the back. The pairs are
  /// in the order of A.
  static std::vector<aligned_documents> paired(std::span<const listed_document> in_a,
                                               std::span<const listed_document> in_b,
                                               bool backwards) {
    using item = std::pair<std::uint64_t, std::int64_t>;
    const auto by_group = [&](std::span<const listed_document> list) {
      std::vector<item> items;
      items.reserve(list.size());
      for (const listed_document& each : list) {
        items.emplace_back(each.group, backwards ? -each.document : each.document);
      }
      std::ranges::sort(items);
      return items;
    };
    const auto x = by_group(in_a);
    const auto y = by_group(in_b);
    std::vector<aligned_documents> pairs;
    for (std::size_t i = 0, j = 0; i < x.size() && j < y.size();) {
      if (x[i].first != y[j].first) {
        ++(x[i].first < y[j].first ? i : j);
        continue;
      }
      const std::int64_t sign = backwards ? -1 : 1;
      pairs.push_back({sign * x[i].second, sign * y[j].second});
      ++i;
      ++j;
    }
    std::ranges::sort(pairs, {}, &aligned_documents::a);
    return pairs;
  }

  /// Pairs each document of the shorter list with the next equal one of the longer list, in order.
  /// So if the shorter list is the longer one without some documents, all of it is paired.
  static std::vector<aligned_documents> subsequence(std::span<const listed_document> in_a,
                                                    std::span<const listed_document> in_b) {
    const bool a_is_shorter = in_a.size() < in_b.size();
    const auto& few = a_is_shorter ? in_a : in_b;
    const auto& many = a_is_shorter ? in_b : in_a;
    std::vector<aligned_documents> pairs;
    std::size_t i = 0;
    for (const listed_document& each : many) {
      if (i == few.size() || few[i].group != each.group) continue;
      const std::int64_t other = few[i++].document;
      pairs.push_back(a_is_shorter ? aligned_documents{other, each.document}
                                   : aligned_documents{each.document, other});
    }
    return pairs;
  }

  /// Returns the smallest number of documents that have to move: all common ones, less the longest
  /// increasing sequence of them.
  std::int64_t moved_of(const std::vector<aligned_documents>& pairs) const {
    if (pairs.empty()) return 0;
    std::vector<aligned_documents> all = pairs;
    all.insert(all.end(), in_place_.begin(), in_place_.end());
    std::ranges::sort(all, {}, &aligned_documents::a);
    // best[k]: the most documents in an increasing sequence that ends at or before the k-th place
    // in B, as a Fenwick tree of maxima.
    std::vector<std::int64_t> places;
    places.reserve(all.size());
    for (const aligned_documents& each : all) places.push_back(each.b);
    std::ranges::sort(places);
    std::vector<std::int64_t> tree(places.size() + 1);
    for (const aligned_documents& each : all) {
      const auto place =
          static_cast<std::size_t>(std::ranges::lower_bound(places, each.b) - places.begin());
      std::int64_t best = 0;
      for (std::size_t k = place; k > 0; k &= k - 1) best = std::max(best, tree[k]);
      best += each.count;
      for (std::size_t k = place + 1; k < tree.size(); k += k & (~k + 1)) {
        tree[k] = std::max(tree[k], best);
      }
    }
    std::int64_t longest = 0;
    for (std::size_t k = tree.size() - 1; k > 0; k &= k - 1) longest = std::max(longest, tree[k]);
    return in_place_count_ + std::ssize(pairs) - longest;
  }

  void list_unpaired(std::span<const listed_document> list,
                     const std::vector<aligned_documents>& pairs,
                     std::int64_t aligned_documents::*side, std::vector<std::int64_t>& out) const {
    out.clear();
    std::vector<std::int64_t> known;
    known.reserve(pairs.size());
    for (const aligned_documents& each : pairs) known.push_back(each.*side);
    std::ranges::sort(known);
    for (const listed_document& each : list) {
      if (std::ssize(out) >= options_.most_listed) return;
      if (!std::ranges::binary_search(known, each.document)) out.push_back(each.document);
    }
  }

  void check_there() const {
    watch_a_.check_there(a_.bin_path());
    watch_b_.check_there(b_.bin_path());
  }

  const indexed_dataset& a_;
  const indexed_dataset& b_;
  const diff_options& options_;
  formats::dtype type_;
  bool modes_;  // both have modes
  lost_page_watch watch_a_;
  lost_page_watch watch_b_;
  std::int64_t compared_ = 0;
  std::vector<aligned_documents> in_place_;  // equal, and at the same place
  std::int64_t in_place_count_ = 0;
};

}  // namespace detail

MILLRACE_INLINE dataset_difference diff_datasets(const indexed_dataset& a, const indexed_dataset& b,
                                                 const diff_options& options) {
  return detail::dataset_comparison(a, b, options).run();
}

}  // namespace millrace::dataset
