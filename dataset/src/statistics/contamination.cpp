// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/statistics.hpp>
#include <millrace/error.hpp>

#include "documents.hpp"
#include "ngram_hash.hpp"

namespace millrace::dataset {

namespace detail {

/// The different n-grams of texts. Threads may look for n-grams at once.
class ngram_set {
 public:
  struct entry {
    entry(std::uint64_t of, const std::int64_t* at, std::int64_t in)
        : hash(of), ids(at), text(in) {}

    std::uint64_t hash;
    const std::int64_t* ids;  ///< in the texts, which outlive this object
    std::int64_t text;        ///< the first text that has it
    std::atomic<bool> found{false};
  };

  ngram_set(std::span<const std::vector<std::int64_t>> texts, std::int64_t n)
      : n_(static_cast<std::size_t>(n)) {
    std::size_t positions = 0;
    for (const auto& text : texts) {
      if (text.size() >= n_) positions += text.size() - n_ + 1;
    }
    slots_.assign(std::bit_ceil(2 * positions + 2), nullptr);
    // With 16 bits per n-gram, few n-grams that are not in the set pass the filter.
    filter_.assign(std::bit_ceil(std::max<std::size_t>(positions / 4, 1024)), 0);
    of_positions_.resize(texts.size());
    for (std::size_t t = 0; t < texts.size(); ++t) {
      const std::span<const std::int64_t> ids(texts[t]);
      for_each_ngram(ids, n, [&](std::uint64_t hash, std::size_t offset) {
        entry*& slot = slot_of(hash, ids.subspan(offset, n_));
        if (slot == nullptr) {
          slot = &entries_.emplace_back(hash, ids.data() + offset, static_cast<std::int64_t>(t));
          filter_[word_of(hash)] |= bit_of(hash);
        }
        of_positions_[t].push_back(slot);
      });
    }
  }

  /// Finds an n-gram and marks it as found. Null if it is not in the set.
  template <class T>
  const entry* find(std::uint64_t hash, std::span<const T> ids) {
    if ((filter_[word_of(hash)] & bit_of(hash)) == 0) return nullptr;
    entry* const found = slot_of(hash, ids);
    if (found != nullptr && !found->found.load(std::memory_order_relaxed)) {
      found->found.store(true, std::memory_order_relaxed);
    }
    return found;
  }

  std::vector<text_overlap> overlaps() const {
    std::vector<text_overlap> all;
    for (const auto& positions : of_positions_) {
      const auto found = std::ranges::count_if(
          positions, [](const entry* each) { return each->found.load(std::memory_order_relaxed); });
      all.push_back({std::ssize(positions), found});
    }
    return all;
  }

 private:
  std::size_t word_of(std::uint64_t hash) const noexcept {
    return (hash >> 8) & (filter_.size() - 1);
  }
  static std::uint64_t bit_of(std::uint64_t hash) noexcept {
    return std::uint64_t{1} << (hash & 63);
  }

  template <class T>
  entry*& slot_of(std::uint64_t hash, std::span<const T> ids) {
    for (std::size_t at = (hash >> 16) & (slots_.size() - 1);;
         at = (at + 1) & (slots_.size() - 1)) {
      entry* const each = slots_[at];
      if (each == nullptr) return slots_[at];
      if (each->hash != hash) continue;
      const bool is_same = std::equal(ids.begin(), ids.end(), each->ids, [](T a, std::int64_t b) {
        return static_cast<std::int64_t>(a) == b;
      });
      if (is_same) return slots_[at];
    }
  }

  std::size_t n_;
  std::deque<entry> entries_;
  std::vector<entry*> slots_;  // open addressing; at most half full
  std::vector<std::uint64_t> filter_;
  std::vector<std::vector<const entry*>> of_positions_;  // by text and position
};

inline bool shares_more(const contaminated_document& a, const contaminated_document& b) {
  return a.ngrams != b.ngrams ? a.ngrams > b.ngrams : a.place < b.place;
}

/// What one thread finds.
struct contamination_worker {
  const document_list* documents;
  const std::vector<document_block>* blocks;
  ngram_set* ngrams;
  std::int64_t n;
  std::size_t most;
  contamination* all;
  contamination mine = {};

  std::int64_t operator()(std::int64_t number) {
    const document_block& block = (*blocks)[static_cast<std::size_t>(number)];
    std::int64_t tokens = 0;
    for (std::int64_t d = block.first; d < block.last; ++d) {
      const token_view view = documents->tokens({block.dataset, d});
      tokens += view.size();
      contaminated_document found{.place = {block.dataset, d}, .tokens = view.size()};
      with_integers(view, [&]<class T>(std::span<const T> ids) {
        for_each_ngram(ids, n, [&](std::uint64_t hash, std::size_t offset) {
          const auto* const entry =
              ngrams->find(hash, ids.subspan(offset, static_cast<std::size_t>(n)));
          if (entry == nullptr) return;
          if (found.ngrams++ != 0) return;
          found.token = static_cast<std::int64_t>(offset);
          found.text = entry->text;
        });
      });
      if (found.ngrams > 0) add(found);
    }
    documents->check_there(block.dataset);
    return tokens;
  }
  void add(const contaminated_document& found) {
    ++mine.documents;
    mine.tokens += found.tokens;
    mine.worst.push_back(found);
    if (mine.worst.size() >= 2 * most + 1024) keep(mine, most);
  }
  static void keep(contamination& list, std::size_t most) {
    std::ranges::sort(list.worst, shares_more);
    if (list.worst.size() > most) list.worst.resize(most);
  }
  void finish() {
    all->documents += mine.documents;
    all->tokens += mine.tokens;
    all->worst.insert(all->worst.end(), mine.worst.begin(), mine.worst.end());
    keep(*all, most);
  }
};

}  // namespace detail

MILLRACE_INLINE contamination find_contamination(std::span<const indexed_dataset> data,
                                                 std::span<const std::vector<std::int64_t>> texts,
                                                 std::int64_t n, std::size_t most,
                                                 const statistics_options& options) {
  if (n < 1) {
    throw config_error("an n-gram of " + std::to_string(n) + " ids: expected 1 or more");
  }
  const detail::document_list documents(data);
  const auto blocks = detail::document_blocks(data, options.block_tokens);
  detail::ngram_set ngrams(texts, n);
  contamination found;
  std::int64_t done = 0;
  detail::for_each_block(
      std::ssize(blocks), options.workers,
      [&] { return detail::contamination_worker{&documents, &blocks, &ngrams, n, most, &found}; },
      [&](std::int64_t tokens) {
        done += tokens;
        if (options.progress) options.progress(done, documents.token_count());
      });
  found.texts = ngrams.overlaps();
  return found;
}

}  // namespace millrace::dataset
