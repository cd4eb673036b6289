// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/search.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/mmidx_verify.hpp>

/// What all searches share: a dataset is divided into blocks of tokens, which threads search
/// independently.
#include "../share_blocks.hpp"

namespace millrace::dataset::detail {

/// A document, as tokens [begin, end) of the stream. By default, one before the first.
struct document_tokens {
  std::int64_t document = -1;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// A dataset whose index is verified, and whose lost pages become errors instead of a signal.
class searched_dataset {
 public:
  /// @throws config_error  the tokens are floats
  /// @throws format_error  an entry of the `.idx` is wrong
  explicit searched_dataset(const indexed_dataset& data)
      : data_(&data),
        item_(static_cast<std::int64_t>(formats::size_bytes(data.type()))),
        idx_watch_(data.idx_bytes()),
        bin_watch_(data.stream().bytes()) {
    if (data.type() == formats::dtype::float32 || data.type() == formats::dtype::float64) {
      throw config_error(data.prefix().string() + ": the tokens are " +
                         std::string(formats::name(data.type())) +
                         "; a search needs tokens that are integers");
    }
    try {
      formats::verify_mmidx(data.index(), data.bin_size_bytes());
    } catch (const format_error& e) {
      check_there();
      throw e.in(data.idx_path());
    }
    check_there();
  }

  const indexed_dataset& data() const noexcept { return *data_; }
  std::int64_t token_count() const noexcept { return data_->token_count(); }
  std::int64_t document_count() const noexcept { return data_->document_count(); }

  /// @throws io_error  a page that was read so far is missing or cannot be read
  void check_there() const {
    idx_watch_.check_there(data_->idx_path());
    bin_watch_.check_there(data_->bin_path());
  }

  /// The first token of a document; for document_count(), the number of tokens.
  std::int64_t begin_of(std::int64_t document) const {
    const formats::mmidx_view& idx = data_->index();
    const std::int64_t sequence = idx.document_index[static_cast<std::size_t>(document)];
    if (sequence < 0 || sequence >= idx.sequence_count()) return token_count();
    return idx.pointers[static_cast<std::size_t>(sequence)] / item_;
  }

  /// The first document that begins at `token` or later; document_count() if there is none.
  std::int64_t first_from(std::int64_t token) const {
    std::int64_t low = 0;
    std::int64_t high = document_count();
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (begin_of(middle) < token) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /// The document that contains a token. Fast if `near` is this document or the one before it.
  /// @pre 0 <= token < token_count()
  document_tokens document_at(std::int64_t token, const document_tokens& near) const {
    document_tokens found = near;
    if (token >= near.end && near.document + 1 < document_count()) {
      found = {near.document + 1, near.end, begin_of(near.document + 2)};
    }
    if (found.begin <= token && token < found.end) return found;
    // The last document that begins at or before the token; the ones before it that begin there are
    // empty.
    const std::int64_t document = first_from(token + 1) - 1;
    found = {document, begin_of(std::max<std::int64_t>(document, 0)), begin_of(document + 1)};
    if (document < 0 || token < found.begin || found.end <= token || token_count() < found.end) {
      check_there();
      throw format_error(data_->idx_path(), data_->index().pointers_offset(),
                         "the file changed while it was searched");
    }
    return found;
  }

 private:
  const indexed_dataset* data_;
  std::int64_t item_;
  lost_page_watch idx_watch_;
  lost_page_watch bin_watch_;
};

/// The hits that one thread finds.
class search_tally {
 public:
  search_tally(std::size_t queries, std::int64_t most_hits)
      : most_(static_cast<std::size_t>(std::max<std::int64_t>(most_hits, 0))),
        counts_(queries + 1),
        last_document_(queries + 1, -1) {}

  void begin_block(std::int64_t begin, std::int64_t end) {
    begin_ = begin;
    end_ = end;
  }

  /// Counts a hit. The hits of a query come in the order of their documents. Returns false if the
  /// hit need not be kept: there are enough hits in documents before it, or in this document before
  /// `token`, if given.
  bool count(std::int64_t query, const document_tokens& in, std::int64_t token = 0) {
    count_one(static_cast<std::size_t>(query), in);
    count_one(counts_.size() - 1, in);
    if (!bound_) return most_ > 0;
    return in.document != bound_->document ? in.document < bound_->document
                                           : token <= bound_->token;
  }

  /// Keeps a hit if it is one of the first. It must have been counted.
  void keep(const search_hit& hit) {
    if (bound_ && !(hit < *bound_)) return;
    hits_.push_back(hit);
    if (hits_.size() < 2 * most_ + 64) return;
    keep_first();
    bound_ = hits_.back();
  }

  /// Adds the hits of another thread.
  void merge(search_tally&& other) {
    for (std::size_t q = 0; q < counts_.size(); ++q) {
      counts_[q].hits += other.counts_[q].hits;
      counts_[q].documents += other.counts_[q].documents;
    }
    shared_.insert(shared_.end(), other.shared_.begin(), other.shared_.end());
    hits_.insert(hits_.end(), std::make_move_iterator(other.hits_.begin()),
                 std::make_move_iterator(other.hits_.end()));
    keep_first();
  }

  search_result result(const searched_dataset& in) && {
    std::ranges::sort(shared_);
    shared_.erase(std::unique(shared_.begin(), shared_.end()), shared_.end());
    for (const auto& [query, document] : shared_) ++counts_[query].documents;
    keep_first();
    search_result all;
    all.hit_count = counts_.back().hits;
    all.hit_documents = counts_.back().documents;
    counts_.pop_back();
    all.queries = std::move(counts_);
    all.hits = std::move(hits_);
    all.documents = in.document_count();
    all.tokens = in.token_count();
    return all;
  }

 private:
  void count_one(std::size_t query, const document_tokens& in) {
    ++counts_[query].hits;
    if (last_document_[query] == in.document) return;
    last_document_[query] = in.document;
    // Other threads may find the same document in other blocks.
    if (in.begin < begin_ || end_ < in.end) {
      shared_.emplace_back(query, in.document);
    } else {
      ++counts_[query].documents;
    }
  }

  void keep_first() {
    std::ranges::sort(hits_);
    if (hits_.size() > most_) hits_.resize(most_);
  }

  std::size_t most_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  std::vector<query_count> counts_;  // the last one counts the hits of all queries
  std::vector<std::int64_t> last_document_;
  std::vector<std::pair<std::size_t, std::int64_t>> shared_;  // of documents in several blocks
  std::vector<search_hit> hits_;
  std::optional<search_hit> bound_;  // later hits than this one are not kept
};

/// Searches all blocks, each with one call search(begin, end, is_last, tally) of a searcher. Each
/// thread makes its own searcher. The last block ends with the stream; it may have no tokens.
///
/// @throws io_error  a page is lost
/// @throws any exception of a searcher: that of the first block that had one
template <class MakeSearcher>
search_tally search_blocks(const searched_dataset& data, const search_options& options,
                           std::size_t queries, MakeSearcher&& make_searcher) {
  // The last block is never full, so that there is one for empty documents at the end.
  const std::int64_t block_tokens = std::max<std::int64_t>(options.block_tokens, 1);
  const std::int64_t blocks = data.token_count() / block_tokens + 1;
  search_tally all(queries, options.most_hits);
  std::mutex mutex;  // guards `done`
  std::int64_t done = 0;
  using searcher = std::invoke_result_t<MakeSearcher&>;
  const auto search_block = [&](std::uint64_t number, searcher& search, search_tally& mine) {
    const auto block = static_cast<std::int64_t>(number);
    const std::int64_t begin = block * block_tokens;
    const std::int64_t end = std::min(begin + block_tokens, data.token_count());
    mine.begin_block(begin, end);
    search(begin, end, block + 1 == blocks, mine);
    data.check_there();
    const std::scoped_lock lock(mutex);
    done += end - begin;
    if (options.progress) options.progress(done);
  };
  struct worker {
    searcher search;
    search_tally mine;
    const decltype(search_block)* in_block;
    search_tally* all;

    void operator()(std::uint64_t block) { (*in_block)(block, search, mine); }
    void finish() { all->merge(std::move(mine)); }
  };
  share_blocks(static_cast<std::uint64_t>(blocks), options.workers, [&] {
    return worker{make_searcher(), search_tally(queries, options.most_hits), &search_block, &all};
  });
  return all;
}

/// Calls f(tokens) with all tokens as a span of their integer type.
template <class F>
decltype(auto) with_integers(const token_view& tokens, F&& f) {
  return formats::with_type(tokens.type(), [&]<class T>(T) -> decltype(auto) {
    if constexpr (std::is_integral_v<T>) {
      return f(tokens.as<T>());
    } else {
      return f(std::span<const std::int64_t>());  // searched_dataset refuses these
    }
  });
}

/// A sorted sample of the tokens, to estimate how frequent an id is.
class token_sample {
 public:
  explicit token_sample(const token_view& tokens) {
    constexpr std::int64_t runs = 64;
    constexpr std::int64_t most_per_run = 256;
    const std::int64_t length = std::min(tokens.size() / runs, most_per_run);
    for (std::int64_t run = 0; run < runs && length > 0; ++run) {
      const std::int64_t first = tokens.size() / runs * run;
      for (std::int64_t i = first; i < first + length; ++i) ids_.push_back(tokens[i]);
    }
    std::ranges::sort(ids_);
  }

  std::int64_t size() const noexcept { return std::ssize(ids_); }
  const std::vector<std::int64_t>& ids() const noexcept { return ids_; }
  std::int64_t count(std::int64_t id) const {
    const auto [first, last] = std::equal_range(ids_.begin(), ids_.end(), id);
    return last - first;
  }

 private:
  std::vector<std::int64_t> ids_;
};

}  // namespace millrace::dataset::detail
