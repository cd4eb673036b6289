// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <millrace/dataset/statistics.hpp>
#include <millrace/error.hpp>

#include "documents.hpp"
#include "ngram_hash.hpp"

namespace millrace::dataset {

namespace detail {

/// How often an n-gram with a certain hash occurs, and where first.
struct hash_count {
  std::uint64_t hash = 0;
  std::int64_t count = 0;  ///< 0: an empty entry of a table
  std::int64_t first = 0;  ///< position in all datasets
};

inline bool is_more_frequent(const hash_count& a, const hash_count& b) {
  return a.count != b.count ? a.count > b.count : a.first < b.first;
}

/// Counts hashes in an array with open addressing.
class hash_table {
 public:
  /// Counts a hash later. The position must be greater than all before.
  void add(std::uint64_t hash, std::int64_t position) {
    if (waiting_count_ == waiting_.size()) count_waiting();
    __builtin_prefetch(&entries_[slot(hash)], 1);
    waiting_[waiting_count_++] = {hash, position};
  }

  /// Forgets everything but the memory.
  void clear() {
    std::ranges::fill(entries_, hash_count());
    used_ = 0;
  }

  std::span<const hash_count> entries() {
    count_waiting();
    return entries_;
  }
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(used_); }

 private:
  std::size_t slot(std::uint64_t hash) const noexcept { return hash & (entries_.size() - 1); }

  void count_waiting() {
    for (std::size_t i = 0; i < waiting_count_; ++i) {
      const auto& [hash, position] = waiting_[i];
      hash_count& entry = find(hash);
      if (entry.count++ != 0) continue;
      entry.hash = hash;
      entry.first = position;
      if (++used_ * 4 > entries_.size() * 3) grow();
    }
    waiting_count_ = 0;
  }

  hash_count& find(std::uint64_t hash) {
    for (std::size_t at = slot(hash);; at = (at + 1) & (entries_.size() - 1)) {
      if (entries_[at].count == 0 || entries_[at].hash == hash) return entries_[at];
    }
  }

  void grow() {
    std::vector<hash_count> old(2 * entries_.size());
    old.swap(entries_);
    for (const hash_count& each : old) {
      if (each.count != 0) find(each.hash) = each;
    }
  }

  std::vector<hash_count> entries_ = std::vector<hash_count>(1 << 12);
  std::size_t used_ = 0;
  std::vector<std::pair<std::uint64_t, std::int64_t>> waiting_ =
      std::vector<std::pair<std::uint64_t, std::int64_t>>(64);
  std::size_t waiting_count_ = 0;
};

/// The n-grams of all documents with positions in all datasets.
template <class Visit>
void visit_ngrams(const document_list& documents, const document_block& block, std::int64_t n,
                  Visit&& visit) {
  for (std::int64_t d = block.first; d < block.last; ++d) {
    const document_place place{block.dataset, d};
    const token_view tokens = documents.tokens(place);
    if (tokens.size() < n) continue;
    const std::int64_t first = documents.first_token(place);
    with_integers(tokens, [&]<class T>(std::span<const T> ids) {
      for_each_ngram(ids, n, [&](std::uint64_t hash, std::size_t offset) {
        visit(hash, first + static_cast<std::int64_t>(offset), ids, offset);
      });
    });
  }
  documents.check_there(block.dataset);
}

/// The part of all hashes that a hash belongs to.
inline std::int64_t part_of(std::uint64_t hash, std::int64_t parts) noexcept {
  // NOLINTNEXTLINE(google-runtime-int): the type has no other name
  __extension__ using wide = unsigned __int128;
  return static_cast<std::int64_t>((wide{hash} * static_cast<std::uint64_t>(parts)) >> 64);
}

/// An n-gram among those with one of the most frequent hashes.
struct counted_ngram {
  std::vector<std::int64_t> ids;
  std::int64_t count = 0;
  std::int64_t first = 0;

  template <class T>
  bool is(std::span<const T> other) const {
    return std::ranges::equal(
        ids, other, [](std::int64_t a, T b) { return a == static_cast<std::int64_t>(b); });
  }
};

/// What one call of find_repeated_ngrams does.
class ngram_search {
 public:
  ngram_search(std::span<const indexed_dataset> data, const ngram_options& ngrams,
               const statistics_options& options)
      : documents_(data),
        blocks_(document_blocks(data, options.block_tokens)),
        n_(ngrams.n),
        options_(&options) {
    for (const document_block& block : blocks_) {
      for (std::int64_t d = block.first; d < block.last; ++d) {
        positions_ +=
            std::max<std::int64_t>(documents_.tokens({block.dataset, d}).size() - n_ + 1, 0);
      }
    }
    // The table of a thread grows by doubling, so its memory is used to 3/8 at least. While it
    // grows, there are the old one and the new one.
    const auto workers = static_cast<std::size_t>(std::max(options.workers, 1));
    const std::size_t entries =
        std::max<std::size_t>(ngrams.memory_bytes / workers / sizeof(hash_count) / 4, 1024);
    parts_ = positions_ / static_cast<std::int64_t>(entries) + 1;
    if (parts_ > 1)
      parts_ = (parts_ + static_cast<std::int64_t>(workers) - 1) /
               static_cast<std::int64_t>(workers) * static_cast<std::int64_t>(workers);
    else
      parts_ = static_cast<std::int64_t>(workers);
  }

  repeated_ngrams result(std::size_t most) {
    repeated_ngrams found;
    found.positions = positions_;
    // A few more hashes than n-grams, because equal hashes do not prove equal n-grams.
    for (std::size_t hashes = most + 16;; hashes *= 2) {
      distinct_ = 0;
      total_ += (parts_ + 1) * documents_.token_count();
      const auto frequent = most_frequent(hashes);
      auto counted = count(frequent);
      found.passes = passes_;
      found.distinct = distinct_;
      std::ranges::sort(counted, [](const counted_ngram& a, const counted_ngram& b) {
        return a.count != b.count ? a.count > b.count : a.first < b.first;
      });
      // The n-grams of all other hashes have at most the last count. Equal counts are in order of
      // place, and so are hashes.
      const bool is_complete = frequent.size() < hashes;
      if (!is_complete &&
          (counted.size() < most || (most > 0 && !is_before(counted[most - 1], frequent.back()))))
        continue;
      std::erase_if(counted, [](const counted_ngram& each) { return each.count < 2; });
      if (counted.size() > most) counted.resize(most);
      for (counted_ngram& each : counted) {
        const auto [place, token] = documents_.document_of(each.first);
        found.ngrams.push_back({std::move(each.ids), each.count, place, token});
      }
      return found;
    }
  }

 private:
  static bool is_before(const counted_ngram& a, const hash_count& last) {
    return a.count != last.count ? a.count > last.count : a.first <= last.first;
  }

  /// The hashes that occur most often, and at least twice, most frequent first.
  std::vector<hash_count> most_frequent(std::size_t most) {
    struct worker {
      ngram_search* own;
      std::size_t most;
      std::vector<hash_count>* all;
      std::mutex* mutex;
      hash_table table;

      std::int64_t operator()(std::int64_t part) {
        table.clear();
        std::int64_t tokens = 0;
        for (const document_block& block : own->blocks_) {
          visit_ngrams(own->documents_, block, own->n_,
                       [&](std::uint64_t hash, std::int64_t position, auto, std::size_t) {
                         if (part_of(hash, own->parts_) == part) table.add(hash, position);
                       });
          const std::scoped_lock lock(*mutex);
          own->progress(block);
        }
        std::vector<hash_count> repeated;
        for (const hash_count& each : table.entries()) {
          if (each.count > 1) repeated.push_back(each);
        }
        keep(repeated, most);
        const std::scoped_lock lock(*mutex);
        own->distinct_ += table.size();
        all->insert(all->end(), repeated.begin(), repeated.end());
        keep(*all, most);
        return tokens;
      }
      static void keep(std::vector<hash_count>& list, std::size_t most) {
        if (list.size() <= most) return;
        std::ranges::nth_element(list, list.begin() + static_cast<std::ptrdiff_t>(most),
                                 is_more_frequent);
        list.resize(most);
      }
      void finish() {}
    };
    std::vector<hash_count> all;
    std::mutex mutex;
    for_each_block(
        parts_, options_->workers,
        [&] {
          return worker{this, most, &all, &mutex, hash_table()};
        },
        [](std::int64_t) {});
    passes_ += parts_;
    std::ranges::sort(all, is_more_frequent);
    return all;
  }

  template <class T>
  static void add(std::vector<counted_ngram>& list, std::span<const T> ids, std::int64_t times,
                  std::int64_t position) {
    auto same = std::ranges::find_if(list, [&](const counted_ngram& each) { return each.is(ids); });
    if (same == list.end()) same = list.insert(same, {{ids.begin(), ids.end()}, 0, position});
    same->count += times;
    same->first = std::min(same->first, position);
  }

  /// Counts all n-grams with the given hashes.
  std::vector<counted_ngram> count(const std::vector<hash_count>& hashes) {
    using by_hash = std::unordered_map<std::uint64_t, std::vector<counted_ngram>>;
    struct worker {
      ngram_search* own;
      by_hash* all;
      by_hash mine;

      std::int64_t operator()(std::int64_t number) {
        const document_block& block = own->blocks_[static_cast<std::size_t>(number)];
        visit_ngrams(own->documents_, block, own->n_,
                     [&]<class T>(std::uint64_t hash, std::int64_t position, std::span<const T> ids,
                                  std::size_t offset) {
                       const std::size_t bit = hash % flags;
                       if (!own->wanted_[bit]) return;
                       const auto found = mine.find(hash);
                       if (found == mine.end()) return;
                       add(found->second, ids.subspan(offset, static_cast<std::size_t>(own->n_)), 1,
                           position);
                     });
        return number;
      }
      void finish() {
        for (auto& [hash, list] : mine) {
          for (const counted_ngram& each : list) {
            add((*all)[hash], std::span<const std::int64_t>(each.ids), each.count, each.first);
          }
        }
      }
    };
    by_hash all;
    wanted_.assign(flags, false);
    for (const hash_count& each : hashes) {
      all[each.hash];
      wanted_[each.hash % flags] = true;
    }
    const by_hash none = all;
    for_each_block(
        std::ssize(blocks_), options_->workers,
        [&] {
          return worker{this, &all, none};
        },
        [&](std::int64_t number) { progress(blocks_[static_cast<std::size_t>(number)]); });
    ++passes_;
    std::vector<counted_ngram> list;
    for (auto& [hash, ngrams] : all) {
      for (counted_ngram& each : ngrams) list.push_back(std::move(each));
    }
    return list;
  }

  /// Reports that a block was read. Only one thread may call it at a time.
  void progress(const document_block& block) {
    if (!options_->progress) return;
    const auto begin_of = [&](std::int64_t document) {
      return documents_.first_token({block.dataset, document});
    };
    done_ += begin_of(block.last) - begin_of(block.first);
    options_->progress(done_, total_);
  }

  static constexpr std::size_t flags = std::size_t{1} << 16;

  document_list documents_;
  std::vector<document_block> blocks_;
  std::int64_t n_;
  const statistics_options* options_;
  std::int64_t positions_ = 0;
  std::int64_t parts_ = 1;
  std::int64_t passes_ = 0;
  std::int64_t distinct_ = 0;
  std::int64_t done_ = 0;     // tokens read, in all passes
  std::int64_t total_ = 0;    // as far as it is known
  std::vector<bool> wanted_;  // by hash % flags: whether it may be one of the given hashes
};

}  // namespace detail

MILLRACE_INLINE repeated_ngrams find_repeated_ngrams(std::span<const indexed_dataset> data,
                                                     const ngram_options& ngrams,
                                                     const statistics_options& options) {
  if (ngrams.n < 1) {
    throw config_error("an n-gram of " + std::to_string(ngrams.n) + " ids: expected 1 or more");
  }
  return detail::ngram_search(data, ngrams, options).result(ngrams.most);
}

}  // namespace millrace::dataset
