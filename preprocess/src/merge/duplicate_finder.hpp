// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include <millrace/io/atomic_file.hpp>

#include "merge/content_key.hpp"
#include "output/disk_room.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// A document, and where its content is, for whoever compares documents.
struct content_place {
  std::uint64_t document = 0;  ///< its number, from 0
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;

  /// Sizes of at least this are not stored, but given as this.
  static constexpr std::uint64_t unstored_bytes = (std::uint64_t{1} << 24) - 1;
};

/// A document that repeats an earlier one.
struct duplicate {
  std::uint64_t document = 0;
  std::uint64_t first = 0;  ///< the first document with this content
};

/// Finds the documents that repeat an earlier one. Not thread-safe.
///
/// The keys of all documents are divided by their value into buckets, each of which is a part of a
/// temporary file. A bucket has all documents with its keys, in order, so one pass over it with a
/// table of the keys seen so far finds its duplicates. Its results take the place of what was read.
///
/// Memory use is about `memory_bytes`, plus 9 bits per 8 documents.
/// The file has 40 bytes per document. The destructor removes it.
class duplicate_finder {
 public:
  /// Opens the file.
  ///
  /// @param spill         path of the file, without the suffix `.partial`
  /// @param documents     number of calls of add() that will follow
  /// @param memory_bytes  memory for buckets and the table; if there is too little for any
  ///                      progress, more is used
  /// @throws io_error  the file cannot be created.
  duplicate_finder(const std::filesystem::path& spill, std::uint64_t documents,
                   std::uint64_t memory_bytes, stop_flag stop = {});

  /// The space that the file will take.
  room_claim claim() noexcept;

  /// Adds the next document.
  ///
  /// @param begin, bytes  where its content is: what find() passes to the comparison
  /// @throws io_error  the file cannot be written.
  /// @throws stopped   `stop` is set; also in find() and next().
  void add(const content_key& key, std::uint64_t begin = 0, std::uint64_t bytes = 0);

  /// Compares two documents whose keys are probably equal. Within a bucket, later documents come
  /// in their order.
  using comparison = std::function<bool(const content_place& first, const content_place& later)>;

  /// Finds the duplicates. Call this once, after all keys were added.
  ///
  /// @param are_equal  may throw
  /// @throws io_error  the file cannot be written or read.
  void find(const comparison& are_equal);

  /// The number of duplicates.
  /// @pre find() was called, as for the functions below
  std::uint64_t count() const noexcept { return count_; }
  bool is_duplicate(std::uint64_t document) const noexcept {
    return (found_[document / 64] >> (document % 64) & 1) != 0;
  }
  /// The number of documents before `document` that are no duplicates.
  std::uint64_t number_of(std::uint64_t document) const noexcept;

  /// Returns the next duplicate, in the order of the documents.
  ///
  /// @pre it was called fewer than count() times
  /// @throws io_error  the file cannot be read.
  duplicate next();

 private:
  /// A document in a bucket.
  struct record {
    content_key key;
    content_place place;
  };
  /// A bucket. Its file part consists of chunks of one size, in any place.
  struct bucket {
    std::vector<std::uint32_t> chunks;  // numbers of its chunks in the file
    std::vector<record> pending;        // records not yet written
    std::uint64_t records = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t read = 0;         // duplicates that were read back
    std::vector<duplicate> loaded;  // the chunk of duplicates from which next() takes
  };
  class key_table;

  void flush(bucket& to);
  void find_in(bucket& in, key_table& table, const comparison& are_equal);
  void load(bucket& from);
  void number();
  std::uint64_t offset_of(const bucket& of, std::uint64_t chunk) const noexcept {
    return of.chunks[chunk] * chunk_bytes_;
  }
  std::uint64_t chunk_records() const noexcept { return chunk_bytes_ / sizeof(record); }
  std::uint64_t chunk_duplicates() const noexcept { return chunk_bytes_ / sizeof(duplicate); }

  io::atomic_file file_;
  stop_flag stop_;
  std::uint64_t documents_;
  std::uint64_t memory_bytes_;
  std::uint64_t chunk_bytes_ = 0;
  std::uint32_t chunk_count_ = 0;
  std::uint64_t added_ = 0;
  std::uint64_t count_ = 0;
  std::vector<bucket> buckets_;
  std::vector<std::uint64_t> found_;         // a bit per document
  std::vector<std::uint64_t> found_before_;  // duplicates before each eighth word of found_
  /// The next duplicate of each bucket that has one left, as its document and the bucket.
  std::priority_queue<std::pair<std::uint64_t, std::size_t>,
                      std::vector<std::pair<std::uint64_t, std::size_t>>, std::greater<>>
      heads_;
};

}  // namespace millrace::preprocess
