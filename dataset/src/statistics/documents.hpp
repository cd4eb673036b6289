// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/statistics.hpp>
#include <millrace/error.hpp>

#include "../search/block_search.hpp"
#include "../share_blocks.hpp"

/// What all statistics share: the documents of several datasets, divided into blocks.
namespace millrace::dataset::detail {

inline void require_integers(const indexed_dataset& data) {
  if (data.type() != formats::dtype::float32 && data.type() != formats::dtype::float64) return;
  throw config_error(data.prefix().string() + ": the tokens are " +
                     std::string(formats::name(data.type())) +
                     "; statistics need tokens that are integers");
}

/// Calls work(block) for all blocks, on several threads. Each thread makes its own worker, and
/// calls its finish() after its last block. No two threads call finish() or `done` at once.
///
/// @param done  called after each block with the value that work(block) returned
/// @throws any exception of a worker: that of the first block that had one
template <class Make, class Done>
void for_each_block(std::int64_t blocks, int workers, Make&& make, Done&& done) {
  using made = std::invoke_result_t<Make&>;
  std::mutex mutex;  // guards finish() and `done`
  struct block_worker {
    made own;
    std::remove_reference_t<Done>* done;
    std::mutex* mutex;

    void operator()(std::uint64_t block) {
      const auto result = own(static_cast<std::int64_t>(block));
      const std::scoped_lock lock(*mutex);
      (*done)(result);
    }
    void finish() {
      const std::scoped_lock lock(*mutex);
      own.finish();
    }
  };
  share_blocks(static_cast<std::uint64_t>(blocks), workers, [&] {
    return block_worker{make(), &done, &mutex};
  });
}

/// The documents of several datasets, numbered through. The datasets must outlive it.
class document_list {
 public:
  /// @throws config_error  the tokens of a dataset are floats
  /// @throws format_error  an entry of an `.idx` is wrong
  explicit document_list(std::span<const indexed_dataset> data) {
    for (const indexed_dataset& each : data) {
      require_integers(each);
      first_.push_back(count_);
      first_token_.push_back(tokens_);
      data_.emplace_back(each);
      count_ += each.document_count();
      tokens_ += each.token_count();
    }
  }

  std::int64_t count() const noexcept { return count_; }
  std::int64_t token_count() const noexcept { return tokens_; }
  std::int64_t dataset_count() const noexcept { return std::ssize(first_); }

  document_place place(std::int64_t number) const {
    const auto dataset = std::ranges::upper_bound(first_, number) - first_.begin() - 1;
    return {dataset, number - first_[static_cast<std::size_t>(dataset)]};
  }

  token_view tokens(const document_place& place) const {
    const searched_dataset& data = data_[static_cast<std::size_t>(place.dataset)];
    const std::int64_t begin = data.begin_of(place.document);
    const std::int64_t end = data.begin_of(place.document + 1);
    if (begin < 0 || end < begin || data.token_count() < end) {
      data.check_there();
      throw format_error(data.data().idx_path(), data.data().index().pointers_offset(),
                         "the file changed while it was read");
    }
    return data.data().stream().subview(begin, end - begin);
  }
  token_view tokens(std::int64_t number) const { return tokens(place(number)); }

  /// The position of a document's first token in all datasets.
  std::int64_t first_token(const document_place& place) const {
    const auto dataset = static_cast<std::size_t>(place.dataset);
    return first_token_[dataset] + data_[dataset].begin_of(place.document);
  }

  /// The document that contains a token of all datasets, and the token's offset there.
  std::pair<document_place, std::int64_t> document_of(std::int64_t token) const {
    const auto dataset = std::ranges::upper_bound(first_token_, token) - first_token_.begin() - 1;
    const auto at = static_cast<std::size_t>(dataset);
    const std::int64_t inside = token - first_token_[at];
    const document_tokens found = data_[at].document_at(inside, {});
    return {{dataset, found.document}, inside - found.begin};
  }

  /// @throws io_error  a page that was read so far is missing or cannot be read
  void check_there(std::int64_t dataset) const {
    data_[static_cast<std::size_t>(dataset)].check_there();
  }

 private:
  std::deque<searched_dataset> data_;      // not movable
  std::vector<std::int64_t> first_;        // number of each dataset's first document
  std::vector<std::int64_t> first_token_;  // tokens in the datasets before
  std::int64_t count_ = 0;
  std::int64_t tokens_ = 0;
};

/// Neighboring documents of one dataset.
struct document_block {
  std::int64_t dataset = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;  ///< not included
};

/// Divides all documents into blocks of about `tokens`, which end with documents and datasets.
inline std::vector<document_block> document_blocks(std::span<const indexed_dataset> data,
                                                   std::int64_t tokens) {
  std::vector<document_block> blocks;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::int64_t documents = data[i].document_count();
    const std::int64_t parts =
        std::min(documents, data[i].token_count() / std::max<std::int64_t>(tokens, 1) + 1);
    for (std::int64_t part = 0; part < parts; ++part) {
      blocks.push_back({static_cast<std::int64_t>(i),
                        documents / parts * part + std::min(part, documents % parts),
                        documents / parts * (part + 1) + std::min(part + 1, documents % parts)});
    }
  }
  return blocks;
}

/// The number of a document, and a hash of it. Sorts by hash, then by document.
struct hashed_document {
  std::uint64_t hash = 0;
  std::int64_t number = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads it
  friend auto operator<=>(const hashed_document&, const hashed_document&) = default;
};

/// Mixes the bits of a number, so that neighboring numbers have unrelated results.
inline std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  return x ^ (x >> 32);
}

}  // namespace millrace::dataset::detail
