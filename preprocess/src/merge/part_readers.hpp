// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/sum_check.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/src.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/meta/dataset_meta.hpp>
#include <millrace/meta/meta_concatenation.hpp>

#include "merge/merge_input.hpp"
#include "process/stop_flag.hpp"

/// Readers of a part, document by document and in constant memory, for merges that change which
/// documents the whole has, or their order. Each is used by one thread.
namespace millrace::preprocess {

/// Reads an array of an `.idx` sequentially, in chunks.
template <class T>
class column_reader {
 public:
  /// @param array  offset of the array in the file
  /// @param input, stop  must outlive this object
  column_reader(const merge_input& input, std::uint64_t array, std::uint64_t count,
                const stop_flag& stop)
      : input_(&input), stop_(&stop), array_(array), left_(count) {}

  /// @pre next() was called fewer than `count` times
  T next() {
    if (at_ == chunk_.size()) {
      stop_->check();
      chunk_.resize(std::min<std::uint64_t>(left_, (std::size_t{64} << 10)));
      input_->read_index(array_, done_, std::span(chunk_));
      done_ += chunk_.size();
      left_ -= chunk_.size();
      at_ = 0;
    }
    return chunk_[at_++];
  }

 private:
  const merge_input* input_;
  const stop_flag* stop_;
  std::uint64_t array_;
  std::uint64_t left_;
  std::uint64_t done_ = 0;
  std::size_t at_ = 0;
  std::vector<T> chunk_;
};

/// A document of a part, as described by its `.idx`.
struct stored_document {
  std::uint64_t begin = 0;  ///< offset of its tokens in the .bin
  std::uint64_t bytes = 0;
  std::span<const std::int32_t> lengths;
  std::span<const std::int8_t> modes;  ///< one per sequence, or empty
};

/// Calls `work(document)` for each document of a part, in order. Also verifies the whole `.idx`,
/// because the whole's index is computed only from the lengths: an error elsewhere would go
/// unnoticed.
///
/// @throws io_error, format_error  the `.idx` cannot be read, or is damaged.
/// @throws stopped                 `stop` is set.
template <class Work>
void for_each_document(const merge_input& input, bool multimodal, const stop_flag& stop,
                       Work&& work) {
  const auto& idx = input.view();
  const auto item = static_cast<std::int64_t>(formats::size_bytes(idx.type));
  const std::uint64_t sequences = idx.lengths.size();
  column_reader<std::int32_t> lengths(input, idx.lengths_offset(), sequences, stop);
  column_reader<std::int64_t> pointers(input, idx.pointers_offset(), sequences, stop);
  column_reader<std::int64_t> ends(input, idx.document_index_offset() + 8,
                                   idx.document_index.size() - 1, stop);
  column_reader<std::int8_t> modes(
      input, idx.document_index_offset() + 8 * idx.document_index.size(), sequences, stop);
  std::vector<std::int32_t> own_lengths;
  std::vector<std::int8_t> own_modes;
  std::int64_t sequence = 0;
  std::int64_t pointer = 0;
  for (std::int64_t d = 0; d < idx.document_count(); ++d) {
    const std::int64_t end = ends.next();
    if (end < sequence || end > idx.sequence_count()) {
      throw format_error(input.paths().idx,
                         idx.document_index_offset() + 8 * (static_cast<std::uint64_t>(d) + 1),
                         fmt::format("a document ends before sequence {}, expected {} to {}", end,
                                     sequence, idx.sequence_count()));
    }
    own_lengths.clear();
    own_modes.clear();
    const std::int64_t begin = pointer;
    for (; sequence < end; ++sequence) {
      const std::int32_t length = lengths.next();
      const std::int64_t found = pointers.next();
      if (length < 0 || found != pointer) {
        throw format_error(
            input.paths().idx, idx.pointers_offset() + 8 * static_cast<std::uint64_t>(sequence),
            fmt::format("sequence {} has length {} and pointer {}, expected 0 or more, and {}",
                        sequence, length, found, pointer));
      }
      pointer += length * item;
      if (std::cmp_greater(pointer, idx.bin_size_bytes)) {  // else `work` could read past the end
        throw format_error(
            input.paths().idx, idx.lengths_offset() + 4 * static_cast<std::uint64_t>(sequence),
            fmt::format("sequence {} ends at byte {} of the .bin, expected at most {}", sequence,
                        pointer, idx.bin_size_bytes));
      }
      own_lengths.push_back(length);
      if (multimodal) own_modes.push_back(modes.next());
    }
    work(stored_document{static_cast<std::uint64_t>(begin),
                         static_cast<std::uint64_t>(pointer - begin), own_lengths, own_modes});
  }
  if (sequence != idx.sequence_count()) {
    throw format_error(input.paths().idx, idx.document_index_offset(),
                       fmt::format("the documents end at sequence {}, expected {}", sequence,
                                   idx.sequence_count()));
  }
}

/// Reads the tokens of a part sequentially, in large pieces.
class token_reader {
 public:
  /// @param checksums  verify the part against its P.sum
  /// @param input, stop  must outlive this object
  /// @throws io_error, format_error  the P.sum cannot be read, or belongs to another dataset.
  token_reader(const merge_input& input, bool checksums, const stop_flag& stop);

  /// Returns the next `size` bytes of tokens. The span is valid until the next call.
  ///
  /// @throws io_error, format_error  the tokens cannot be read, or do not match their checksums.
  /// @throws stopped                 `stop` is set.
  std::span<const std::byte> next(std::uint64_t size);

  /// Calls `work(bytes)` for the next `size` bytes of tokens, in pieces of at most 1 MiB.
  template <class Work>
  void for_each_piece(std::uint64_t size, Work&& work) {
    while (size > 0) {
      const std::uint64_t part = std::min<std::uint64_t>(size, piece_bytes);
      work(next(part));
      size -= part;
    }
  }

  /// Call this after all tokens were read. If there are checksums, also verifies the `.idx`.
  void finish();

 private:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;

  const merge_input* input_;
  const stop_flag* stop_;
  std::uint64_t left_;
  std::uint64_t offset_ = 0;
  std::vector<std::byte> buffer_;
  std::size_t at_ = 0;   // where the tokens that were not returned yet begin in buffer_
  std::size_t end_ = 0;  // and where they end
  io::file_mapping sum_file_;
  formats::sum_view sum_;
  std::optional<formats::sum_check> check_;
};

/// Reads where each document of a part came from: the input file and the place in it. Reads the
/// documents in their order, and changes line numbers and the numbers of inputs to those of the
/// whole.
class place_reader {
 public:
  /// @param meta    P.meta of the part
  /// @param shift   must outlive this object
  /// @param inputs  the input files so far; those of the part are appended
  /// @throws io_error, format_error  P.src cannot be read, or belongs to another dataset.
  place_reader(const merge_input& input, const formats::dataset_meta& meta,
               const formats::part_shift& shift, std::vector<formats::src_input>& inputs);
  place_reader(const place_reader&) = delete;
  place_reader& operator=(const place_reader&) = delete;

  /// @throws format_error  P.src is damaged.
  formats::source_place next();

 private:
  std::filesystem::path path_;
  io::file_mapping file_;
  const formats::part_shift* shift_;
  formats::src_view view_;
  std::optional<formats::src_cursor> cursor_;
  std::span<const formats::source_place> places_;
  std::size_t at_ = 0;
};

}  // namespace millrace::preprocess
